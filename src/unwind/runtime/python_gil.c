/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_gil.h"
#include "base/clock.h"

#include <pthread.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (120 * NS_PER_SECOND)
#define KNOWN_OLD_NS (5 * NS_PER_SECOND) /* an exec, or an interpreter more */
#define OTHER_OLD_NS (60 * NS_PER_SECOND)
#define INTERPRETERS_MAX 16
#define READS_MAX 512 /* of memory, for one answer */
#define FRAMES_MAX 8  /* that are no function's, before one that is */
#define OWNED_BY_STACK 3
#define POINTER_BITS (~(uint64_t)7)

/* struct _gil_runtime_state, from `locked` on: an int and what aligns it, */
#define SWITCHES_AT 8	/* switch_number, */
#define CONDITION_AT 16 /* cond, where who wants it waits, */
/* mutex, whose first word is 0 while it is free, */
#define MUTEX_AT (CONDITION_AT + sizeof(pthread_cond_t))
/* switch_cond, where who gave it away waits until another one has it */
#define SWITCH_AT (MUTEX_AT + sizeof(pthread_mutex_t))

/* Where an interpreter that is found goes. */
struct gil_look {
	struct python *python;
	struct thread_memory *memory;
};

struct gil_process {
	struct cache_entry entry; /* key: pid */
	int64_t next_look_ns;
	struct python python;
	uint32_t count;
	uint64_t gils[INTERPRETERS_MAX]; /* of interpreters, which may share one */
	/* the last one that was read with its holder's place, for all who wait for it in a scan */
	int64_t told_ns;
	uint64_t told_at;
	struct python_gil told;
};

void python_gils_init(struct python_gils *gils, const char *proc_root,
		      ssize_t (*copy)(const char *proc_root, int64_t tid, uint64_t from, void *to,
				      size_t bytes))
{
	*gils = (struct python_gils){
		.proc_root = proc_root,
		.processes = {.entry_bytes = sizeof(struct gil_process),
			      .entries_max = PROCESSES_MAX},
	};
	thread_memory_init(&gils->memory, proc_root, false, 0);
	gils->memory.copy = copy;
}

void python_gils_done(struct python_gils *gils)
{
	cache_done(&gils->processes);
	thread_memory_done(&gils->memory);
}

void python_gils_sweep(struct python_gils *gils, int64_t now_ns)
{
	cache_sweep(&gils->processes, now_ns, PROCESS_IDLE_NS);
}

/* --- the interpreter of a process */

static bool interpreter_take(void *to, const struct runtime_exports *exports, uint64_t distance)
{
	struct gil_look *look = to;

	return exports->python[MODULE_PYTHON_RUNTIME] &&
	       python_open(look->python, look->memory, exports->python, distance);
}

static const struct runtime_kind python_kind = {{"/python", "/libpython", NULL}, interpreter_take};

static void gils_list(struct python_gils *gils, struct gil_process *process)
{
	const struct python_layout *layout = &process->python.layout;
	uint64_t runtime = process->python.runtime, interpreter;

	process->count = 0;
	if (!layout->interpreter_gil) {
		process->gils[process->count++] = runtime + layout->runtime_gil;
		return;
	}
	if (!python_word(&gils->memory, runtime + layout->runtime_interpreters, &interpreter))
		return;
	while (interpreter && process->count < INTERPRETERS_MAX) {
		if (!python_word(&gils->memory, interpreter + layout->interpreter_gil,
				 &process->gils[process->count]))
			return;
		process->count++;
		if (!python_word(&gils->memory, interpreter + layout->interpreter_next,
				 &interpreter))
			return;
	}
}

static struct gil_process *process_get(struct python_gils *gils, const struct stack_thread *thread)
{
	bool added, found;
	struct gil_process *process =
		cache_get(&gils->processes, (uint64_t)thread->pid, thread->now_ns, &added);
	struct gil_look look = {&process->python, &gils->memory};
	int64_t began_ns;

	if (!runtime_look_begin(&gils->looks, thread->now_ns, process->next_look_ns, &began_ns))
		return process;
	thread_memory_begin(&gils->memory, thread->tid, 0);
	gils->memory.calls_left = READS_MAX;
	process->count = 0;
	found = runtime_find(gils->proc_root, thread, &python_kind, &look);
	if (found)
		gils_list(gils, process);
	process->next_look_ns = runtime_look_end(&gils->looks, thread->now_ns, began_ns,
						 found ? KNOWN_OLD_NS : OTHER_OLD_NS);
	return process;
}

/* --- the GIL */

/* The innermost frame of a function, and its code; 0: not known. */
static uint64_t frame_of(const struct python_layout *layout, struct thread_memory *memory,
			 uint64_t state, uint64_t *code)
{
	uint64_t frame;
	uint8_t owner;

	if (!python_word(memory, state + layout->thread_frame, &frame) ||
	    (layout->has_cframe && !python_word(memory, frame + layout->cframe_frame, &frame)))
		return 0;
	for (int i = 0; frame && i < FRAMES_MAX; i++) {
		if (!python_word(memory, frame + layout->frame_code, code) ||
		    thread_memory_read(memory, frame + layout->frame_owner, &owner, 1))
			return 0;
		*code &= POINTER_BITS;
		if (layout->has_is_entry || owner < OWNED_BY_STACK)
			return frame;
		if (!python_word(memory, frame + layout->frame_previous, &frame))
			return 0;
	}
	return 0;
}

/* The holder mostly runs: what was read is believed if the same function is there afterwards. */
static void place_read(const struct python *python, struct thread_memory *memory, int64_t tid,
		       uint64_t state, char place[PYTHON_PLACE_SIZE])
{
	const struct python_layout *layout = &python->layout;
	struct python_texts texts;
	struct python_code code;
	uint64_t at, now, frame = frame_of(layout, memory, state, &at), instruction;

	if (!frame || !python_word(memory, frame + layout->frame_instruction, &instruction) ||
	    !python_code_read(python, memory, at, &code) ||
	    !python_texts_read(python, memory, &code, &texts))
		return;
	python_code_place(python, memory, &code, &texts, instruction, place);
	if (thread_memory_begin(memory, tid, state) ||
	    frame_of(layout, memory, state, &now) != frame || now != at)
		*place = '\0';
}

bool python_gil_read(const struct python *python, struct thread_memory *memory, int64_t tid,
		     uint64_t address, bool with_place, struct python_gil *gil)
{
	const struct python_layout *layout = &python->layout;
	uint64_t locked = address + layout->gil_locked, state;
	uint32_t mutex;
	int32_t is_locked;

	*gil = (struct python_gil){.holder = 0};
	/* one copy of all of it */
	if (thread_memory_begin(memory, tid, address))
		return false;
	memory->calls_left = READS_MAX;
	if (!python_word(memory, address + layout->gil_holder, &state) ||
	    thread_memory_read(memory, locked, &is_locked, sizeof(is_locked)) ||
	    !python_word(memory, locked + SWITCHES_AT, &gil->switches) ||
	    thread_memory_read(memory, locked + MUTEX_AT, &mutex, sizeof(mutex)) || is_locked < 0 ||
	    is_locked > 1)
		return false;
	gil->changing = mutex;
	if (!is_locked)
		return true;
	if (!state || !python_word(memory, state + layout->thread_native_id, &gil->holder) ||
	    !gil->holder)
		return false;
	if (with_place)
		place_read(python, memory, tid, state, gil->place);
	return true;
}

static bool is_within(uint64_t address, uint64_t condition)
{
	return address - condition < sizeof(pthread_cond_t);
}

/* As of this scan. */
static bool gil_tell(struct python_gils *gils, struct gil_process *process,
		     const struct stack_thread *thread, uint64_t address, struct python_gil *gil)
{
	if (process->told_ns != thread->now_ns || process->told_at != address) {
		process->told_ns = 0;
		if (!python_gil_read(&process->python, &gils->memory, thread->tid, address, true,
				     &process->told))
			return false;
		process->told_ns = thread->now_ns;
		process->told_at = address;
	}
	*gil = process->told;
	return true;
}

bool python_gil_find(struct python_gils *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_place, struct python_gil *gil)
{
	struct gil_process *process = process_get(gils, thread);

	for (uint32_t i = 0; i < process->count; i++) {
		uint64_t at = process->gils[i], locked = at + process->python.layout.gil_locked;

		if (!at || (!is_within(futex, locked + CONDITION_AT) &&
			    !is_within(futex, locked + SWITCH_AT)))
			continue;
		if (with_place)
			return gil_tell(gils, process, thread, at, gil);
		return python_gil_read(&process->python, &gils->memory, thread->tid, at, false,
				       gil);
	}
	return false;
}
