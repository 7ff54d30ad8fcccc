/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_frames.h"
#include "base/clock.h"
#include "base/names.h"
#include "unwind/elf/process_file.h"

#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* an exec may have passed unseen */
#define INTERPRETERS_MAX 64
#define THREADS_LISTED_MAX 8192
#define LIST_CALLS (2 * THREADS_LISTED_MAX)
#define STACK_CALLS 2048	/* of reading memory, for one stack */
#define FRAMES_PASSED_MAX 65536 /* of one */
/* Work is counted, not time, which passes on a full host without any: about 0.1 us each. */
#define WORK_FRAME 1ull		/* passed */
#define WORK_CALL 8ull		/* of reading memory */
#define SCAN_PROCESS_WORK 80000 /* in one scan, for stacks of one process, */
#define SCAN_WORK 200000	/* and of all */
#define LIST_LEAST_NS (5 * NS_PER_MS)
#define LIST_SHARE 50 /* of the time may go into listing one process' threads */
#define NAMES_KEPT_MAX 65536
#define OWNED_BY_STACK 3 /* FRAME_OWNED_BY_CSTACK; in 3.14 FRAME_OWNED_BY_INTERPRETER, and more */
#define POINTER_BITS (~(uint64_t)7) /* 3.14 has marks in the others */

struct python_process {
	struct cache_entry entry; /* key: pid */
	int64_t looked_ns;
	bool known;		     /* python is filled */
	bool foreign;		     /* it knows its threads by other ids */
	const struct module *module; /* whose file it is, and how far from its addresses it lies: */
	uint64_t distance;
	struct python python;
	struct index threads; /* ids to addresses of thread states */
	int64_t next_list_ns;
	int64_t scan_ns;
	uint64_t work; /* of reading its stacks, in that scan */
};

/* A function that is interpreted. */
struct python_frame {
	uint64_t mark; /* address of what its call of the interpreter has on the stack */
	uint64_t code, instruction;
};

/* One stack's. */
struct python_stack {
	struct python_process *process;
	struct thread_memory *memory;
	uint32_t count, passed;
	bool broken;
	struct python_frame frames[STACK_FRAMES_MAX]; /* innermost first */
};

static void process_drop(void *entry)
{
	index_clear(&((struct python_process *)entry)->threads);
}

void python_frames_init(struct python_frames *python, const char *proc_root,
			struct module_table *modules)
{
	*python = (struct python_frames){
		.proc_root = proc_root,
		.modules = modules,
		.processes = {.entry_bytes = sizeof(struct python_process),
			      .entries_max = PROCESSES_MAX,
			      .drop = process_drop},
	};
}

void python_frames_clear(struct python_frames *python)
{
	cache_done(&python->processes);
	index_clear(&python->names);
	index_clear(&python->scan_names);
}

void python_frames_sweep(struct python_frames *python, int64_t now_ns)
{
	cache_sweep(&python->processes, now_ns, PROCESS_IDLE_NS);
}

/* The innermost interpreter that the walk passes, and how far from its file's addresses it lies. */
static const struct module *interpreter_find(const struct python_frames *python,
					     const struct stack_walk *walk, uint64_t *distance)
{
	uint32_t last = MODULE_NONE;

	for (uint32_t i = 0; i < walk->count; i++) {
		const struct frame *frame = &walk->frames[i];
		const struct runtime_exports *exports;
		struct module *module;

		if (frame->module == last || frame->module == MODULE_NONE)
			continue;
		last = frame->module;
		module = python->modules->modules[last];
		exports = module_read_exports(&module->read, python->modules->parser, &module->elf);
		if (exports->python[MODULE_PYTHON_RUNTIME]) {
			*distance = walk->places[i].ip - frame->address;
			return module;
		}
	}
	return NULL;
}

/* The process' interpreter: as the walk passes it, or where that has lost its way, as another walk
 * did. NULL: none is known. */
static struct python_process *process_get(struct python_frames *python,
					  const struct stack_thread *thread,
					  struct thread_memory *memory,
					  const struct stack_walk *walk)
{
	struct python_process *process = cache_find(&python->processes, (uint64_t)thread->pid);
	uint64_t distance = 0;
	const struct module *module = interpreter_find(python, walk, &distance);
	bool added = false;

	if (!module && (walk->end == WALK_WHOLE || !process))
		return NULL;
	process = cache_get(&python->processes, (uint64_t)thread->pid, thread->now_ns, &added);
	if (!added && (!module || (module == process->module && distance == process->distance)) &&
	    thread->now_ns - process->looked_ns < PROCESS_OLD_NS)
		return process;
	if (module) {
		process->module = module;
		process->distance = distance;
	}
	process->known = python_open(&process->python, memory, process->module->read.exports.python,
				     process->distance);
	process->looked_ns = thread->now_ns;
	process->foreign = process_inner_pid(python->proc_root, thread->pid) != thread->pid;
	return process;
}

static bool state_is(const struct python_process *process, struct thread_memory *memory,
		     uint64_t state, uint64_t tid)
{
	uint64_t found;

	return python_word(memory, state + process->python.layout.thread_native_id, &found) &&
	       found == tid;
}

/* The states of one interpreter's threads. Others may come and go meanwhile. */
static void threads_list(struct python_process *process, struct thread_memory *memory,
			 uint64_t interpreter, unsigned int *left)
{
	const struct python_layout *layout = &process->python.layout;
	uint64_t state, owner, tid;

	if (!python_word(memory, interpreter + layout->interpreter_threads, &state))
		return;
	for (; state && *left; (*left)--) {
		if (!python_word(memory, state + layout->thread_interpreter, &owner) ||
		    owner != interpreter ||
		    !python_word(memory, state + layout->thread_native_id, &tid))
			return;
		*index_put(&process->threads, tid, NULL) = state;
		if (!python_word(memory, state + layout->thread_next, &state))
			return;
	}
}

static void process_list(struct python_process *process, struct thread_memory *memory,
			 int64_t now_ns)
{
	const struct python_layout *layout = &process->python.layout;
	int64_t start_ns = clock_monotonic_ns(), took_ns;
	unsigned int left = THREADS_LISTED_MAX;
	uint64_t interpreter;

	memory->calls_left = LIST_CALLS;
	index_clear(&process->threads);
	if (!python_word(memory, process->python.runtime + layout->runtime_interpreters,
			 &interpreter))
		interpreter = 0;
	for (int i = 0; interpreter && left && i < INTERPRETERS_MAX; i++) {
		threads_list(process, memory, interpreter, &left);
		if (!python_word(memory, interpreter + layout->interpreter_next, &interpreter))
			break;
	}
	took_ns = (clock_monotonic_ns() - start_ns) * LIST_SHARE;
	process->next_list_ns = now_ns + (took_ns > LIST_LEAST_NS ? took_ns : LIST_LEAST_NS);
}

/* The thread's state, or 0: it is none that Python knows. */
static uint64_t state_find(const struct python_frames *python, struct python_process *process,
			   const struct stack_thread *thread, struct thread_memory *memory)
{
	uint64_t tid =
		(uint64_t)(process->foreign ? thread_inner_tid(python->proc_root, thread->tid)
					    : thread->tid);
	uint64_t *known = index_find(&process->threads, tid);

	if (known && state_is(process, memory, *known, tid))
		return *known;
	if (thread->now_ns < process->next_list_ns)
		return 0;
	process_list(process, memory, thread->now_ns);
	memory->calls_left = STACK_CALLS;
	known = index_find(&process->threads, tid);
	return known ? *known : 0;
}

/* Reads a frame and goes to the one that called it. False where it can't be read. first: of those
 * whose call of the interpreter is not known yet. */
static bool frame_take(struct python_stack *stack, uint64_t *address, uint64_t *cframe,
		       uint32_t *first)
{
	const struct python_layout *layout = &stack->process->python.layout;
	struct python_frame frame = {.mark = layout->has_is_entry ? *cframe : UINT64_MAX};
	uint64_t at = *address;
	uint8_t owner, is_entry = 0;

	if (!python_word(stack->memory, at + layout->frame_previous, address) ||
	    !python_word(stack->memory, at + layout->frame_code, &frame.code) ||
	    !python_word(stack->memory, at + layout->frame_instruction, &frame.instruction) ||
	    thread_memory_read(stack->memory, at + layout->frame_owner, &owner, 1))
		return false;
	if (!layout->has_is_entry && owner >= OWNED_BY_STACK) {
		while (*first < stack->count)
			stack->frames[(*first)++].mark = at;
		return true;
	}
	frame.code &= POINTER_BITS;
	if (stack->count < STACK_FRAMES_MAX)
		stack->frames[stack->count++] = frame;
	if (!layout->has_is_entry)
		return true;
	return !thread_memory_read(stack->memory, at + layout->frame_is_entry, &is_entry, 1) &&
	       (!is_entry || python_word(stack->memory, *cframe + layout->cframe_previous, cframe));
}

static void frames_read(struct python_stack *stack, uint64_t state)
{
	const struct python_layout *layout = &stack->process->python.layout;
	uint64_t frame, cframe = 0;
	uint32_t first = 0;

	if (!python_word(stack->memory, state + layout->thread_frame, &frame)) {
		stack->broken = true;
		return;
	}
	if (layout->has_cframe) {
		cframe = frame;
		stack->broken = !python_word(stack->memory, cframe + layout->cframe_frame, &frame);
	}
	for (uint32_t i = 0; frame && !stack->broken && i < FRAMES_PASSED_MAX; i++) {
		/* no more are kept, but where the last ones belong is told further out */
		if (stack->count == STACK_FRAMES_MAX &&
		    (layout->has_is_entry || first == stack->count))
			return;
		stack->passed++;
		stack->broken = !frame_take(stack, &frame, &cframe, &first);
	}
	stack->broken = stack->broken || frame; /* too many were passed */
}

/* Lent; NULL where it can't be read. key: of where its code is. */
static const char *name_make(struct python_frames *python, struct python_stack *stack,
			     const struct python_code *code, uint64_t instruction, uint64_t key)
{
	char name[FUNCTION_NAME_SIZE];
	struct python_texts texts;
	const char *lent;
	uint64_t *known;

	if (!python_texts_read(&stack->process->python, stack->memory, code, &texts))
		return NULL;
	key = hash_u64(key ^ hash_bytes(texts.name, strlen(texts.name))) ^
	      hash_bytes(texts.file, strlen(texts.file));
	known = index_find(&python->names, key);
	if (known) {
		memcpy(&lent, known, sizeof(lent));
		return lent;
	}
	python_code_name(&stack->process->python, stack->memory, code, &texts, instruction, name);
	lent = name_lent_string(name);
	if (python->names.used == NAMES_KEPT_MAX)
		index_clear(&python->names);
	memcpy(index_put(&python->names, key, NULL), &lent, sizeof(lent));
	return lent;
}

/* The same. Texts are read once in a scan: what is made later may have their places. */
static const char *frame_name(struct python_frames *python, struct python_stack *stack,
			      const struct python_frame *frame)
{
	struct {
		struct python_code code;
		uint64_t instruction, at, pid;
	} what = {.instruction = frame->instruction,
		  .at = frame->code,
		  .pid = stack->process->entry.key};
	const char *lent;
	uint64_t *known, key;

	if (!python_code_read(&stack->process->python, stack->memory, frame->code, &what.code))
		return NULL;
	key = hash_bytes(&what, sizeof(what));
	known = index_find(&python->scan_names, key);
	if (known) {
		memcpy(&lent, known, sizeof(lent));
		return lent;
	}
	lent = name_make(python, stack, &what.code, frame->instruction, key);
	if (lent)
		memcpy(index_put(&python->scan_names, key, NULL), &lent, sizeof(lent));
	return lent;
}

/* Adds the functions of the call of the interpreter that frame *at belongs to. */
static void call_put(struct python_frames *python, struct python_stack *stack, uint32_t *at,
		     struct stack_walk *to)
{
	uint64_t mark = stack->frames[*at].mark;

	for (; *at < stack->count && stack->frames[*at].mark == mark; (*at)++) {
		const char *name;

		if (to->count == STACK_FRAMES_MAX) {
			to->end = WALK_DEEP;
			continue;
		}
		name = frame_name(python, stack, &stack->frames[*at]);
		if (!name) {
			stack->broken = true;
			continue;
		}
		to->frames[to->count++] = frame_of_python(name);
	}
}

/* Puts each call's functions in place of the C frame that has its mark; where there is no such
 * frame, because the walk lost its way, where it would be. */
static void walk_merge(struct python_frames *python, struct python_stack *stack,
		       struct stack_walk *walk)
{
	static struct stack_walk merged;
	uint32_t at = 0;

	merged.end = walk->end;
	merged.count = 0;
	for (uint32_t i = 0; i < walk->count; i++) {
		/* how far the outermost one goes is not known */
		uint64_t until = walk->places[i + 1 < walk->count ? i + 1 : i].sp;
		bool call = false;

		while (at < stack->count && stack->frames[at].mark < until) {
			call = call || stack->frames[at].mark >= walk->places[i].sp;
			call_put(python, stack, &at, &merged);
		}
		if (call)
			continue;
		if (merged.count == STACK_FRAMES_MAX)
			merged.end = WALK_DEEP;
		else
			merged.frames[merged.count++] = walk->frames[i];
	}
	while (at < stack->count)
		call_put(python, stack, &at, &merged);
	walk->end = merged.end;
	walk->count = merged.count;
	memcpy(walk->frames, merged.frames, merged.count * sizeof(merged.frames[0]));
}

/* What was spent before this scan does not count. */
static void scan_begin(struct python_frames *python, struct python_process *process, int64_t now_ns)
{
	if (python->scan_ns != now_ns || python->scan_names.used >= NAMES_KEPT_MAX)
		index_clear(&python->scan_names);
	if (python->scan_ns != now_ns)
		python->work = 0;
	python->scan_ns = now_ns;
	if (process->scan_ns != now_ns)
		process->work = 0;
	process->scan_ns = now_ns;
}

/* Returns how much work it was. */
static uint64_t stack_add(struct python_frames *python, struct python_process *process,
			  const struct stack_thread *thread, struct thread_memory *memory,
			  struct stack_walk *walk)
{
	static struct python_stack stack;
	uint64_t state = state_find(python, process, thread, memory);

	if (!state)
		return (STACK_CALLS - memory->calls_left) * WORK_CALL;
	stack.process = process;
	stack.memory = memory;
	stack.count = stack.passed = 0;
	stack.broken = false;
	frames_read(&stack, state);
	walk_merge(python, &stack, walk);
	python->broken_count += stack.broken;
	return (STACK_CALLS - memory->calls_left) * WORK_CALL + stack.passed * WORK_FRAME;
}

void python_frames_add(struct python_frames *python, const struct stack_thread *thread,
		       struct thread_memory *memory, struct stack_walk *walk)
{
	struct python_process *process;
	uint64_t work;

	if (!walk->count)
		return;
	memory->calls_left = STACK_CALLS;
	process = process_get(python, thread, memory, walk);
	if (!process)
		return;
	if (!process->known) {
		python->unknown_count++;
		return;
	}
	scan_begin(python, process, thread->now_ns);
	if (process->work >= SCAN_PROCESS_WORK || python->work >= SCAN_WORK) {
		python->late_count++;
		return;
	}
	work = stack_add(python, process, thread, memory, walk);
	process->work += work;
	python->work += work;
}
