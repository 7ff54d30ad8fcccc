/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/stack_table.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "unwind/function_name.h"

#include <stdlib.h>
#include <string.h>

#define PATH_FRAMES 5 /* limit of the frames of a>b>c */
#define FOLDED_BYTES_MAX \
	100000 /* bytes; readers of CSV take fields of 128 KB, and a thread's names are not all */

/* Frames that all stacks of sleeping threads begin with: a wait in the scheduler, and the way into
 * the kernel. */
static const char *const kernel_passed[] = {
	"__schedule*",	  "schedule*",		"io_schedule*",	   "preempt_schedule*",
	"__cond_resched", "__traceiter_*",	"entry_SYSCALL*",  "entry_INT80*",
	"do_syscall_64",  "do_int80*",		"x64_sys_call",	   "ia32_sys_call",
	"el0*_svc*",	  "el0t_64_sync*",	"invoke_syscall*", "do_el0_svc*",
	"ret_from_fork*", "exit_to_user_mode*", "irqentry_exit*",  "asm_*",
};

/* Functions by which a statically linked program enters the kernel. */
static const char *const user_passed[] = {
	"syscall",
	"__syscall*",
	"__internal_syscall*",
	"internal_syscall*",
	"__futex_*",
	"__libc_*",
	"__lll_lock_*",
	"__pthread_*",
	"__GI_*",
	"__clock_nanosleep*",
	"clock_nanosleep*",
	"__nanosleep*",
	"nanosleep",
	"__restore_rt",
	"vfork",
	"__vfork",
	"runtime/internal/syscall.*",
	"internal/runtime/syscall.*",
};

static bool frame_passed(const struct stack *stack, const struct frame_view *view)
{
	if (stack->kernel)
		return NAME_AMONG(view->name, kernel_passed);
	if (stack->python) /* C functions below and between are the interpreter's own */
		return view->kind != FRAME_PYTHON;
	return view->libc || NAME_AMONG(view->name, user_passed);
}

void stack_table_init(struct stack_table *table, struct module_table *modules,
		      struct stack_names *names)
{
	*table = (struct stack_table){.modules = modules, .names = names};
}

void stack_table_clear(struct stack_table *table)
{
	index_clear(&table->at);
	free(table->stacks);
	free(table->frames);
	*table = (struct stack_table){
		.modules = table->modules, .names = table->names, .refused = table->refused};
}

/* Finds a stack, or adds one of count frames (*added). Returns its number or STACK_NONE. */
static uint32_t stack_put(struct stack_table *table, uint64_t hash, uint32_t count,
			  struct stack **added)
{
	const uint64_t *known = count ? index_find(&table->at, hash) : NULL;

	*added = NULL;
	if (known || !count)
		return known ? (uint32_t)*known : STACK_NONE;
	if (table->count == STACKS_MAX || count > STACK_FRAMES_TOTAL_MAX - table->frame_count) {
		table->refused++;
		return STACK_NONE;
	}
	table->stacks = memory_grow(table->stacks, &table->capacity, table->count + 1,
				    sizeof(*table->stacks));
	table->frames = memory_grow(table->frames, &table->frame_capacity,
				    table->frame_count + count, sizeof(*table->frames));
	*index_put(&table->at, hash, NULL) = table->count;
	*added = &table->stacks[table->count];
	**added = (struct stack){.hash = hash, .first = table->frame_count, .count = count};
	table->frame_count += count;
	return table->count++;
}

static uint64_t walk_hash(const struct stack_table *table, const struct stack_walk *walk)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < walk->count; i++) {
		const struct frame *frame = &walk->frames[i];
		const char *name = frame_own_name(frame);
		uint64_t module = 0, address = frame->address;

		if (name)
			address = hash_bytes(name, strlen(name));
		else if (frame->module != MODULE_NONE)
			module = table->modules->modules[frame->module]->identity;
		hash = hash_u64(hash ^ hash_u64(module ^ hash_u64(address)));
	}
	return hash;
}

uint32_t stack_of_walk(struct stack_table *table, const struct stack_walk *walk)
{
	struct stack *stack;
	uint32_t number = stack_put(table, walk_hash(table, walk), walk->count, &stack);

	if (!stack)
		return number;
	stack->whole = walk->end == WALK_WHOLE;
	for (uint32_t i = 0; i < walk->count; i++) {
		table->frames[stack->first + i] = stack_names_frame(table->names, &walk->frames[i]);
		stack->python = stack->python || walk->frames[i].module == MODULE_PYTHON;
	}
	return number;
}

uint32_t stack_of_kernel(struct stack_table *table, const struct kernel_stack *kernel)
{
	uint64_t hash = 1; /* a user stack's hash begins with 0 */
	struct stack *stack;
	uint32_t number;

	for (uint32_t i = 0; i < kernel->count; i++)
		hash = hash_u64(hash ^ hash_bytes(kernel->names[i], strlen(kernel->names[i])));
	number = stack_put(table, hash, kernel->count, &stack);
	if (!stack)
		return number;
	stack->kernel = stack->whole = true;
	for (uint32_t i = 0; i < kernel->count; i++)
		table->frames[stack->first + i] =
			stack_names_kernel(table->names, kernel->names[i]);
	return number;
}

static struct frame_view stack_frame(struct stack_table *table, const struct stack *stack,
				     uint32_t at)
{
	return stack_names_get(table->names, table->frames[stack->first + at]);
}

void stack_table_want(struct stack_table *table, uint32_t number)
{
	const struct stack *stack = &table->stacks[number];

	for (uint32_t i = 0; i < stack->count && !stack->reported; i++)
		stack_frame(table, stack, i);
}

/* Returns how many bytes of each name fit: all of them, unless a stack has many frames with long
 * names. */
static size_t names_most(struct stack_table *table, const struct stack *stack)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < stack->count; i++)
		bytes += strlen(stack_frame(table, stack, i).name);
	return bytes <= FOLDED_BYTES_MAX ? bytes : FOLDED_BYTES_MAX / stack->count;
}

/* Adds the first bytes of a name, whole characters of UTF-8. */
static void name_add(struct text *text, const char *name, size_t most)
{
	size_t length = strlen(name);

	if (length > most) {
		length = most;
		while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	text_add(text, name, length);
}

static void folded_format(struct stack_table *table, struct stack *stack, struct text *text)
{
	/* marks of render/fold.c */
	static const char *const marks[] = {
		[FRAME_PROGRAM] = "",	 [FRAME_LIBRARY] = "_[l]", [FRAME_JIT] = "_[j]",
		[FRAME_KERNEL] = "_[k]", [FRAME_PYTHON] = "_[p]",
	};
	const size_t most = names_most(table, stack);
	struct frame_view view;

	if (!stack->whole)
		text_add_string(text, "[lost]"); /* stands for the frames further out */
	for (uint32_t i = stack->count; i-- > 0;) {
		if (text->length)
			text_add_char(text, ';');
		view = stack_frame(table, stack, i);
		name_add(text, view.name, most);
		text_add_string(text, marks[view.kind]);
	}
	stack->folded = name_transient(text_string(text), text->length);
}

/* Formats the files of the frames of folded_format(), as the column ufiles has them. */
static void files_format(struct stack_table *table, struct stack *stack, struct text *text)
{
	static const char none[] = "-";
	const char *before = NULL;

	if (!stack->whole)
		text_add_string(text, before = none);
	for (uint32_t i = stack->count; i-- > 0;) {
		const struct module *module = stack_frame(table, stack, i).module;
		const char *location = module && module->location ? module->location : none;

		if (text->length + strlen(location) > FOLDED_BYTES_MAX)
			location = none;
		if (before)
			text_add_char(text, ';');
		if (location != before)
			text_add_string(text, location);
		before = location;
	}
	stack->files = name_transient(text_string(text), text->length);
}

/* Formats the path. from: the innermost frame that is not passed. Passed frames further out in a
 * kernel stack or a Python program are left out, too: they are the same in all stacks. */
static void path_format(struct stack_table *table, struct stack *stack, uint32_t from,
			struct text *text)
{
	const char *names[PATH_FRAMES];
	uint32_t count = 0;

	for (uint32_t i = from; i < stack->count && count < PATH_FRAMES; i++) {
		struct frame_view view = stack_frame(table, stack, i);

		if (i == from || !(stack->kernel || stack->python) || !frame_passed(stack, &view))
			names[count++] = view.name;
	}
	while (count--) {
		text_add_string(text, names[count]);
		if (count)
			text_add_char(text, '>');
	}
	stack->path = name_transient(text_string(text), text->length);
}

static struct stack_words stack_reported(const struct stack *stack)
{
	return (struct stack_words){stack->function, stack->path, stack->folded, stack->files};
}

struct stack_words stack_table_words(struct stack_table *table, uint32_t number, bool folded)
{
	struct stack *stack = &table->stacks[number];
	struct text text = {0};
	uint32_t from = stack->count;
	bool final = true;

	if (stack->reported && (stack->folded || !folded))
		return stack_reported(stack);
	for (uint32_t i = 0; i < stack->count; i++) {
		struct frame_view view = stack_frame(table, stack, i);

		final = final && view.final;
		if (from == stack->count && !frame_passed(stack, &view))
			from = i;
	}
	if (from == stack->count)
		from = 0;
	stack->function = stack_frame(table, stack, from).name;
	path_format(table, stack, from, &text);
	text_clear(&text);
	/* drop texts from when fewer names were known */
	stack->folded = stack->files = NULL;
	if (folded)
		folded_format(table, stack, &text);
	text_clear(&text);
	if (folded && !stack->kernel)
		files_format(table, stack, &text);
	text_done(&text);
	stack->reported = final;
	return stack_reported(stack);
}

bool stack_table_full(const struct stack_table *table)
{
	return table->count == STACKS_MAX ||
	       table->frame_count > STACK_FRAMES_TOTAL_MAX - STACK_FRAMES_MAX ||
	       stack_names_full(table->names);
}
