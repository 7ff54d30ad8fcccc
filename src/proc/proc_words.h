/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc/PID/task/TID/stat, status and io into the proc_values of a sample, and caches the
 * values for a short time. A table in proc_words.c maps columns to words of these files. */
#ifndef TSNAP_PROC_PROC_WORDS_H
#define TSNAP_PROC_PROC_WORDS_H

#include <stdint.h>

#include "sample/proc_values.h"

struct cache;

#define PROC_WORDS_MAX 65536

void proc_words_init(struct cache *threads);

/* Fills sample->proc_values with the values that are in needs. renew: the needs whose values are
 * out of date. */
void proc_words_fill(struct cache *threads, const char *root, const struct sample *sample,
		     uint64_t needs, uint64_t renew, int64_t now_ns);

/* Parses the text of a file; values that the file can have, but this text does not, become absent.
 * Pure. need: NEED_STAT, NEED_STATUS or NEED_IO. */
void proc_words_parse(uint64_t need, char *text, struct proc_values *values);

#endif
