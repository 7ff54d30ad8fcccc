/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/unwinder.h"
#include "base/clock.h"
#include "stack/frame_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION_BYTES_MAX 1024 /* of one that is told by a call of it, */
#define SEARCH_WORDS 64		/* which is searched for so far */
#define PROCESS_IDLE_NS (10 * NS_PER_SECOND)

/* Whether that /proc tells other ids than system calls take. */
static bool ids_foreign(const char *proc_root)
{
	char path[256], pid[32];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/self", proc_root);
	length = readlink(path, pid, sizeof(pid) - 1);
	if (length <= 0)
		return true;
	pid[length] = '\0';
	return strtoll(pid, NULL, 10) != getpid();
}

void unwinder_init(struct unwinder *unwinder, const char *proc_root, struct module_table *modules,
		   size_t copy_bytes)
{
	*unwinder = (struct unwinder){.proc_root = proc_root, .modules = modules};
	process_maps_cache_init(&unwinder->processes);
	thread_memory_init(&unwinder->memory, proc_root, ids_foreign(proc_root), copy_bytes);
}

void unwinder_done(struct unwinder *unwinder)
{
	cache_done(&unwinder->processes);
	thread_memory_done(&unwinder->memory);
}

void unwinder_forget(struct unwinder *unwinder)
{
	cache_done(&unwinder->processes);
}

void unwinder_sweep(struct unwinder *unwinder, int64_t now_ns)
{
	cache_sweep(&unwinder->processes, now_ns, PROCESS_IDLE_NS);
}

/* One walk's own. */
struct walker {
	struct unwinder *unwinder;
	const struct stack_thread *thread;
	const struct machine *machine;
	struct process_maps *maps;
	struct user_registers registers;
	bool exact; /* ip is where the thread is or was interrupted, not where a call returns to */
	struct stack_walk *walk;
};

static const struct mapping *code_find(struct walker *walker, uint64_t address)
{
	struct unwinder *unwinder = walker->unwinder;

	return mapping_find(walker->maps, unwinder->proc_root, walker->thread, unwinder->modules,
			    &unwinder->memory, address);
}

/* Looks at the maps again where they don't know the place. */
static const struct mapping *code_find_again(struct walker *walker, uint64_t address)
{
	const struct mapping *mapping = code_find(walker, address);

	if (mapping ||
	    !process_maps_again(walker->maps, walker->unwinder->proc_root, walker->thread))
		return mapping;
	return code_find(walker, address);
}

/* What comes before an address that a call may return to. */
enum call_kind {
	CALL_NONE,
	CALL_SOMEWHERE,
	CALL_THERE, /* to shortly before where the frame below is */
};

/* ip: where that frame is. Only x86's calls tell by their bytes. */
static enum call_kind call_before(struct walker *walker, uint64_t address, uint64_t ip)
{
	struct thread_memory *memory = &walker->unwinder->memory;
	uint8_t bytes[7];
	int32_t distance;

	if (walker->machine->ra_in_register)
		return CALL_SOMEWHERE;
	if (address < sizeof(bytes) || !code_find(walker, address - 1) ||
	    thread_memory_read(memory, address - sizeof(bytes), bytes, sizeof(bytes)))
		return CALL_NONE;
	if (bytes[2] == 0xe8) {
		memcpy(&distance, bytes + 3, sizeof(distance));
		address += (uint64_t)(int64_t)distance;
		return address <= ip && ip - address < FUNCTION_BYTES_MAX ? CALL_THERE
									  : CALL_SOMEWHERE;
	}
	/* call *reg, *disp8(reg), *disp32(reg) */
	return (bytes[5] == 0xff && (bytes[6] & 0x38) == 0x10) ||
			       (bytes[4] == 0xff && (bytes[5] & 0x38) == 0x10) ||
			       (bytes[1] == 0xff && (bytes[2] & 0x38) == 0x10)
		       ? CALL_SOMEWHERE
		       : CALL_NONE;
}

static bool word_at(struct walker *walker, uint64_t address, uint64_t *word)
{
	return !word_read(walker->machine, &walker->unwinder->memory, address, word);
}

/* Code without a table that has not made its frame yet, or makes none: its return address is where
 * a call leaves it. */
static bool returns_at_once(struct walker *walker)
{
	struct user_registers *registers = &walker->registers;
	uint64_t ip;

	if (walker->machine->ra_in_register || !word_at(walker, registers->sp, &ip) ||
	    call_before(walker, ip, registers->ip) == CALL_NONE)
		return false;
	registers->ip = ip;
	registers->sp += walker->machine->word_bytes;
	return true;
}

/* The first word of the stack that a call of this very function has left: for code that has neither
 * table nor frame pointers, as musl's. No other register is known then. */
static bool call_search(struct walker *walker, struct user_registers *registers)
{
	uint64_t sp = registers->sp, ip;

	for (int i = 0; i < SEARCH_WORDS && word_at(walker, sp, &ip); i++) {
		sp += walker->machine->word_bytes;
		if (call_before(walker, ip, registers->ip) != CALL_THERE)
			continue;
		*registers =
			(struct user_registers){.ip = ip, .sp = sp, .compat = registers->compat};
		return true;
	}
	return false;
}

/* To the caller of code without a table: along the frame pointer, if that leads behind a call; made
 * by a JIT compiler it always has one. */
static int step_without_table(struct walker *walker, bool jit)
{
	struct user_registers before = walker->registers;
	int err;

	if (walker->exact && returns_at_once(walker))
		return 0;
	err = frame_step_pointer(walker->machine, &walker->unwinder->memory, &walker->registers);
	if (jit || walker->machine->ra_in_register ||
	    (!err && call_before(walker, walker->registers.ip, before.ip) != CALL_NONE) ||
	    !call_search(walker, &before))
		return err;
	walker->registers = before;
	return 0;
}

static enum walk_end end_of_error(int err)
{
	if (err > 0)
		return WALK_WHOLE;
	return err == -ENODATA || err == -EBADMSG ? WALK_LOST : WALK_UNREAD;
}

/* Adds the frame that registers are in, and goes to its caller's. *end where there is none. */
static bool frame_take(struct walker *walker, enum walk_end *end)
{
	struct user_registers *registers = &walker->registers;
	uint64_t sp = registers->sp, ip = registers->ip - !walker->exact, address = ip, offset;
	const struct mapping *mapping = code_find_again(walker, ip);
	struct stack_walk *walk = walker->walk;
	const struct frame_row *row = NULL;
	struct module *module = NULL;
	bool first = !walk->count;
	int err = 0;

	if (!mapping) {
		*end = registers->ip ? WALK_OUTSIDE : WALK_WHOLE;
		return false;
	}
	if (mapping->module != MODULE_NONE)
		module = walker->unwinder->modules->modules[mapping->module];
	offset = ip - mapping->start + mapping->offset;
	if (module && first && module->table.machine)
		walker->machine = module->table.machine; /* /proc does not tell 32-bit code */
	if (module && !mapping->jit && module->table.machine == walker->machine &&
	    elf_address_of(&module->elf, offset, &address))
		row = module_row(walker->unwinder->modules, module, address);
	walk->frames[walk->count++] = (struct frame){mapping->module, address};
	if (row)
		err = frame_step_row(walker->machine, &module->table, row,
				     &walker->unwinder->memory, registers);
	else
		err = step_without_table(walker, mapping->jit);
	walker->exact = row && row->signal;
	/* a handler may run on a stack of its own; any other caller's frame lies above */
	if (!err && !walker->exact && (registers->sp < sp || (registers->sp == sp && !first)))
		err = -EBADMSG;
	if (err)
		*end = end_of_error(err);
	return !err;
}

void unwinder_walk(struct unwinder *unwinder, const struct stack_thread *thread,
		   const struct user_registers *registers, struct stack_walk *walk)
{
	struct walker walker = {.unwinder = unwinder,
				.thread = thread,
				.machine = machine_of(registers->compat),
				.registers = *registers,
				.exact = true,
				.walk = walk};
	int err = -ESRCH;

	walk->count = 0;
	walk->end = WALK_GONE;
	walker.maps = process_maps_get(&unwinder->processes, unwinder->proc_root, thread);
	if (walker.machine && walker.maps)
		err = thread_memory_begin(&unwinder->memory, thread->tid, registers->sp);
	/* where there is no stack, there may be code */
	if (!err || err == -EFAULT) {
		walk->end = WALK_DEEP;
		while (walk->count < STACK_FRAMES_MAX && frame_take(&walker, &walk->end))
			;
	}
	unwinder->ended[walk->end]++;
}
