/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel stack of a thread that is off its CPU, as /proc/TID/stack tells it (to CAP_SYS_ADMIN;
 * needs CONFIG_STACKTRACE).
 */
#ifndef TSNAP_STACK_KERNEL_STACK_H
#define TSNAP_STACK_KERNEL_STACK_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_FRAMES_MAX 64 /* MAX_STACK_TRACE_DEPTH of fs/proc/base.c */
#define KERNEL_NAME_SIZE 128

struct kernel_stack {
	uint32_t count;
	char names[KERNEL_FRAMES_MAX][KERNEL_NAME_SIZE]; /* functions, innermost first */
};

/* 0 or -errno. */
int kernel_stack_read(struct kernel_stack *stack, const char *proc_root, int64_t tid);
/* The pure part: "[<0>] do_nanosleep+0x69/0x180" lines. */
void kernel_stack_parse(struct kernel_stack *stack, const char *text);

#endif
