/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with units, and times, as people type them in options, filters, --config files and on the
 * screen: 90s, 1.5h, 1h30m, 500us; 64K, 20G; 5%; yesterday 02:10. A number has at most six
 * decimals. */
#ifndef TSNAP_BASE_QUANTITY_H
#define TSNAP_BASE_QUANTITY_H

#include <stdbool.h>
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

#define TIME_WORD_HELP                                                                     \
	"02:10, 'yesterday 02:10', 2026-11-20T02:10:00.5 (local time, unless Z or +01:00 " \
	"follows), -1h30m or now"
#define TIME_WORD_UTC_HELP \
	"2026-11-20T20:42:53.5 or less of it, in UTC unless a zone such as +01:00 follows"

#define TIME_NOT_AFTER INT64_MIN
#define TIME_OF_DAY 1

/* What a time means that has no date, no zone, or stands for two. */
struct time_context {
	int64_t now_us;	   /* what now, today and -1h count from */
	int64_t after_us;  /* a time of day is the first one after this; TIME_NOT_AFTER: the last
			    * one before now */
	bool utc;	   /* a time without a zone is UTC; else it is local time */
	bool of_two_later; /* a local time that came twice, because clocks were put back, is the
			    * second */
};

/* Reads a time. 0; TIME_OF_DAY if the context chose its date; -EINVAL. */
int time_word_read(const char *word, const struct time_context *context, int64_t *time_us);

/* Reads the format of clock_format_iso() and no other. 0 or -EINVAL. */
int time_iso_read(const char *text, int64_t *utc_us);

#endif
