/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of a sample that a history keeps: some are in its tuples, others are numbers that
 * differ from scan to scan. */
#ifndef TSNAP_SCREEN_HISTORY_COLUMNS_H
#define TSNAP_SCREEN_HISTORY_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/column.h"

#define HISTORY_WHAT_MAX 64 /* most columns of a tuple */
#define HISTORY_NUMBER_COUNT 12

/* Columns of a tuple, in the order of their offsets in struct sample: adjacent ones are copied at
 * once, as a run. */
struct history_columns {
	const struct column *items[HISTORY_WHAT_MAX];
	size_t count;
	struct history_run {
		uint32_t offset, bytes; /* position in struct sample */
	} runs[HISTORY_WHAT_MAX];
	size_t run_count;
};

/* The tuple that identifies a thread, and the one that says what the thread does. */
extern struct history_columns history_who, history_what;
/* Fills history_who and history_what; may be called by any thread, any number of times. */
void history_columns_find(void);

/* Kinds of values that a number is expected to have in the next sample of a thread. */
enum history_expected {
	EXPECT_SAME, /* unchanged */
	EXPECT_STAY, /* grown by the time between the scans while the thread's state is the same */
	EXPECT_NONE, /* weight of the scan if the thread is in the number's state, else 0 */
	EXPECT_WEIGHT, /* weight of the scan */
};

struct history_number {
	size_t offset; /* position in struct sample */
	enum history_expected way;
	int64_t state; /* state that gets the scan's weight, with EXPECT_NONE; -1: none */
};

/* Numbers of a sample that change from scan to scan: part, member, what is expected, state. A table
 * for most; reading a million samples has to be fast, and has the rows as code. */
/* clang-format off */
#define HISTORY_NUMBERS(ROW)                           \
	ROW(now,  state_us,	EXPECT_STAY,	-1)            \
	ROW(call, us,		EXPECT_STAY,	-1)            \
	ROW(now,  cpu,		EXPECT_SAME,	-1)            \
	ROW(scan, weight_us,	EXPECT_WEIGHT,	-1)            \
	ROW(sums, cpu_us,	EXPECT_NONE,	STATE_ON)      \
	ROW(sums, runq_us,	EXPECT_NONE,	STATE_RQ)      \
	ROW(sums, dwait_us,	EXPECT_NONE,	STATE_DISK)    \
	ROW(sums, sleep_us,	EXPECT_NONE,	STATE_SLEEP)   \
	ROW(sums, vcsw,		EXPECT_NONE,	-1)            \
	ROW(sums, ivcsw,	EXPECT_NONE,	-1)            \
	ROW(io,   bytes,	EXPECT_SAME,	-1)            \
	ROW(io,   us,		EXPECT_STAY,	-1)
/* clang-format on */
extern const struct history_number history_numbers[HISTORY_NUMBER_COUNT];

/* True if the column's value may differ from scan to scan while a thread goes on with what it does:
 * it is in no tuple. */
bool history_varies(const struct column *column);
/* True if the column's values are kept. */
bool history_keeps(const struct column *column);

#endif
