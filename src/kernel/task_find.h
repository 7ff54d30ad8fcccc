/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks by their tids, and what the kernel has of them, where task_query.h is not possible: a file
 * of ours is given to a thread as the one that signals for it go to (F_SETOWN_EX of fcntl(2); none
 * is ever sent, as nothing asks for them), and then leads to the thread's struct pid. The layout is
 * the one that the probes were compiled with. */
#ifndef TSNAP_KERNEL_TASK_FIND_H
#define TSNAP_KERNEL_TASK_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct field_layout;
struct kernel_memory;
struct task_finder;
struct task_stack;

/* memory: the caller's, must outlive the finder. *finder: the caller's. 0; -ENOENT: the layout
 * lacks members; -ENODATA: the way to this very thread does not lead to it; or another -errno. */
int task_finder_open(struct task_finder **finder, struct kernel_memory *memory,
		     const struct field_layout *layout);
void task_finder_close(struct task_finder *finder); /* may be NULL */
/* Finds the task of a thread in tsnap's pid namespace. 0: there is none. */
uint64_t task_find(struct task_finder *finder, uint32_t tid);
/* As task_query_stack(). */
bool task_find_stack(struct task_finder *finder, uint32_t tid, struct task_stack *stack);

#endif
