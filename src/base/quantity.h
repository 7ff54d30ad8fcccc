/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with units as people type them, in options, filters, --config files and on the screen:
 * 90s, 1.5h, 1h30m, 500us; 64K, 20G; 5%. A number has at most six decimals. */
#ifndef TSNAP_BASE_QUANTITY_H
#define TSNAP_BASE_QUANTITY_H

#include <stdint.h>

enum quantity {
	QUANTITY_COUNT,	  /* no unit */
	QUANTITY_TIME,	  /* in microseconds; us, ms, s, m or min, h, d, w */
	QUANTITY_BYTES,	  /* K, M, G, T are powers of 1024 */
	QUANTITY_PERCENT, /* in tenths of a percent */
};

/* Units of each quantity, for messages. */
#define QUANTITY_TIME_UNITS "us, ms, s, m, h, d, w"
#define QUANTITY_BYTES_UNITS "K, M, G, T"

/* Reads a quantity that is not negative. A number without a unit counts that many `bare`, as
 * US_PER_SECOND for seconds. 0, -EINVAL, or -ERANGE if it is too large. */
int quantity_read(const char *text, enum quantity kind, int64_t bare, int64_t *value);

#endif
