/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of stacks, made in a scan, of threads that are off their CPUs: registers, the top of the
 * user stack, the text of /proc/TID/stack. live/stacks/live_kept.h makes them.
 */
#ifndef TSNAP_LIVE_SAMPLER_STACK_COPIES_H
#define TSNAP_LIVE_SAMPLER_STACK_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/user_registers.h"

struct stack_copy {
	uint32_t tid;	   /* tid as the kernel numbers it */
	uint64_t sequence; /* sequence number of the switch out */
	bool registers_known;
	struct user_registers registers;
	size_t stack_at, stack_bytes; /* top of the user stack, from registers.sp on */
	size_t kernel_at;	      /* text with a NUL after it */
	bool kernel_known;
};

/* A zeroed struct has no copies. */
struct stack_copies {
	struct keyed copies; /* struct stack_copy, by tid */
	char *bytes;	     /* memory of user stacks and texts */
	size_t used, bytes_capacity;
};

void stack_copies_empty(struct stack_copies *copies);
void stack_copies_done(struct stack_copies *copies);
/* Returns the bytes of memory that the copies take. */
size_t stack_copies_bytes(const struct stack_copies *copies);

/* Returns memory for so many bytes after those used, valid until the next call; stack_copies_use()
 * takes it and returns its offset. */
char *stack_copies_reserve(struct stack_copies *copies, size_t bytes);
size_t stack_copies_use(struct stack_copies *copies, size_t bytes);
void stack_copies_add(struct stack_copies *copies, const struct stack_copy *copy);

/* Finds the copy of the thread's stacks since that switch out. NULL: there is none. */
const struct stack_copy *stack_copies_find(const struct stack_copies *copies, uint32_t tid,
					   uint64_t sequence);

#endif
