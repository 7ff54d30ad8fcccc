/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_stacks.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "unwind/runtime/python_gil.h"

#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (60 * NS_PER_SECOND)
#define SWEEP_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* an exec may have passed unseen */
#define INTERPRETERS_MAX 64
#define THREADS_LISTED_MAX 8192
#define LIST_CALLS (2 * THREADS_LISTED_MAX)
#define FRAMES_PASSED_MAX 65536 /* frames of one stack */
/* Units of work. Work is counted instead of time, which on a full host passes without any: a unit
 * is about 0.1 us. */
#define WORK_FRAME 1ull /* a frame that is passed */
#define WORK_CALL 8ull	/* a read of memory */
#define LIST_LEAST_NS (5 * NS_PER_MS)
#define LIST_SHARE 50 /* divisor of the time for listing one process' threads */
#define NAMES_KEPT_MAX 65536
#define TEXT_BYTES_MAX (8u << 20)
#define SAME_LOOKED_AT 16 /* frames before one, whose name may be the same */
#define OWNED_BY_STACK 3  /* FRAME_OWNED_BY_CSTACK; in 3.14 FRAME_OWNED_BY_INTERPRETER, and more */
#define POINTER_BITS (~(uint64_t)7) /* 3.14 has marks in the other bits */

struct python_known {
	struct cache_entry entry; /* key: pid */
	int64_t looked_ns;
	bool known; /* python is filled */
	uint64_t distance;
	uint64_t exports[MODULE_PYTHON_EXPORTS];
	struct python python;
	struct index threads; /* ids to addresses of thread states */
	int64_t next_list_ns;
};

/* A function that is interpreted. */
struct python_frame {
	uint64_t mark; /* address of the mark that its call of the interpreter has on the stack */
	uint64_t code, instruction;
};

/* Stack that is being read. */
struct python_stack {
	struct python_known *process;
	struct thread_memory *memory;
	uint32_t count, passed;
	bool broken;
	struct python_frame frames[STACK_FRAMES_MAX]; /* innermost first */
};

/* State of this parser. */
static struct {
	struct cache processes;
	int64_t swept_ns;
	/* Name of code at an instruction, as its offset in text plus one. The key has the code's
	 * texts, too. */
	struct index names;
	struct index scan_names; /* names of one scan; the key has no texts */
	int64_t scan_ns;	 /* time of the present scan */
	char *text;
	size_t text_bytes, text_capacity;
} all;

static void process_drop(void *entry)
{
	index_clear(&((struct python_known *)entry)->threads);
}

static void names_clear_all(void)
{
	index_clear(&all.names);
	index_clear(&all.scan_names);
	all.text_bytes = 0;
}

void python_stacks_clear(void)
{
	cache_done(&all.processes);
	names_clear_all();
	free(all.text);
	memset(&all, 0, sizeof(all));
}

size_t python_stacks_name_count(void)
{
	return all.names.used;
}

static struct python_known *process_get(const struct runtime_request *of,
					struct thread_memory *memory)
{
	struct python_known *process;
	bool added;

	if (!all.processes.entry_bytes)
		all.processes = (struct cache){.entry_bytes = sizeof(struct python_known),
					       .entries_max = PROCESSES_MAX,
					       .drop = process_drop};
	if (of->now_ns - all.swept_ns >= SWEEP_NS) {
		cache_sweep(&all.processes, of->now_ns, PROCESS_IDLE_NS);
		all.swept_ns = of->now_ns;
	}
	process = cache_get(&all.processes, (uint64_t)of->pid, of->now_ns, &added);
	if (!added && !of->anew && process->distance == of->distance &&
	    !memcmp(process->exports, of->exports.python, sizeof(process->exports)) &&
	    of->now_ns - process->looked_ns < PROCESS_OLD_NS)
		return process;
	process->distance = of->distance;
	memcpy(process->exports, of->exports.python, sizeof(process->exports));
	process->known = python_open(&process->python, memory, of->exports.python, of->distance);
	process->looked_ns = of->now_ns;
	return process;
}

static bool state_is(const struct python_known *process, struct thread_memory *memory,
		     uint64_t state, uint64_t tid)
{
	uint64_t found;

	return python_word(memory, state + process->python.layout.thread_native_id, &found) &&
	       found == tid;
}

/* Lists the states of one interpreter's threads. Threads may come and go meanwhile. */
static void threads_list(struct python_known *process, struct thread_memory *memory,
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

static void process_list(struct python_known *process, struct thread_memory *memory, int64_t now_ns)
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

/* Returns the thread's state, or 0: Python does not know the thread. */
static uint64_t state_find(struct python_known *process, const struct runtime_request *of,
			   struct thread_memory *memory)
{
	const unsigned int calls_left = memory->calls_left;
	uint64_t *known = index_find(&process->threads, of->id);

	if (known && state_is(process, memory, *known, of->id))
		return *known;
	if (of->now_ns < process->next_list_ns)
		return 0;
	process_list(process, memory, of->now_ns);
	memory->calls_left = calls_left;
	known = index_find(&process->threads, of->id);
	return known ? *known : 0;
}

/* Reads a frame and goes to the one that called it. False where it can't be read. first: the first
 * frame whose call of the interpreter is not known yet. */
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
		/* no more frames are kept, but the marks of the last ones lie further out */
		if (stack->count == STACK_FRAMES_MAX &&
		    (layout->has_is_entry || first == stack->count))
			return;
		stack->passed++;
		stack->broken = !frame_take(stack, &frame, &cframe, &first);
	}
	stack->broken = stack->broken || frame; /* frames are left: too many were passed */
}

/* Adds a name to text. Returns its offset there, plus one. */
static uint64_t text_keep(const char *name)
{
	size_t bytes = strlen(name) + 1, at = all.text_bytes;

	all.text = memory_grow(all.text, &all.text_capacity, at + bytes, 1);
	memcpy(all.text + at, name, bytes);
	all.text_bytes = at + bytes;
	return at + 1;
}

/* Makes a frame's name. key: hash of the code and its address. Returns as frame_name(); 0 where it
 * can't be read. */
static uint64_t name_make(struct python_stack *stack, const struct python_code *code,
			  uint64_t instruction, uint64_t key)
{
	char name[FUNCTION_NAME_SIZE];
	struct python_texts texts;
	uint64_t *known;

	if (!python_texts_read(&stack->process->python, stack->memory, code, &texts))
		return 0;
	key = hash_u64(key ^ hash_bytes(texts.name, strlen(texts.name))) ^
	      hash_bytes(texts.file, strlen(texts.file));
	known = index_put(&all.names, key, NULL);
	if (*known)
		return *known;
	python_code_name(&stack->process->python, stack->memory, code, &texts, instruction, name);
	return *known = text_keep(name);
}

/* Returns a frame's name as its offset in text, plus one; 0 where it can't be read. Texts are read
 * once in a scan: what is made later may have their addresses. */
static uint64_t frame_name(struct python_stack *stack, const struct python_frame *frame)
{
	struct {
		struct python_code code;
		uint64_t instruction, at, pid;
	} what = {.instruction = frame->instruction,
		  .at = frame->code,
		  .pid = stack->process->entry.key};
	uint64_t *known, key, name;

	if (!python_code_read(&stack->process->python, stack->memory, frame->code, &what.code))
		return 0;
	key = hash_bytes(&what, sizeof(what));
	known = index_find(&all.scan_names, key);
	if (known)
		return *known;
	name = name_make(stack, &what.code, frame->instruction, key);
	if (name)
		*index_put(&all.scan_names, key, NULL) = name;
	return name;
}

static void names_begin(int64_t now_ns)
{
	if (all.names.used >= NAMES_KEPT_MAX || all.text_bytes >= TEXT_BYTES_MAX)
		names_clear_all();
	if (all.scan_ns != now_ns || all.scan_names.used >= NAMES_KEPT_MAX)
		index_clear(&all.scan_names);
	all.scan_ns = now_ns;
}

/* Adds a frame with its name, which frames before it may have. False: the texts are full. */
static bool frame_answer(struct python_stack_answer *answer, uint64_t mark, uint64_t name,
			 uint64_t given[STACK_FRAMES_MAX])
{
	struct python_stack_frame *frame = &answer->frames[answer->count];
	const char *text = all.text + name - 1;
	size_t bytes = strlen(text) + 1;

	given[answer->count] = name;
	*frame = (struct python_stack_frame){.mark = mark, .name = answer->text_bytes};
	for (uint32_t back = 1; back <= SAME_LOOKED_AT && back <= answer->count; back++)
		if (given[answer->count - back] == name) {
			frame->name = answer->frames[answer->count - back].name;
			answer->count++;
			return true;
		}
	if (bytes > sizeof(answer->texts) - answer->text_bytes)
		return false;
	memcpy(answer->texts + answer->text_bytes, text, bytes);
	answer->text_bytes += (uint32_t)bytes;
	answer->count++;
	return true;
}

static void frames_answer(struct python_stack *stack, struct python_stack_answer *answer)
{
	static uint64_t given[STACK_FRAMES_MAX];
	bool fits = true;

	for (uint32_t i = 0; fits && i < stack->count; i++) {
		uint64_t name = frame_name(stack, &stack->frames[i]);

		stack->broken = stack->broken || !name;
		fits = !name || frame_answer(answer, stack->frames[i].mark, name, given);
	}
	answer->broken = stack->broken || !fits;
}

size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory, char *to)
{
	static struct python_stack_answer answer;
	static struct python_stack stack;
	const unsigned int calls = memory->calls_left;
	const size_t head = offsetof(struct python_stack_answer, texts);
	uint64_t state;

	memset(&answer, 0, head);
	stack.process = process_get(of, memory);
	stack.memory = memory;
	stack.count = stack.passed = 0;
	stack.broken = false;
	answer.known = stack.process->known;
	state = answer.known ? state_find(stack.process, of, memory) : 0;
	names_begin(of->now_ns);
	if (state)
		frames_read(&stack, state);
	if (state)
		frames_answer(&stack, &answer);
	answer.work = (calls - memory->calls_left) * WORK_CALL + stack.passed * WORK_FRAME;
	memcpy(to, &answer, head + answer.text_bytes);
	return head + answer.text_bytes;
}

static void gils_list(struct gils_answer *answer, const struct python *python,
		      struct thread_memory *memory)
{
	const struct python_layout *layout = &python->layout;
	uint64_t interpreter;

	if (!layout->interpreter_gil) {
		answer->gils[answer->count++] = python->runtime + layout->runtime_gil;
		return;
	}
	if (!python_word(memory, python->runtime + layout->runtime_interpreters, &interpreter))
		return;
	while (interpreter && answer->count < GILS_MAX) {
		if (!python_word(memory, interpreter + layout->interpreter_gil,
				 &answer->gils[answer->count]))
			return;
		answer->count++;
		if (!python_word(memory, interpreter + layout->interpreter_next, &interpreter))
			return;
	}
}

size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, char *to)
{
	const struct python_known *process = process_get(of, memory);
	struct gils_answer answer;

	memset(&answer, 0, sizeof(answer));
	answer.known = process->known;
	answer.locked = process->python.layout.gil_locked;
	if (process->known)
		gils_list(&answer, &process->python, memory);
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}

size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, char *to)
{
	const struct python_known *process = process_get(of, memory);
	struct gil_answer answer;

	memset(&answer, 0, sizeof(answer));
	answer.found = process->known && python_gil_read(&process->python, memory, of->address,
							 of->with_location, &answer.gil);
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}
