/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a BPF program at a context switch of this very thread, which sleeps for it in a known system
 * call: what the program reads of the kernel can then be held against what this thread knows of
 * itself.
 */
#ifndef TSNAP_KERNEL_OWN_SWITCH_H
#define TSNAP_KERNEL_OWN_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arguments 2 to 5 of the nanosleep: it ignores them, but the kernel saves them. */
#define OWN_SWITCH_MARKS 4
extern const uint64_t own_switch_marks[OWN_SWITCH_MARKS];

/* program (of perf events) writes the only entry of map, an array, and makes its first 8 bytes
 * other than zero. value (bytes long) gets the entry. other_user: the effective user id is one
 * higher during the sleep. The last switch counts: where the thread was preempted as well, it may
 * not be the one to sleep. 0; -ETIME where the program never ran; another -errno, and *what names
 * the call that failed. */
int own_switch_run(int program, int map, void *value, size_t bytes, bool other_user,
		   const char **what);

#endif
