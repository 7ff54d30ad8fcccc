/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/kernel_stack.h"
#include "base/memory.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"
#include "unwind/function_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES 16384
#define NAMES_BYTES_MAX (64u << 20)
#define FUNCTION_BYTES_MAX (256u << 10) /* after a module's last one there may be nothing */
#define KEY_BITS (UINT64_MAX >> 4)	/* the upper bits of all addresses of the kernel are 1 */

static void name_add(struct kernel_symbols *symbols, uint64_t address, const char *name,
		     size_t length)
{
	if (symbols->names_bytes + length > NAMES_BYTES_MAX) {
		symbols->table.refused++;
		return;
	}
	symbols->names = memory_grow(symbols->names, &symbols->names_capacity,
				     symbols->names_bytes + length + 1, 1);
	symbol_add(&symbols->table, address & KEY_BITS, 0, 0, 0, symbols->names_bytes);
	memcpy(symbols->names + symbols->names_bytes, name, length);
	symbols->names[symbols->names_bytes + length] = '\0';
	symbols->names_bytes += length + 1;
}

/* Takes the bounds of the section .sched.text, include/asm-generic/sections.h. */
static void bound_take(struct kernel_symbols *symbols, uint64_t address, const char *name)
{
	if (!strcmp(name, "__sched_text_start"))
		symbols->sched_from = address;
	else if (!strcmp(name, "__sched_text_end"))
		symbols->sched_to = address;
}

/* Takes a line: "ffffffff81000000 T name", and after a tab "[module]". */
static void line_take(void *of, char *line)
{
	struct kernel_symbols *symbols = of;
	size_t length;
	char *at;
	uint64_t address = strtoull(line, &at, 16);

	/* text sections only; addresses are 0 for users who may not know them */
	if (!address || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ')
		return;
	length = strcspn(at + 3, " \t;");
	if (length)
		name_add(symbols, address, at + 3, length);
	bound_take(symbols, address, at + 3);
}

int kernel_symbols_read(struct kernel_symbols *symbols, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*symbols = (struct kernel_symbols){.err = fd < 0 ? -errno : 0};
	if (fd < 0)
		return symbols->err;
	symbols->err = lines_each(fd, UINT64_MAX, line_take, symbols);
	close(fd);
	/* of several names of an address the first one is kept, as the kernel does */
	symbol_table_sort(&symbols->table, false);
	if (!symbols->err && !symbols->table.count)
		symbols->err = -ENODATA;
	return symbols->err;
}

void kernel_symbols_done(struct kernel_symbols *symbols)
{
	symbol_table_done(&symbols->table);
	free(symbols->names);
	*symbols = (struct kernel_symbols){.names = NULL};
}

const char *kernel_symbol_find(const struct kernel_symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbol_find(&symbols->table, address & KEY_BITS);

	if (!symbol || (address & KEY_BITS) - symbol_address(symbol) > FUNCTION_BYTES_MAX)
		return NULL;
	return symbols->names + symbol_location(symbol);
}

void kernel_stack_parse(struct kernel_stack *stack, const char *text)
{
	stack->count = 0;
	while (*text && stack->count < KERNEL_FRAMES_MAX) {
		size_t line = strcspn(text, "\n"), name, length;

		/* a line begins with an address: 0 for users who may not know it;
		 * 0xffffffffffffffff ended the list until Linux 5.1 */
		name = strcspn(text, "]");
		if (name < line && text[name + 1] == ' ') {
			name += 2;
			length = strcspn(text + name, "+\n");
			if (length >= KERNEL_NAME_SIZE)
				length = KERNEL_NAME_SIZE - 1;
			if (length && text[name] != '0') {
				memcpy(stack->names[stack->count], text + name, length);
				stack->names[stack->count++][length] = '\0';
			}
		}
		text += line + (text[line] == '\n');
	}
}

ssize_t kernel_stack_read_text(const char *proc_root, int64_t tid, char *text, size_t size)
{
	return proc_file_read(proc_root, 0, tid, "stack", text, size);
}

int kernel_stack_read(struct kernel_stack *stack, const char *proc_root, int64_t tid)
{
	char text[STACK_BYTES];
	ssize_t length = kernel_stack_read_text(proc_root, tid, text, sizeof(text));

	if (length < 0)
		return (int)length;
	kernel_stack_parse(stack, text);
	return 0;
}

/* Functions where interrupts enter the kernel: arch/x86/include/asm/idtentry.h (Linux 5.8; before,
 * the entries of irq_entries_start and apicinterrupt), arch/arm64/kernel/entry.S and
 * entry-common.c. */
static const char *const interrupt_entries[] = {
	"asm_sysvec_*",		"asm_common_interrupt",
	"common_interrupt",	"apic_timer_interrupt",
	"reschedule_interrupt", "call_function*interrupt",
	"ret_from_intr",	"retint_*",
	"el[01]_irq",		"el[01]_interrupt",
	"__el[01]_irq*",	"el[01]*_irq_handler",
	"el[01][ht]_*_irq",
};

static const char *const preemptions[] = {"__cond_resched", "preempt_schedule*", "__schedule",
					  "schedule"};

bool kernel_entry_interrupts(const char *function)
{
	return NAME_AMONG(function, interrupt_entries);
}

/* Returns how many frames the innermost interrupt has. 0: there is none. */
static uint32_t interrupt_frames(const struct kernel_stack *stack)
{
	uint32_t at = 0;

	while (at < stack->count && !NAME_AMONG(stack->names[at], interrupt_entries))
		at++;
	if (at == stack->count)
		return 0;
	while (at < stack->count && NAME_AMONG(stack->names[at], interrupt_entries))
		at++;
	return at;
}

static void innermost_drop(struct kernel_stack *stack, uint32_t count)
{
	stack->count -= count;
	memmove(stack->names, stack->names[count], stack->count * sizeof(stack->names[0]));
}

void kernel_stack_resume(struct kernel_stack *stack)
{
	uint32_t passed = 0;

	innermost_drop(stack, interrupt_frames(stack));
	while (passed < stack->count && NAME_AMONG(stack->names[passed], preemptions))
		passed++;
	innermost_drop(stack, passed);
}

/* Adds the name of a frame. exact: the address is no call's return address. Returns whether the
 * next one is not, either: it is where an interrupt or exception interrupted. */
static bool frame_name(struct kernel_stack *stack, const struct kernel_symbols *symbols,
		       uint64_t address, bool exact)
{
	const char *name = kernel_symbol_find(symbols, address - !exact);

	snprintf(stack->names[stack->count], KERNEL_NAME_SIZE, "%s", name ? name : "[unknown]");
	return !strncmp(stack->names[stack->count++], "asm_", 4);
}

/* True if the address is in the scheduler. Looks at return addresses as they are, as
 * in_sched_functions() of the kernel does. */
static bool is_sched(const struct kernel_symbols *symbols, uint64_t address)
{
	return address >= symbols->sched_from && address < symbols->sched_to;
}

bool kernel_stack_of_switch(struct kernel_stack *stack, const struct kernel_symbols *symbols,
			    const uint64_t *chain, uint32_t count)
{
	bool exact = false;
	uint32_t at = 0;

	stack->count = 0;
	/* skip the BPF program that took the chain, and its callers */
	while (at < count && !is_sched(symbols, chain[at]))
		at++;
	if (at == count)
		return false;
	for (; at < count && stack->count < KERNEL_FRAMES_MAX; at++)
		if (is_sched(symbols, chain[at]))
			exact = false;
		else
			exact = frame_name(stack, symbols, chain[at], exact);
	return true;
}

bool kernel_stack_of_chain(struct kernel_stack *stack, const struct kernel_symbols *symbols,
			   const uint64_t *chain, uint32_t count, bool interrupted)
{
	bool exact = true;
	uint32_t frames;

	stack->count = 0;
	for (uint32_t i = 0; i < count && stack->count < KERNEL_FRAMES_MAX; i++)
		exact = frame_name(stack, symbols, chain[i], exact);
	if (!interrupted || !count)
		return true;
	frames = interrupt_frames(stack);
	innermost_drop(stack, frames);
	return frames;
}

void kernel_stack_leave_tracepoint(struct kernel_stack *stack)
{
	/* __bpf_trace_NAME: until 5.10; __traceiter_NAME: since (include/linux/tracepoint.h) */
	static const char *const callers[] = {"bpf_prog_", "bpf_trace_run", "__bpf_trace_",
					      "__traceiter_", "bpf_get_stackid"};
	uint32_t frames = 0;
	bool found = true;

	while (found && frames < stack->count) {
		found = false;
		for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
			found |= !strncmp(stack->names[frames], callers[i], strlen(callers[i]));
		frames += found;
	}
	innermost_drop(stack, frames);
}
