/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads values that report/value.c wrote into CSV. */
#ifndef TSNAP_RECORDING_CSV_VALUE_H
#define TSNAP_RECORDING_CSV_VALUE_H

#include <stdint.h>

#include "base/text.h"

/* limit of the difference of two times in four-digit years */
#define CSV_WEIGHT_MAX_US 320000000000000000ll

/* Reads decimal digits, perhaps with a minus before them. 0 or -EINVAL. */
int csv_number_read(const char *text, int64_t *number);

/* Does csv_number_read() for a text of that length; ten per row are read. */
static inline int csv_digits_read(const char *text, size_t length, int64_t *number)
{
	uint64_t value = 0;

	if (length > 18 || !length) /* up to 18 digits can't overflow */
		return csv_number_read(text, number);
	for (size_t i = 0; i < length; i++) {
		unsigned int digit = (unsigned char)text[i] - (unsigned int)'0';

		if (digit > 9) /* a minus, or none */
			return csv_number_read(text, number);
		value = value * 10 + digit;
	}
	*number = (int64_t)value;
	return 0;
}

/* Reads a number like 0x1f, at most 64 bits. 0 or -EINVAL. */
int csv_hex_read(const char *text, int64_t *number);
/* Returns the text as it was before it was made printable; it is transient: some columns are also
 * derived from others (sample_derive()), and equal texts must have one address. scratch: for its
 * use. */
const char *csv_text_read(const char *text, struct text *scratch);

#endif
