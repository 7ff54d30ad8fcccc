/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the thread state array: in batches where the kernel has them, one by one elsewhere; each
 * thread at most once a scan, never a torn record.
 */
#ifndef TSNAP_KERNEL_THREAD_TABLE_H
#define TSNAP_KERNEL_THREAD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "kernel/record.h"

struct thread_table {
	int map; /* descriptor, not owned */
	bool batch;
	uint32_t entries_max;
	uint32_t chunk; /* records read by one batch call */
	uint32_t *keys;
	struct thread_state *records;
	struct index seen;	   /* tids of this scan, read one by one: such a walk may restart */
	uint64_t torn_count;	   /* records left out of a scan because they kept changing */
	uint64_t unfinished_count; /* scans that could not see the whole map */
};

void thread_table_init(struct thread_table *table, int map, bool batch, uint32_t entries_max);
void thread_table_done(struct thread_table *table);

/* Calls visit for each record. The record is visit's for the time of the call. 0, or -errno of the
 * kernel. */
int thread_table_scan(struct thread_table *table,
		      void (*visit)(void *to, const struct thread_state *record), void *to);

/* The same for one thread; nothing where it has no record. */
void thread_table_visit(struct thread_table *table, uint32_t tid,
			void (*visit)(void *to, const struct thread_state *record), void *to);

/* One record, perhaps torn, or -ENOENT. */
int thread_table_get(struct thread_table *table, uint32_t tid, struct thread_state *record);
/* Adds a record unless the thread has one. 0, -EEXIST, or -E2BIG: the map is full. */
int thread_table_add(struct thread_table *table, const struct thread_state *record);
void thread_table_remove(struct thread_table *table, uint32_t tid);

#endif
