/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/unwinder.h"
#include "base/clock.h"
#include "base/names.h"
#include "unwind/frame_step.h"
#include "unwind/walker.h"
#include "unwind/file_request.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLLOW_TRIES 8	    /* tries to follow code at one address; stacks may be broken */
#define CALL_ALIGNMENT 16   /* stack alignment at a call: System V ABI, AMD64 3.2.2 */
#define START_BYTES_MAX 256 /* stack bytes of all that a program begins with before main */
#define CALL_BYTES_MAX 7
#define RETURNS_MAX 16 /* uretprobes that may be pending in a stack */
#define PROCESS_IDLE_NS (30 * NS_PER_SECOND)

/* True if that /proc shows other ids than system calls take. */
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
		   struct parser *memory, size_t copy_bytes)
{
	*unwinder = (struct unwinder){.proc_root = proc_root, .modules = modules};
	process_maps_cache_init(&unwinder->processes);
	unwinder->java = java_frames_new(proc_root, modules, memory);
	thread_memory_init(&unwinder->memory, proc_root, ids_foreign(proc_root), copy_bytes);
}

void unwinder_done(struct unwinder *unwinder)
{
	unwinder_forget(unwinder);
	free(unwinder->java);
	thread_memory_done(&unwinder->memory);
}

void unwinder_forget(struct unwinder *unwinder)
{
	cache_done(&unwinder->processes);
	java_frames_clear(unwinder->java);
}

void unwinder_forget_runtimes(struct unwinder *unwinder)
{
	java_frames_clear(unwinder->java);
}

void unwinder_drop_ended(struct unwinder *unwinder)
{
	process_maps_drop_ended(&unwinder->processes, unwinder->proc_root);
}

void unwinder_sweep(struct unwinder *unwinder, int64_t now_ns)
{
	cache_sweep(&unwinder->processes, now_ns, PROCESS_IDLE_NS);
	java_frames_sweep(unwinder->java, now_ns);
}

const struct mapping *walker_code(struct walker *walker, uint64_t address)
{
	struct unwinder *unwinder = walker->unwinder;

	return mapping_find(walker->maps, unwinder->proc_root, walker->thread, unwinder->modules,
			    &unwinder->memory, address);
}

/* Finds the code at ip. False: there is none. */
static bool code_of(struct walker *walker, uint64_t ip, struct code *code)
{
	const struct mapping *mapping = walker_code(walker, ip);
	struct module *module = NULL;

	*code = (struct code){.mapping = mapping, .address = ip};
	if (!mapping)
		return false;
	if (mapping->module != MODULE_NONE)
		module = walker->unwinder->modules->modules[mapping->module];
	if (module)
		module->walked_ns = walker->thread->now_ns;
	if (module && !walker->walk->count && module->table.machine)
		walker->machine = module->table.machine; /* /proc does not show 32-bit code */
	if (module && !mapping->jit && module->table.machine == walker->machine &&
	    elf_address_of(&module->elf, ip - mapping->start + mapping->offset, &code->address))
		code->module = module;
	return true;
}

/* Reads the maps again, which lack ip, and finds the code there. */
static bool code_again(struct walker *walker, uint64_t ip, struct code *code)
{
	return process_maps_again(walker->maps, walker->unwinder->proc_root, walker->thread) &&
	       code_of(walker, ip, code);
}

/* True if the bytes end in a call. Only x86's calls can be recognized. */
static bool ends_in_call(const uint8_t bytes[CALL_BYTES_MAX])
{
	/* lengths of call *..., from 0xff on: a register; with a distance of 8 bits, of 32; these
	 * two with an index */
	static const uint8_t lengths[] = {2, 3, 6, 4, 7};

	if (bytes[2] == 0xe8) /* call distance */
		return true;
	for (size_t i = 0; i < sizeof(lengths); i++) {
		const uint8_t *at = bytes + CALL_BYTES_MAX - lengths[i];

		if (at[0] == 0xff && (at[1] & 0x38) == 0x10)
			return true;
	}
	return false;
}

static enum return_kind return_in_file(struct walker *walker, const struct code *code,
				       uint64_t address)
{
	const struct elf_file *elf = &code->module->elf;
	uint64_t offset = address - code->mapping->start + code->mapping->offset;
	uint8_t bytes[CALL_BYTES_MAX];

	if (!elf_file_take(elf, offset - sizeof(bytes), bytes, sizeof(bytes)) &&
	    ends_in_call(bytes))
		return RETURN_OF_CALL;
	return signal_frame_is(walker->machine, elf, offset) ? RETURN_OF_SIGNAL : RETURN_NONE;
}

/* Returns what returns to an address. Files don't change, so that a file's answer is kept in its
 * rows. */
static enum return_kind return_kind_of(struct walker *walker, uint64_t address)
{
	uint8_t bytes[CALL_BYTES_MAX];
	struct frame_row *row;
	struct code code;

	if (address < sizeof(bytes) || !code_of(walker, address - 1, &code))
		return RETURN_NONE;
	if (!code.module)
		return !thread_memory_read_code(&walker->unwinder->memory, address - sizeof(bytes),
						bytes, sizeof(bytes)) &&
				       ends_in_call(bytes)
			       ? RETURN_OF_CALL
			       : RETURN_NONE;
	row = module_row_other(walker->unwinder->modules, code.module, code.address);
	if (row->return_kind == RETURN_UNKNOWN)
		row->return_kind = return_in_file(walker, &code, address);
	return row->return_kind;
}

bool walker_is_return(struct walker *walker, uint64_t address)
{
	return walker->machine->ra_in_register || (address && address == walker->maps->uprobes) ||
	       return_kind_of(walker, address) != RETURN_NONE;
}

bool walker_word(struct walker *walker, uint64_t address, uint64_t *word)
{
	return !word_read(walker->machine, &walker->unwinder->memory, address, word);
}

/* Leaves code without a table that has not made its frame yet, or makes none: its return address is
 * where a call leaves it. */
bool walker_return_at_once(struct walker *walker)
{
	struct user_registers *registers = &walker->registers;
	uint64_t ip;

	if (walker->machine->ra_in_register || !walker_word(walker, registers->sp, &ip) ||
	    !walker_is_return(walker, ip))
		return false;
	registers->ip = ip;
	registers->sp += walker->machine->word_bytes;
	return true;
}

/* True if a return that was found has a return address on the stack. After a call that does not
 * return lies another function, at whose return the stack pointer would be as it was at the call;
 * this function's return address never lies at an address with that alignment. */
static bool is_return_at(struct walker *walker, const struct x86_return *found)
{
	uint64_t address = walker->registers.sp, ip;

	if (found->base != walker->machine->sp &&
	    !user_register_get(&walker->registers, found->base, &address))
		return false;
	address += (uint64_t)(int64_t)found->offset;
	return address >= walker->registers.sp &&
	       (!found->called || found->base != walker->machine->sp ||
		address % CALL_ALIGNMENT == CALL_ALIGNMENT - 8) &&
	       walker_word(walker, address, &ip) && walker_is_return(walker, ip);
}

/* Returns the row that following the code gives, or NULL. */
static const struct frame_row *row_followed(struct walker *walker, const struct code *code)
{
	struct module_table *modules = walker->unwinder->modules;
	static struct file_returns_answer answer;
	struct frame_row *row, made;
	size_t i = 0;
	int err;

	if (!code->module || walker->machine->elf != EM_X86_64 || modules->without_tables)
		return NULL;
	row = module_row_other(modules, code->module, code->address);
	if (row->followed || row->tries >= FOLLOW_TRIES)
		return row->followed ? row : NULL;
	err = module_returns(modules, code->module, code->address + !walker->exact, walker->exact,
			     &answer);
	if (err == -EAGAIN)
		return NULL;
	row->tries = err || !answer.count ? FOLLOW_TRIES : row->tries + 1;
	while (!err && i < answer.count &&
	       !(x86_return_row(&answer.returns[i], &made) &&
		 is_return_at(walker, &answer.returns[i])))
		i++;
	if (err || i == answer.count)
		return NULL;
	/* the request for returns may have moved the row */
	row = module_row_other(modules, code->module, code->address);
	made.return_kind = row->return_kind;
	made.looked = row->looked;
	made.end = row->end;
	*row = made;
	return row;
}

/* Goes to the caller of code in a file that has no table. */
static int step_in_file(struct walker *walker, const struct code *code)
{
	struct thread_memory *memory = &walker->unwinder->memory;
	struct user_registers *registers = &walker->registers, by_pointer = *registers,
			      by_code = *registers;
	const struct frame_row *row = row_followed(walker, code);
	bool followed = row;
	int err = row ? frame_step_row(walker->machine, code->module->table.operations, row, memory,
				       &by_code)
		      : -ENODATA;

	if (err == -ENOSPC || (!err && walker_is_return(walker, by_code.ip))) {
		*registers = err ? *registers : by_code;
		return err;
	}
	if (walker->exact && !followed && walker_return_at_once(walker))
		return 0;
	err = frame_step_pointer(walker->machine, memory, &by_pointer);
	/* no code calls what a thread begins with, and its frame pointer is 0 */
	if (!err && by_pointer.word[walker->machine->fp] &&
	    !walker_is_return(walker, by_pointer.ip))
		return -EBADMSG;
	if (!err)
		*registers = by_pointer;
	return err;
}

/* Returns the end of a walk whose thread could not be read at all. */
static enum walk_end end_of_refusal(int err)
{
	return err == -EPERM || err == -EACCES ? WALK_REFUSED : WALK_GONE;
}

static enum walk_end end_of_error(int err)
{
	if (err > 0)
		return WALK_WHOLE;
	if (err == -ENOSPC)
		return WALK_CUT;
	return err == -ENODATA || err == -EBADMSG ? WALK_LOST : WALK_UNREAD;
}

/* Adds the frame that is in the code at ip, with its part of the stack from sp on. False: there is
 * no code. */
static bool frame_add(struct walker *walker, uint64_t ip, uint64_t sp, struct code *code)
{
	struct stack_walk *walk = walker->walk;

	if (!code_of(walker, ip, code) && !code_again(walker, ip, code))
		return false;
	walk->locations[walk->count] = (struct frame_location){ip, sp};
	walk->frames[walk->count++] = (struct frame){code->mapping->module, code->address};
	return true;
}

static const struct frame_row *row_of(struct walker *walker, const struct code *code)
{
	return code->module ? module_row(walker->unwinder->modules, code->module, code->address)
			    : NULL;
}

/* True if code without a table is what a signal's handler returns to. No call leads there. */
static bool is_signal_frame(struct walker *walker, const struct code *code)
{
	return !walker->exact && code->module &&
	       return_kind_of(walker, walker->registers.ip) == RETURN_OF_SIGNAL;
}

/* True if a frame that could not be left is where the kernel had the program begin. What is there
 * never returns, so that C libraries without tables need not say how it would. */
static bool is_start(struct walker *walker)
{
	uint64_t start =
		process_stack_start(walker->maps, walker->unwinder->proc_root, walker->thread);

	return start && walker->registers.sp <= start &&
	       start - walker->registers.sp <= START_BYTES_MAX;
}

/* Returns whether a stack ends at code without a row: the file's table may say so. */
static enum stack_end end_of(struct walker *walker, const struct code *code)
{
	struct module *module = code->module;

	if (!module || module->table.without || row_of(walker, code))
		return STACK_GOES_ON;
	return module_row_other(walker->unwinder->modules, module, code->address)->end;
}

/* Goes to the caller of the code. Returns 0, 1: there is no caller, or -errno. */
static int frame_leave(struct walker *walker, const struct code *code, bool signal)
{
	struct thread_memory *memory = &walker->unwinder->memory;
	const struct frame_row *row = row_of(walker, code);
	int err;

	if (row)
		err = frame_step_row(walker->machine, code->module->table.operations, row, memory,
				     &walker->registers);
	else if (signal)
		err = signal_frame_step(walker->machine, memory, &walker->registers);
	else if (code->mapping->jit)
		err = walker_leave_jit(walker);
	else if (end_of(walker, code) == STACK_ENDS)
		err = 1;
	else
		err = step_in_file(walker, code);
	if (err && err != -ENOSPC && !row && is_start(walker))
		err = 1;
	walker->exact = row ? row->signal : signal;
	return err;
}

/* True if the frame is where a stack begins, as that of makecontext(3) does: its function returns
 * to the begin of one that did not call it. A call would end there, but the byte before is in no
 * function. */
static bool is_first(struct walker *walker, const struct code *code)
{
	const struct frame_row *row;

	if (walker->exact || !code->module || row_of(walker, code))
		return false;
	row = module_row(walker->unwinder->modules, code->module, code->address + 1);
	return row && row->begin == code->address + 1;
}

/* Leaves out frames in the middle of a deep stack, so that there is room for those further out. */
static void walk_shorten(struct stack_walk *walk)
{
	const uint32_t inner = STACK_FRAMES_MAX / 2, outer = inner / 2;
	const uint32_t from = walk->count - outer;

	walk->frames[inner] = frame_of_name(MODULE_MARK, name_transient_string(MARK_DEEP));
	memmove(&walk->frames[inner + 1], &walk->frames[from], outer * sizeof(walk->frames[0]));
	memmove(&walk->locations[inner + 1], &walk->locations[from],
		outer * sizeof(walk->locations[0]));
	walk->count = inner + 1 + outer;
}

/* Replaces the address that a function with a uretprobe returns to by its caller's. False: that is
 * not known; a thread that runs may have called the function from elsewhere meanwhile. */
static bool return_restore(struct walker *walker)
{
	struct user_return returns[RETURNS_MAX];
	uint64_t sp = walker->registers.sp;
	size_t count =
		walker->stands && walker->unwinder->returns
			? walker->unwinder->returns(walker->thread->tid, returns, RETURNS_MAX)
			: 0;

	if (!walker->machine->ra_in_register)
		sp -= walker->machine->word_bytes;
	for (size_t i = 0; i < count; i++)
		if (returns[i].sp == sp) {
			walker->registers.ip = returns[i].address;
			return true;
		}
	walker->walk->frames[walker->walk->count] =
		frame_of_name(MODULE_MARK, name_transient_string(MARK_URETPROBE));
	walker->walk->locations[walker->walk->count++] =
		(struct frame_location){walker->registers.ip, walker->registers.sp};
	return false;
}

/* True if the frame is reached by the return of a function that has a uretprobe. */
static bool is_uretprobe(const struct walker *walker)
{
	return !walker->exact && walker->registers.ip &&
	       walker->registers.ip == walker->maps->uprobes;
}

/* Adds the frame that registers are in, and goes to its caller's. False: there is none, and *end
 * says why. */
static bool frame_take(struct walker *walker, enum walk_end *end)
{
	struct user_registers *registers = &walker->registers;
	uint64_t sp = registers->sp;
	bool first = !walker->walk->count, signal, outermost, added = false;
	struct code code;
	int err;

	if (!is_uretprobe(walker))
		added = frame_add(walker, registers->ip - !walker->exact, sp, &code);
	/* the maps may have been read again */
	if (is_uretprobe(walker)) {
		if (!return_restore(walker)) {
			*end = WALK_LOST;
			return false;
		}
		added = frame_add(walker, registers->ip - !walker->exact, sp, &code);
	}
	signal = added && !row_of(walker, &code) && is_signal_frame(walker, &code);
	outermost = added && !signal && is_first(walker, &code);
	if (signal || outermost) {
		walker->walk->count--;
		added = frame_add(walker, registers->ip, sp, &code);
	}
	if (!added || outermost) {
		*end = registers->ip && !outermost ? WALK_OUTSIDE : WALK_WHOLE;
		return false;
	}
	err = frame_leave(walker, &code, signal);
	if (walker->exact)
		walker->walk->frames[walker->walk->count - 1] =
			frame_of_name(MODULE_MARK, name_transient_string(MARK_SIGNAL));
	/* a handler may run on a stack of its own; any other caller's frame lies above */
	if (!err && !walker->exact && (registers->sp < sp || (registers->sp == sp && !first)))
		err = -EBADMSG;
	if (err < 0 && err != -ENOSPC && end_of(walker, &code) == STACK_ENDS_IF_LOST)
		err = 1;
	if (err)
		*end = end_of_error(err);
	return !err;
}

static struct walker walk_begin(struct unwinder *unwinder, const struct stack_thread *thread,
				const struct user_registers *registers, struct process_maps *maps,
				struct stack_walk *walk)
{
	walk->count = 0;
	walk->end = WALK_GONE;
	unwinder->modules->walked_pid = thread->pid;
	unwinder->memory.pid = thread->pid;
	return (struct walker){
		.unwinder = unwinder,
		.thread = thread,
		.machine = machine_of(registers->compat),
		.maps = maps,
		.registers = *registers,
		.exact = true,
		.walk = walk,
	};
}

/* Walks a stack once. copy NULL: the thread's memory stands still. */
static void walk_once(struct unwinder *unwinder, const struct stack_thread *thread,
		      const struct user_registers *registers, const struct stack_bytes *copy,
		      struct process_maps *maps, struct stack_walk *walk)
{
	struct walker walker = walk_begin(unwinder, thread, registers, maps, walk);
	int err = 0;

	walker.stands = !copy;
	if (!walker.machine || !maps)
		return;
	if (copy)
		thread_memory_begin_copied(&unwinder->memory, thread->tid, registers->sp,
					   copy->bytes, copy->count);
	else
		err = thread_memory_begin(&unwinder->memory, thread->tid, registers->sp);
	/* code may lie where there is no stack */
	if (err && err != -EFAULT) {
		walk->end = end_of_refusal(err);
		return;
	}
	walk->end = WALK_DEEP;
	for (int depth = 0; depth < STACK_DEPTH_MAX; depth++) {
		if (walk->count == STACK_FRAMES_MAX)
			walk_shorten(walk);
		if (!frame_take(&walker, &walk->end))
			break;
	}
}

void unwinder_walk(struct unwinder *unwinder, const struct stack_thread *thread,
		   const struct user_registers *registers, const struct stack_bytes *copy,
		   struct stack_walk *walk)
{
	int err = 0;
	struct process_maps *maps =
		process_maps_get(&unwinder->processes, unwinder->proc_root, thread, &err);

	walk_once(unwinder, thread, registers, copy, maps, walk);
	/* another file may lie at the same addresses since the maps were read: exec, dlclose */
	if (walk->end != WALK_WHOLE && walk->end != WALK_GONE && walk->end != WALK_CUT &&
	    walk->end != WALK_REFUSED && process_maps_again(maps, unwinder->proc_root, thread))
		walk_once(unwinder, thread, registers, copy, maps, walk);
	if (!maps)
		walk->end = end_of_refusal(err);
	walk->maps_new = maps && maps->read_ns == thread->now_ns;
	unwinder->ended[walk->end]++;
}

void unwinder_walk_chain(struct unwinder *unwinder, const struct stack_thread *thread,
			 const uint64_t *chain, uint32_t count, struct stack_walk *walk)
{
	const struct user_registers none = {.ip = 0};
	int err = 0;
	struct process_maps *maps =
		process_maps_get(&unwinder->processes, unwinder->proc_root, thread, &err);
	struct walker walker = walk_begin(unwinder, thread, &none, maps, walk);
	struct code code;

	thread_memory_begin_copied(&unwinder->memory, thread->tid, 0, NULL, 0);
	walk->end = maps ? WALK_WHOLE : end_of_refusal(err);
	for (uint32_t i = 0; walk->end == WALK_WHOLE && i < count; i++) {
		if (walk->count == STACK_FRAMES_MAX)
			walk->end = WALK_DEEP;
		else if (!frame_add(&walker, chain[i] - (i > 0), 0, &code))
			walk->end = WALK_OUTSIDE;
	}
	unwinder->ended[walk->end]++;
}
