/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with a unit, in options. */
#ifndef TSNAP_CLI_OPTION_UNITS_H
#define TSNAP_CLI_OPTION_UNITS_H

#include <stdint.h>

/* Reads a time: 90s, 5m, 2h, 7d, 4w; without a unit: seconds. 0 or -EINVAL. */
int span_read(const char *text, int64_t *us);
/* Reads a size: 500M, 20G, 1T (powers of 1024); without a unit: bytes. 0 or -EINVAL. */
int bytes_read(const char *text, int64_t *bytes);
/* Reads a percentage below 100 % into tenths of a percent: 5%, 0.5%. 0 or -EINVAL. */
int percent_read(const char *text, int64_t *tenths);

#endif
