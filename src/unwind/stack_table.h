/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks: each one once, by number and by a 64-bit hash of its frames, and its
 * text as reports have it. Bounded: when it is full, new stacks are refused until it is cleared.
 */
#ifndef TSNAP_UNWIND_STACK_TABLE_H
#define TSNAP_UNWIND_STACK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "unwind/kernel_stack.h"
#include "unwind/stack_names.h"
#include "unwind/unwinder.h"

#define STACKS_MAX 65536
#define STACK_FRAMES_TOTAL_MAX (2u << 20)
#define STACK_NONE UINT32_MAX

struct stack {
	/* user stacks: hash of files and offsets, the same in every run; kernel stacks: of names */
	uint64_t hash;
	uint32_t first, count; /* range in stack_table.frames, innermost first */
	bool kernel;
	bool whole;    /* reaches the outermost frame */
	bool python;   /* has Python functions */
	bool reported; /* the words below are final */
	bool listed;   /* list membership, for the caller's use */
	const char *function, *path, *folded, *files;
};

struct stack_table {
	struct module_table *modules;
	struct stack_names *names;
	struct index at; /* hash to number */
	struct stack *stacks;
	uint32_t count;
	uint32_t *frames; /* numbers of stack_names */
	uint32_t frame_count;
	size_t capacity, frame_capacity;
	uint64_t refused; /* stacks refused because the table was full, since the start */
};

/* A stack in words, as far as names are known; NULL where it has no frame. */
struct stack_words {
	const char *function; /* the innermost frame that says something: see stack_table.c */
	const char *path;     /* the frames that lead there, a>b>c */
	const char *folded;   /* the whole stack, outermost first, a;b;c, kernel frames with _[k] */
	const char *files;    /* a user stack's files, of the frames of folded, path@build-id; "-":
				 none; "": as the frame before */
};

void stack_table_init(struct stack_table *table, struct module_table *modules,
		      struct stack_names *names);
void stack_table_clear(struct stack_table *table);

/* Return the number of a stack, or STACK_NONE. */
uint32_t stack_of_walk(struct stack_table *table, const struct stack_walk *walk);
uint32_t stack_of_kernel(struct stack_table *table, const struct kernel_stack *kernel);

/* Queues the frames' names, so that stack_table_words() may know them. */
void stack_table_want(struct stack_table *table, uint32_t stack);
/* Returns a stack in words. folded: folded and files are wanted, too; else they may be NULL. */
struct stack_words stack_table_words(struct stack_table *table, uint32_t stack, bool folded);
/* True if the table is full: new stacks are refused. */
bool stack_table_full(const struct stack_table *table);

#endif
