/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and words of a thread's stat, status and io in /proc, about a hundred, each a column. A
 * sample only points to them, and they are stored only if one of them is requested, so that other
 * samples need not copy them. */
#ifndef TSNAP_SAMPLE_PROC_VALUES_H
#define TSNAP_SAMPLE_PROC_VALUES_H

#include <stddef.h>

#include "sample/column.h"

#define PROC_VALUES_SLOTS 104

struct proc_values {
	union value slots[PROC_VALUES_SLOTS];
};

/* A sample followed by those values, at the offsets of their columns. */
struct sample_wide {
	struct sample sample;
	struct proc_values proc_values;
};

/* True if the column's value is one of these values; then proc_values_slot() is its slot. */
static inline bool column_is_proc_value(const struct column *column)
{
	return column->offset >= offsetof(struct sample_wide, proc_values);
}

static inline size_t proc_values_slot(const struct column *column)
{
	return (column->offset - offsetof(struct sample_wide, proc_values)) / sizeof(union value);
}

/* Values with all slots absent. */
const struct proc_values *proc_values_absent(void);

/* Fills *wide from sample, and returns it, for column_read() of any column. */
const void *sample_widen(struct sample_wide *wide, const struct sample *sample);

/* The value of any column. */
static inline union value sample_value(const struct column *column, const struct sample *sample)
{
	if (!column_is_proc_value(column))
		return column_read(column, sample);
	return (sample->proc_values ? sample->proc_values : proc_values_absent())
		->slots[proc_values_slot(column)];
}

/* Pool of the values of a scan's samples, which are valid until the next scan. A zeroed struct is
 * empty. */
struct proc_values_pool {
	struct proc_values **blocks;
	size_t block_count, count;
};

/* Takes values from the pool, all absent. */
struct proc_values *proc_values_pool_take(struct proc_values_pool *pool);
/* Returns the values to the pool, if they were the last ones taken; NULL: does nothing. */
void proc_values_pool_return(struct proc_values_pool *pool, const struct proc_values *values);
void proc_values_pool_clear(struct proc_values_pool *pool); /* keeps the memory */
void proc_values_pool_done(struct proc_values_pool *pool);

#endif
