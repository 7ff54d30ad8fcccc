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

const void *sample_widen(struct sample_wide *wide, const struct sample *sample)
{
	wide->sample = *sample;
	wide->proc_values = sample->proc_values ? *sample->proc_values : *proc_values_absent();
	return wide;
}

static struct proc_values *values_at(const struct proc_values_pool *pool, size_t at)
{
	return &pool->blocks[at / BLOCK_VALUES][at % BLOCK_VALUES];
}

struct proc_values *proc_values_pool_take(struct proc_values_pool *pool)
{
	struct proc_values *values;

	if (pool->count == pool->block_count * BLOCK_VALUES) {
		pool->blocks =
			memory_resize(pool->blocks, pool->block_count + 1, sizeof(*pool->blocks));
		pool->blocks[pool->block_count++] = memory_get(BLOCK_VALUES * sizeof(*values));
	}
	values = values_at(pool, pool->count++);
	*values = *proc_values_absent();
	return values;
}

void proc_values_pool_return(struct proc_values_pool *pool, const struct proc_values *values)
{
	if (values && pool->count && values == values_at(pool, pool->count - 1))
		pool->count--;
}

void proc_values_pool_clear(struct proc_values_pool *pool)
{
	pool->count = 0;
}

void proc_values_pool_done(struct proc_values_pool *pool)
{
	for (size_t i = 0; i < pool->block_count; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
	*pool = (struct proc_values_pool){0};
}
