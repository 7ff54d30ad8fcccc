/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/account.h"
#include "base/memory.h"

#include <stdlib.h>

#define BLOCK_ACCOUNTS 64

const struct account *account_absent(void)
{
	static struct account absent;
	static bool made;

	for (size_t i = 0; !made && i < sample_column_count; i++)
		if (column_is_account(&sample_columns[i]) && sample_columns[i].kind != KIND_TEXT)
			absent.slots[account_slot(&sample_columns[i])].number = ABSENT;
	made = true;
	return &absent;
}

const void *sample_widen(struct sample_wide *room, const struct sample *sample)
{
	room->sample = *sample;
	room->account = sample->account ? *sample->account : *account_absent();
	return room;
}

struct account *account_room_take(struct account_room *room)
{
	size_t block = room->count / BLOCK_ACCOUNTS;
	struct account *account;

	if (block == room->block_count) {
		room->blocks =
			memory_resize(room->blocks, room->block_count + 1, sizeof(*room->blocks));
		room->blocks[room->block_count++] = memory_get(BLOCK_ACCOUNTS * sizeof(*account));
	}
	account = &room->blocks[block][room->count++ % BLOCK_ACCOUNTS];
	*account = *account_absent();
	return account;
}

void account_room_clear(struct account_room *room)
{
	room->count = 0;
}

void account_room_done(struct account_room *room)
{
	for (size_t i = 0; i < room->block_count; i++)
		free(room->blocks[i]);
	free(room->blocks);
	*room = (struct account_room){0};
}
