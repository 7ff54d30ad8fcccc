/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/proc_values.h"
#include "base/memory.h"

#include <stdlib.h>

#define BLOCK_VALUES 64

const struct proc_values *proc_values_absent(void)
{
	static struct proc_values absent;
	static bool made;

	for (size_t i = 0; !made && i < sample_column_count; i++)
		if (column_is_proc_value(&sample_columns[i]) && sample_columns[i].kind != KIND_TEXT)
			absent.slots[proc_values_slot(&sample_columns[i])].number = ABSENT;
	made = true;
	return &absent;
}

const void *sample_widen(struct sample_wide *room, const struct sample *sample)
{
	room->sample = *sample;
	room->proc_values = sample->proc_values ? *sample->proc_values : *proc_values_absent();
	return room;
}

static struct proc_values *values_at(const struct proc_values_room *room, size_t at)
{
	return &room->blocks[at / BLOCK_VALUES][at % BLOCK_VALUES];
}

struct proc_values *proc_values_room_take(struct proc_values_room *room)
{
	struct proc_values *values;

	if (room->count == room->block_count * BLOCK_VALUES) {
		room->blocks =
			memory_resize(room->blocks, room->block_count + 1, sizeof(*room->blocks));
		room->blocks[room->block_count++] = memory_get(BLOCK_VALUES * sizeof(*values));
	}
	values = values_at(room, room->count++);
	*values = *proc_values_absent();
	return values;
}

void proc_values_room_return(struct proc_values_room *room, const struct proc_values *values)
{
	if (values && room->count && values == values_at(room, room->count - 1))
		room->count--;
}

void proc_values_room_clear(struct proc_values_room *room)
{
	room->count = 0;
}

void proc_values_room_done(struct proc_values_room *room)
{
	for (size_t i = 0; i < room->block_count; i++)
		free(room->blocks[i]);
	free(room->blocks);
	*room = (struct proc_values_room){0};
}
