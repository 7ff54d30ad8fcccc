/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc accounts of a thread in its stat, status and io: some hundred numbers and words, each
 * a column. A sample only points to them, and they are kept only where one of them was asked for,
 * so that nobody else copies them. */
#ifndef TSNAP_SAMPLE_ACCOUNT_H
#define TSNAP_SAMPLE_ACCOUNT_H

#include <stddef.h>

#include "sample/column.h"

#define ACCOUNT_SLOTS 104
#define NEEDS_ACCOUNT (NEED_STAT | NEED_STATUS | NEED_IO)

struct account {
	union value slots[ACCOUNT_SLOTS];
};

/* A sample with its account behind it, where the offsets of columns lead to. */
struct sample_wide {
	struct sample sample;
	struct account account;
};

/* Of a column whose value is in the account, and its slot. */
static inline bool column_is_account(const struct column *column)
{
	return column->offset >= offsetof(struct sample_wide, account);
}

static inline size_t account_slot(const struct column *column)
{
	return (column->offset - offsetof(struct sample_wide, account)) / sizeof(union value);
}

/* All slots absent. */
const struct account *account_absent(void);

/* Fills room from sample, and returns it: for column_read() of any column. */
const void *sample_widen(struct sample_wide *room, const struct sample *sample);

/* The value of any column. */
static inline union value sample_value(const struct column *column, const struct sample *sample)
{
	if (!column_is_account(column))
		return column_read(column, sample);
	return (sample->account ? sample->account : account_absent())->slots[account_slot(column)];
}

/* The accounts of a scan's samples; they stay where they are until the next one. Zeroed is empty.
 */
struct account_room {
	struct account **blocks;
	size_t block_count, count;
};

/* One more, all of it absent. */
struct account *account_room_take(struct account_room *room);
void account_room_clear(struct account_room *room); /* keeps the memory */
void account_room_done(struct account_room *room);

#endif
