/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What only the kernel knows of threads that were there before tsnap, from a BPF iterator (5.8):
 * the address of each thread's kernel stack, and since when it sleeps. Probes learn both only when
 * a thread is switched.
 */
#ifndef TSNAP_MAPS_TASK_LIST_H
#define TSNAP_MAPS_TASK_LIST_H

#include <stdint.h>

#include "base/index.h"
#include "kernel/field_table.h"

/* Row that the iterator's program writes for each thread. */
struct task_row {
	uint64_t tid, stack, cpu;
	uint64_t ran_ns;     /* se.exec_start: when it ran last, by the clock of its CPU's tasks */
	uint64_t arrived_ns; /* sched_info.last_arrival: by the clock of its CPU */
};

#define TASK_CPUS_MAX 4096

/* A zeroed struct is empty. */
struct task_list {
	struct keyed rows;  /* struct task_row, by the kernel's own tid */
	int64_t now_ns;	    /* by the clock of CPUs; 0: times are not known */
	int64_t *behind_ns; /* how far the clock of a CPU's tasks is behind that of the CPU */
};

/* Reads all threads. 0 or -errno. */
int task_list_read(struct task_list *list, const struct field_layout *layout);
/* The thread's row; NULL: it is not there. */
const struct task_row *task_list_find(struct task_list *list, int64_t tid);
/* How long ago a thread that sleeps went to sleep; 0: not known. The clock of a CPU's tasks stands
 * still in interrupts and while a hypervisor has the CPU (update_rq_clock_task() in
 * kernel/sched/core.c): if that happened meanwhile, it is that much longer. */
int64_t task_slept_ns(const struct task_list *list, const struct task_row *row);
void task_list_done(struct task_list *list);

#endif
