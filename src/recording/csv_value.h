/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values as report/value.c writes them into CSV, read back. */
#ifndef TSNAP_RECORDING_CSV_VALUE_H
#define TSNAP_RECORDING_CSV_VALUE_H

#include <stdint.h>

#include "base/text.h"

/* no two times of four-digit years lie further apart */
#define CSV_WEIGHT_MAX_US 320000000000000000ll

/* Decimal digits, perhaps with a minus before them. 0 or -EINVAL. */
int csv_number_read(const char *text, int64_t *number);
/* The same of a text of that length. */
int csv_digits_read(const char *text, size_t length, int64_t *number);
/* 0x1f, at most 64 bits. 0 or -EINVAL. */
int csv_hex_read(const char *text, int64_t *number);
/* The text as it was before it became printable, lent: some columns are also derived from others
 * (sample_derive()), and equal texts must have one address. room: for its use. */
const char *csv_text_read(const char *text, struct text *room);

#endif
