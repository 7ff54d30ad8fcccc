/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times as people type them: --from, --to. */
#ifndef TSNAP_RECORDING_TIME_WORD_H
#define TSNAP_RECORDING_TIME_WORD_H

#include <stdint.h>

#include "base/error.h"

#define TIME_WORD_HELP                                                             \
	"02:10, yesterday 02:10, 2026-11-20T02:10:00.5, perhaps with Z or +01:00 " \
	"(else local time), -1h30m, or now"

/* Reads --from. A time of day is the last one before now_us. If a local time comes twice, because
 * clocks were put back, it is the first. 0 or -EINVAL. */
int time_word_from(const char *word, int64_t now_us, int64_t *time_us);
/* Reads --to. A time of day is the first one after from_us, or, if that is ABSENT, the last one
 * before now_us. If a local time comes twice, it is the second. */
int time_word_to(const char *word, int64_t now_us, int64_t from_us, int64_t *time_us);

#endif
