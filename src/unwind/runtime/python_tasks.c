/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_tasks.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"
#include "proc/proc.h"
#include "unwind/file_request.h"
#include "unwind/function_name.h"
#include "unwind/runtime/python_memory.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/runtime/runtime_service.h"
#include "unwind/thread_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION_3_14 0x030e
#define READ_NS (5 * NS_PER_SECOND)
#define TRIES 12
#define LIST_TRIES 8
#define TASKS_MAX 65536
#define THREADS_MAX 8192
#define INTERPRETERS_MAX 64
#define AWAITS_MAX 4096		    /* coroutines that await each other */
#define FRAMES_PASSED_MAX 65536	    /* frames of a thread */
#define AWAITERS_MAX 4096	    /* futures and tasks that await a task, directly or not */
#define AWAITERS_ALL_MAX (1u << 20) /* of all tasks */
#define SET_SLOTS_MAX (1u << 16)
#define SET_PIECE 128
#define NUMBER_DIGITS_MAX 18
#define BASES_MAX 16
#define TEXT_BYTES_MAX ((size_t)64 << 20) /* texts of all groups */
#define TASK_CALLS 16384		  /* reads of memory for one task, or one list */

/* Object.h, typeobject.c, longobject.c and genobject.h of 3.14. */
#define OBJECT_TYPE 8
#define TYPE_BASE_AFTER_FLAGS 88 /* tp_base in PyTypeObject, from tp_flags on */
#define TYPE_IS_NUMBER (1ull << 24)
#define DIGIT_BITS 30
#define DIGITS_MAX 2
#define SET_REMOVED UINT64_MAX /* hash of a slot whose object was removed */
#define OWNED_BY_GENERATOR 1
#define FRAME_CREATED (-3)
#define FRAME_AWAITS (-1) /* FRAME_SUSPENDED_YIELD_FROM */
#define FRAME_EXECUTING 0
#define WRAPPED 16 /* the generator of an async_generator_asend, the coroutine of a wrapper */
#define FUTURE_PENDING 0

/* Members of struct Py_AsyncioModuleDebugOffsets, in words. */
enum {
	TASK_BYTES,
	TASK_NAME,
	TASK_AWAITED_BY,
	TASK_IS_TASK,
	TASK_AWAITED_BY_SET,
	TASK_COROUTINE,
	TASK_NODE,
	INTERPRETER_BYTES,
	INTERPRETER_TASKS,
	THREAD_BYTES,
	THREAD_LOOP,
	THREAD_TASK,
	THREAD_TASKS,
	ASYNCIO_WORDS,
};

/* The members of a task, or of a future, that are used. */
struct head {
	uint64_t type, awaited_by, name, coroutine, waiter, next, previous;
	uint8_t is_task, awaited_by_set;
};

struct code_at {
	uint64_t code, instruction;
};

/* The innermost frames of a task. */
struct chain {
	bool running, cut;
	uint32_t count;
	int64_t tid; /* of the thread that runs it, or whose list has it */
	struct code_at frames[TASK_FRAMES_MAX]; /* outermost first */
};

/* Tasks and futures that await a task. */
struct awaiters {
	bool cut;
	uint32_t count;
	uint64_t slots_left; /* of sets, that may be read */
	struct index known;
	uint64_t at[AWAITERS_MAX];
};

enum taken {
	TAKEN_LEFT, /* not tried yet */
	TAKEN,
	TAKEN_ENDED,
	TAKEN_NOT, /* the task changed meanwhile */
	TAKEN_UNREAD,
};

struct task {
	uint64_t address;
	uint64_t number; /* of "Task-N" */
	size_t name;	 /* offset in names plus one; 0: it has a number */
	size_t stack;	 /* offset in stacks */
	size_t awaiters; /* offset in awaiters, of which there are awaiter_count */
	uint64_t group;	 /* key of the group */
	int64_t tid;
	uint64_t thread; /* address of the thread's state; 0: of an interpreter's list */
	uint32_t awaiter_count;
	uint8_t state;
	bool more_await; /* others than these await it, too */
	enum taken taken;
};

struct thread {
	uint64_t state;
	int64_t tid;
};

struct reader {
	struct tasks *to;
	struct thread_memory *memory;
	struct python python;
	uint64_t pid;
	uint64_t asyncio[ASYNCIO_WORDS];
	uint64_t coroutine_type, generator_type, async_generator_type;
	bool has_waiters; /* the futures that tasks wait for can be found */
	int64_t until_ns;
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct task *tasks;
	size_t task_count, task_capacity;
	struct index task_at;  /* address to position in tasks */
	struct index futures;  /* addresses of types: 1 if they are futures */
	struct index stack_at; /* hash of a stack to its offset in stacks */
	uint64_t *stacks;      /* for each: count, cut, and names of its frames */
	size_t stack_words, stack_capacity;
	uint64_t *awaiters; /* addresses of tasks */
	size_t awaiter_count, awaiter_capacity;
	struct text names; /* with their NULs */
	size_t text_bytes; /* of the groups */
};

const char *task_state_name(uint32_t state)
{
	static const char *const names[] = {"running", "ready", "waiting"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

void tasks_done(struct tasks *tasks)
{
	for (size_t i = 0; i < tasks->group_count; i++) {
		free(tasks->groups[i].stack);
		free(tasks->groups[i].names);
		free(tasks->groups[i].awaited_by);
	}
	free(tasks->groups);
	memset(tasks, 0, sizeof(*tasks));
}

static struct task_group *group_add(struct tasks *tasks, const struct task_group *group)
{
	tasks->groups = memory_grow(tasks->groups, &tasks->group_capacity, tasks->group_count + 1,
				    sizeof(*tasks->groups));
	tasks->groups[tasks->group_count] = *group;
	return &tasks->groups[tasks->group_count++];
}

static size_t group_bytes(const struct task_group *group)
{
	return strlen(group->stack) + strlen(group->names) + strlen(group->awaited_by);
}

/* --- memory of the process */

static void memory_renew(struct reader *reader)
{
	thread_memory_again(reader->memory);
	reader->memory->calls_left = TASK_CALLS;
}

static bool bytes_read(struct reader *reader, uint64_t address, void *to, size_t count)
{
	return !thread_memory_read(reader->memory, address, to, count);
}

static bool word_read(struct reader *reader, uint64_t address, uint64_t *word)
{
	return python_word(reader->memory, address, word);
}

static bool type_is_future(struct reader *reader, uint64_t type)
{
	static const char future[] = "_asyncio.Future";
	const struct python_layout *layout = &reader->python.layout;
	const uint64_t first = type;
	uint64_t *known = index_find(&reader->futures, type), name;
	char text[sizeof(future)];
	bool found = false;

	if (known)
		return *known;
	for (int i = 0; type && !found && i < BASES_MAX; i++) {
		found = word_read(reader, type + layout->type_name, &name) &&
			bytes_read(reader, name, text, sizeof(text)) &&
			!memcmp(text, future, sizeof(text));
		if (!word_read(reader, type + layout->type_flags + TYPE_BASE_AFTER_FLAGS, &type))
			break;
	}
	*index_put(&reader->futures, first, NULL) = found;
	return found;
}

/* Reads a future, which may be a task. False where there is none. */
static bool head_read(struct reader *reader, uint64_t at, struct head *head)
{
	const struct python_layout *layout = &reader->python.layout;
	const uint64_t *asyncio = reader->asyncio;

	memset(head, 0, sizeof(*head));
	if (!at || at % sizeof(at) || !word_read(reader, at + OBJECT_TYPE, &head->type) ||
	    !type_is_future(reader, head->type) ||
	    !word_read(reader, at + asyncio[TASK_AWAITED_BY], &head->awaited_by) ||
	    !bytes_read(reader, at + asyncio[TASK_IS_TASK], &head->is_task, 1) ||
	    !bytes_read(reader, at + asyncio[TASK_AWAITED_BY_SET], &head->awaited_by_set, 1) ||
	    head->is_task > 1 || head->awaited_by_set > 1)
		return false;
	return !head->is_task ||
	       (word_read(reader, at + asyncio[TASK_NAME], &head->name) &&
		word_read(reader, at + asyncio[TASK_COROUTINE], &head->coroutine) &&
		(!reader->has_waiters ||
		 word_read(reader, at + asyncio[TASK_COROUTINE] - sizeof(uint64_t),
			   &head->waiter)) &&
		word_read(reader, at + asyncio[TASK_NODE] + layout->list_next, &head->next) &&
		word_read(reader, at + asyncio[TASK_NODE] + layout->list_previous,
			  &head->previous));
}

/* Returns N of "Task-N", the name that a task without another one has; 0: it is no such name. */
static uint64_t number_of_name(const char *name)
{
	static const char start[] = "Task-";
	const char *digits = name + strlen(start);
	size_t count;

	if (strncmp(name, start, strlen(start)) != 0 || *digits == '0')
		return 0;
	count = strspn(digits, "0123456789");
	return count <= NUMBER_DIGITS_MAX && !digits[count] ? strtoull(digits, NULL, 10) : 0;
}

/* Reads a task's name: a number, or an offset in names plus one. The object is a number until the
 * program asks for the name. */
static bool name_read(struct reader *reader, uint64_t at, uint64_t *number, size_t *name)
{
	const struct python_layout *layout = &reader->python.layout;
	char text[PYTHON_UTF8_BYTES * PYTHON_NAME_CHARS_MAX + 1];
	uint32_t digits[DIGITS_MAX] = {0};
	uint64_t type, flags, tag;

	*number = *name = 0;
	if (python_string_read(&reader->python, reader->memory, at, PYTHON_NAME_CHARS_MAX, false,
			       text)) {
		*number = number_of_name(text);
		if (*number)
			return true;
		*name = reader->names.length + 1;
		text_add(&reader->names, text, strlen(text) + 1);
		return true;
	}
	if (!word_read(reader, at + OBJECT_TYPE, &type) ||
	    !word_read(reader, type + layout->type_flags, &flags) || !(flags & TYPE_IS_NUMBER) ||
	    !word_read(reader, at + layout->number_tag, &tag) || tag >> 3 > DIGITS_MAX ||
	    !bytes_read(reader, at + layout->number_digits, digits, (tag >> 3) * sizeof(*digits)))
		return false;
	*number = digits[0] | (uint64_t)digits[1] << DIGIT_BITS;
	return true;
}

/* --- stacks */

/* Adds a frame; where there are too many, the outermost is dropped. */
static void frame_add(struct chain *chain, uint64_t code, uint64_t instruction)
{
	if (chain->count == TASK_FRAMES_MAX) {
		chain->cut = true;
		memmove(chain->frames, chain->frames + 1, --chain->count * sizeof(*chain->frames));
	}
	chain->frames[chain->count++] = (struct code_at){code & PYTHON_POINTER_BITS, instruction};
}

static bool is_generator(const struct reader *reader, uint64_t type)
{
	return type && (type == reader->coroutine_type || type == reader->generator_type ||
			type == reader->async_generator_type);
}

/* Goes from what is awaited to the coroutine or generator in it; 0: it is none. */
static bool generator_find(struct reader *reader, uint64_t *at)
{
	static const char *const wrappers[] = {"async_generator_asend", "coroutine_wrapper"};
	char text[32] = "";
	uint64_t type, name, inner;

	if (!*at)
		return true;
	if (*at % sizeof(*at) || !word_read(reader, *at + OBJECT_TYPE, &type))
		return false;
	if (is_generator(reader, type))
		return true;
	if (!word_read(reader, type + reader->python.layout.type_name, &name) ||
	    !word_read(reader, *at + WRAPPED, &inner) ||
	    !bytes_read(reader, name, text, sizeof(text) - 1)) {
		*at = 0;
		return true;
	}
	*at = 0;
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (!strcmp(text, wrappers[i]) && inner && !(inner % sizeof(inner)) &&
		    word_read(reader, inner + OBJECT_TYPE, &type) && is_generator(reader, type))
			*at = inner;
	return true;
}

/* Takes the frames of a thread that runs a task, up to that of the task's coroutine. False: the
 * thread is not there. */
static bool running_read(struct reader *reader, const struct thread *thread, uint64_t outermost,
			 struct chain *chain)
{
	const struct python_layout *layout = &reader->python.layout;
	struct code_at found[TASK_FRAMES_MAX];
	uint64_t frame, at, code, instruction;
	uint32_t count = 0;
	uint8_t owner;

	chain->running = true;
	chain->tid = thread->tid;
	if (!word_read(reader, thread->state + layout->thread_frame, &frame))
		return false;
	for (uint32_t i = 0; frame && i < FRAMES_PASSED_MAX; i++) {
		at = frame;
		if (!word_read(reader, at + layout->frame_previous, &frame) ||
		    !word_read(reader, at + layout->frame_code, &code) ||
		    !word_read(reader, at + layout->frame_instruction, &instruction) ||
		    !bytes_read(reader, at + layout->frame_owner, &owner, 1))
			return false;
		if (owner >= PYTHON_OWNED_BY_STACK)
			continue;
		chain->cut = count == TASK_FRAMES_MAX;
		if (!chain->cut)
			found[count++] = (struct code_at){code & PYTHON_POINTER_BITS, instruction};
		if (at != outermost)
			continue;
		while (count)
			chain->frames[chain->count++] = found[--count];
		return true;
	}
	return false;
}

/* Returns the thread that runs the task, or NULL. */
static const struct thread *runner_find(struct reader *reader, uint64_t task)
{
	uint64_t running;

	for (size_t i = 0; i < reader->thread_count; i++)
		if (word_read(reader, reader->threads[i].state + reader->asyncio[THREAD_TASK],
			      &running) &&
		    running == task)
			return &reader->threads[i];
	return NULL;
}

/* Reads the frames of a task. of: where its coroutine, if it is one of C. */
static enum taken chain_read(struct reader *reader, const struct task *task, uint64_t of,
			     struct chain *chain)
{
	const struct python_layout *layout = &reader->python.layout;
	uint64_t running = 0, code, instruction, top, slot;
	uint8_t owner;
	int8_t state;

	chain->running = chain->cut = false;
	chain->count = 0;
	chain->tid = task->tid;
	if (task->thread &&
	    !word_read(reader, task->thread + reader->asyncio[THREAD_TASK], &running))
		return TAKEN_NOT;
	chain->running = running == task->address;
	if (!generator_find(reader, &of))
		return TAKEN_UNREAD;
	for (uint32_t i = 0; of && i < AWAITS_MAX; i++) {
		const uint64_t frame = of + layout->generator_frame;

		if (!bytes_read(reader, of + layout->generator_state, &state, 1))
			return TAKEN_UNREAD;
		if (state == FRAME_EXECUTING && !i) {
			const struct thread *thread = runner_find(reader, task->address);

			return thread && running_read(reader, thread, frame, chain) ? TAKEN
										    : TAKEN_NOT;
		}
		if (state < FRAME_CREATED || state >= FRAME_EXECUTING)
			return TAKEN_NOT;
		if (!bytes_read(reader, frame + layout->frame_owner, &owner, 1) ||
		    !word_read(reader, frame + layout->frame_code, &code) ||
		    !word_read(reader, frame + layout->frame_instruction, &instruction))
			return TAKEN_UNREAD;
		if (owner != OWNED_BY_GENERATOR)
			return TAKEN_NOT;
		frame_add(chain, code, instruction);
		if (state != FRAME_AWAITS)
			return TAKEN;
		if (!word_read(reader, frame + layout->frame_stack_top, &top) || top <= frame ||
		    top - frame > PYTHON_OFFSET_MAX || top % sizeof(slot) ||
		    !word_read(reader, top - sizeof(slot), &slot))
			return TAKEN_NOT;
		of = slot & PYTHON_POINTER_BITS;
		if (!generator_find(reader, &of))
			return TAKEN_NOT;
	}
	return of ? TAKEN_UNREAD : TAKEN;
}

/* Keeps the stack, and sets its offset in stacks; those of functions with the same names are one.
 * False where a function can't be read. */
static bool stack_keep(struct reader *reader, const struct chain *chain, size_t *stack)
{
	uint64_t words[2 + TASK_FRAMES_MAX] = {chain->count, chain->cut};
	uint64_t hashes[2 + TASK_FRAMES_MAX] = {chain->count, chain->cut}, *known;
	const size_t count = 2 + chain->count;
	bool added;

	for (uint32_t i = 0; i < chain->count; i++) {
		const char *name;

		words[2 + i] =
			python_frame_name(&reader->python, reader->memory, reader->pid,
					  chain->frames[i].code, chain->frames[i].instruction);
		if (!words[2 + i])
			return false;
		name = python_name_text(words[2 + i]);
		hashes[2 + i] = hash_bytes(name, strlen(name));
	}
	known = index_put(&reader->stack_at, hash_bytes(hashes, count * sizeof(*hashes)), &added);
	if (added) {
		*known = reader->stack_words;
		reader->stacks = memory_grow(reader->stacks, &reader->stack_capacity,
					     reader->stack_words + count, sizeof(*words));
		memcpy(reader->stacks + reader->stack_words, words, count * sizeof(*words));
		reader->stack_words += count;
	}
	*stack = *known;
	return true;
}

/* --- who awaits a task */

static void awaiter_add(struct awaiters *awaiters, uint64_t at)
{
	bool added = false;

	if (awaiters->count < AWAITERS_MAX)
		index_put(&awaiters->known, at, &added);
	else if (!index_find(&awaiters->known, at))
		awaiters->cut = true;
	if (added)
		awaiters->at[awaiters->count++] = at;
}

/* Adds what a set has in it. False: it changed, or makes no sense. */
static bool set_add(struct reader *reader, uint64_t set, struct awaiters *awaiters)
{
	const struct python_layout *layout = &reader->python.layout;
	uint64_t used, table, mask, found = 0, slots[SET_PIECE][2];

	if (!word_read(reader, set + layout->set_used, &used) ||
	    !word_read(reader, set + layout->set_table, &table) ||
	    !word_read(reader, set + layout->set_mask, &mask) || mask >= awaiters->slots_left)
		return false;
	awaiters->slots_left -= mask + 1;
	for (uint64_t at = 0; at <= mask && found < used; at += SET_PIECE) {
		uint64_t count = mask + 1 - at < SET_PIECE ? mask + 1 - at : SET_PIECE;

		if (!bytes_read(reader, table + at * sizeof(*slots), slots, count * sizeof(*slots)))
			return false;
		for (uint64_t i = 0; i < count; i++) {
			if (!slots[i][0] || slots[i][1] == SET_REMOVED)
				continue;
			found++;
			awaiter_add(awaiters, slots[i][0]);
		}
	}
	return found == used;
}

/* Fills the tasks that await one, also through futures. False: some changed meanwhile. */
static bool awaiters_read(struct reader *reader, const struct head *task, struct awaiters *awaiters)
{
	struct head head = *task;
	uint32_t tasks = 0, i = 0;

	awaiters->count = 0;
	awaiters->cut = false;
	awaiters->slots_left = SET_SLOTS_MAX;
	index_empty(&awaiters->known);
	for (;;) {
		if (head.awaited_by && head.awaited_by_set &&
		    !set_add(reader, head.awaited_by, awaiters))
			return false;
		if (head.awaited_by && !head.awaited_by_set)
			awaiter_add(awaiters, head.awaited_by);
		/* finds the next future, whose awaiters are this task's */
		for (head.is_task = true; head.is_task && i < awaiters->count; i++) {
			if (!head_read(reader, awaiters->at[i], &head))
				return false;
			if (head.is_task)
				awaiters->at[tasks++] = awaiters->at[i];
		}
		if (head.is_task)
			break;
	}
	awaiters->count = tasks;
	return true;
}

/* --- tasks */

/* True if what is before and after the task in its list has it as its neighbour. */
static bool is_linked(struct reader *reader, uint64_t task, const struct head *head)
{
	const struct python_layout *layout = &reader->python.layout;
	const uint64_t node = task + reader->asyncio[TASK_NODE];
	uint64_t of_next, of_previous;

	return word_read(reader, head->next + layout->list_previous, &of_next) &&
	       word_read(reader, head->previous + layout->list_next, &of_previous) &&
	       of_next == node && of_previous == node;
}

/* True if nothing but its event loop keeps a task that is suspended. */
static bool is_ready(struct reader *reader, const struct head *head)
{
	const uint64_t state_at = reader->asyncio[TASK_AWAITED_BY] + sizeof(uint64_t);
	uint64_t type;
	int32_t state;

	if (!reader->has_waiters)
		return false;
	return !head->waiter ||
	       (word_read(reader, head->waiter + OBJECT_TYPE, &type) &&
		type_is_future(reader, type) &&
		bytes_read(reader, head->waiter + state_at, &state, sizeof(state)) &&
		state != FUTURE_PENDING);
}

/* True if a task is as it was; its neighbours in the list may be others. */
static bool head_same(const struct head *one, const struct head *other)
{
	return one->type == other->type && one->awaited_by == other->awaited_by &&
	       one->name == other->name && one->coroutine == other->coroutine &&
	       one->waiter == other->waiter && one->is_task == other->is_task &&
	       one->awaited_by_set == other->awaited_by_set;
}

static bool chain_same(const struct chain *one, const struct chain *other)
{
	return one->running == other->running && one->cut == other->cut && one->tid == other->tid &&
	       one->count == other->count &&
	       !memcmp(one->frames, other->frames, one->count * sizeof(*one->frames));
}

static enum taken task_try(struct reader *reader, struct task *task)
{
	static struct chain before, after;
	static struct awaiters awaiters;
	struct head head, now;
	enum taken taken;

	memory_renew(reader);
	if (!head_read(reader, task->address, &head))
		return TAKEN_UNREAD;
	if (!head.is_task)
		return TAKEN_UNREAD;
	if (!head.next && !head.previous)
		return TAKEN_ENDED;
	if (!is_linked(reader, task->address, &head))
		return TAKEN_NOT;
	taken = chain_read(reader, task, head.coroutine, &before);
	if (taken != TAKEN)
		return taken;
	if (!stack_keep(reader, &before, &task->stack) ||
	    !name_read(reader, head.name, &task->number, &task->name))
		return TAKEN_UNREAD;
	if (!awaiters_read(reader, &head, &awaiters))
		return TAKEN_NOT;
	task->state = before.running		? TASK_RUNNING
		      : is_ready(reader, &head) ? TASK_READY
						: TASK_WAITING;
	memory_renew(reader);
	if (!head_read(reader, task->address, &now) || !head_same(&now, &head) ||
	    !is_linked(reader, task->address, &now) ||
	    chain_read(reader, task, now.coroutine, &after) != TAKEN ||
	    !chain_same(&before, &after))
		return TAKEN_NOT;
	task->more_await = awaiters.cut;
	if (reader->awaiter_count + awaiters.count > AWAITERS_ALL_MAX) {
		task->more_await = awaiters.count;
		awaiters.count = 0;
	}
	if (awaiters.count) {
		reader->awaiters = memory_grow(reader->awaiters, &reader->awaiter_capacity,
					       reader->awaiter_count + awaiters.count,
					       sizeof(*reader->awaiters));
		memcpy(reader->awaiters + reader->awaiter_count, awaiters.at,
		       awaiters.count * sizeof(*awaiters.at));
	}
	task->awaiters = reader->awaiter_count;
	task->awaiter_count = awaiters.count;
	reader->awaiter_count += awaiters.count;
	task->tid = before.tid;
	return TAKEN;
}

/* Reads the tasks; those that change meanwhile again when all others were read. */
static void tasks_take(struct reader *reader)
{
	struct task_counts *counts = &reader->to->counts;
	size_t tries = TRIES * reader->task_count;

	for (size_t i = 0; i < tries && clock_monotonic_ns() <= reader->until_ns; i++) {
		struct task *task = &reader->tasks[i % reader->task_count];

		if (task->taken != TAKEN && task->taken != TAKEN_ENDED)
			task->taken = task_try(reader, task);
	}
	for (size_t i = 0; i < reader->task_count; i++) {
		counts->tasks += reader->tasks[i].taken == TAKEN;
		counts->moved += reader->tasks[i].taken == TAKEN_NOT;
		counts->unread += reader->tasks[i].taken == TAKEN_UNREAD;
		counts->left += reader->tasks[i].taken == TAKEN_LEFT;
	}
}

/* Adds a task of a list, unless it is known. False: there are too many. */
static bool task_add(struct reader *reader, uint64_t address, const struct thread *thread)
{
	uint64_t *position;
	bool added;

	if (reader->task_count == TASKS_MAX)
		return index_find(&reader->task_at, address) != NULL;
	position = index_put(&reader->task_at, address, &added);
	if (!added)
		return true;
	*position = reader->task_count;
	reader->tasks = memory_grow(reader->tasks, &reader->task_capacity, reader->task_count + 1,
				    sizeof(*reader->tasks));
	reader->tasks[reader->task_count++] =
		(struct task){.address = address, .tid = thread->tid, .thread = thread->state};
	return true;
}

/* Adds the tasks of a list. False: it changed meanwhile. */
static bool list_walk(struct reader *reader, uint64_t list, const struct thread *thread)
{
	const struct python_layout *layout = &reader->python.layout;
	uint64_t before = list, at, back;

	memory_renew(reader);
	if (!word_read(reader, list + layout->list_next, &at))
		return false;
	while (at != list) {
		reader->memory->calls_left = TASK_CALLS;
		if (!at || !word_read(reader, at + layout->list_previous, &back) || back != before)
			return false;
		if (!task_add(reader, at - reader->asyncio[TASK_NODE], thread) ||
		    clock_monotonic_ns() > reader->until_ns) {
			reader->to->counts.left++;
			return true;
		}
		before = at;
		if (!word_read(reader, at + layout->list_next, &at))
			return false;
	}
	return true;
}

static void list_take(struct reader *reader, uint64_t list, const struct thread *thread)
{
	for (int i = 0; i < LIST_TRIES; i++)
		if (list_walk(reader, list, thread))
			return;
	reader->to->counts.lists++;
}

/* Finds the threads of an interpreter. False: they changed meanwhile. */
static bool threads_find(struct reader *reader, uint64_t interpreter)
{
	const struct python_layout *layout = &reader->python.layout;
	uint64_t state, owner, tid;

	if (!word_read(reader, interpreter + layout->interpreter_threads, &state))
		return false;
	for (; state; reader->thread_count++) {
		if (reader->thread_count == THREADS_MAX ||
		    !word_read(reader, state + layout->thread_interpreter, &owner) ||
		    owner != interpreter ||
		    !word_read(reader, state + layout->thread_native_id, &tid))
			return false;
		reader->threads = memory_grow(reader->threads, &reader->thread_capacity,
					      reader->thread_count + 1, sizeof(*reader->threads));
		reader->threads[reader->thread_count] = (struct thread){state, (int64_t)tid};
		if (!word_read(reader, state + layout->thread_next, &state))
			return false;
	}
	return true;
}

static bool lists_take(struct reader *reader)
{
	const struct python_layout *layout = &reader->python.layout;
	const struct thread none = {0, 0};
	uint64_t interpreter;

	memory_renew(reader);
	if (!word_read(reader, reader->python.runtime + layout->runtime_interpreters,
		       &interpreter) ||
	    !interpreter)
		return false;
	for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		const size_t first = reader->thread_count;
		bool found = false;

		for (int try = 0; !found && try < LIST_TRIES; try++) {
			reader->thread_count = first;
			memory_renew(reader);
			found = threads_find(reader, interpreter);
		}
		reader->to->counts.lists += !found;
		for (size_t at = first; at < reader->thread_count; at++)
			list_take(reader, reader->threads[at].state + reader->asyncio[THREAD_TASKS],
				  &reader->threads[at]);
		list_take(reader, interpreter + reader->asyncio[INTERPRETER_TASKS], &none);
		memory_renew(reader);
		if (!word_read(reader, interpreter + layout->interpreter_next, &interpreter))
			return false;
	}
	return true;
}

/* --- groups */

static const struct reader *sorted; /* for qsort(), whose functions compare positions of tasks */

/* Orders tasks by their names: those with numbers last. */
static int name_compare(const void *a, const void *b)
{
	const struct task *one = &sorted->tasks[*(const uint64_t *)a];
	const struct task *other = &sorted->tasks[*(const uint64_t *)b];

	if (!one->name != !other->name)
		return one->name ? -1 : 1;
	if (one->name)
		return strcmp(sorted->names.bytes + one->name - 1,
			      sorted->names.bytes + other->name - 1);
	return one->number < other->number ? -1 : one->number > other->number;
}

static int group_and_name_compare(const void *a, const void *b)
{
	const struct task *one = &sorted->tasks[*(const uint64_t *)a];
	const struct task *other = &sorted->tasks[*(const uint64_t *)b];

	if (one->group != other->group)
		return one->group < other->group ? -1 : 1;
	return name_compare(a, b);
}

/* Adds a name to a list; false, with an ellipsis, where there is no room. */
static bool name_add(struct text *out, const char *name)
{
	const char *between = out->length ? ", " : "";
	const bool fits = out->length + strlen(name) + 2 * strlen(", ...") < TASK_NAMES_SIZE;

	text_add_format(out, "%s%s", between, fits ? name : "...");
	return fits;
}

/* Returns the names of tasks, which are in order: each once, numbers as ranges. The caller frees
 * them. more: there are others, too. */
static char *names_make(const struct reader *reader, const uint64_t *positions, size_t count,
			bool more)
{
	const char *names = reader->names.bytes, *last = "";
	struct text out = {0};
	bool fits = true;
	char range[64];

	for (size_t i = 0; i < count && fits;) {
		const struct task *task = &reader->tasks[positions[i++]];
		unsigned long long number = task->number, end = number;

		if (task->name) {
			const char *name = names + task->name - 1;

			if (strcmp(name, last) != 0)
				fits = name_add(&out, name);
			last = name;
			continue;
		}
		/* of one number there may be several: of Task classes, and of awaiters */
		while (i < count && reader->tasks[positions[i]].number - end <= 1)
			end = reader->tasks[positions[i++]].number;
		if (end == number)
			snprintf(range, sizeof(range), "Task-%llu", number);
		else
			snprintf(range, sizeof(range), "Task-%llu%sTask-%llu", number,
				 end == number + 1 ? ", " : "..", end);
		fits = name_add(&out, range);
	}
	if (fits && more)
		name_add(&out, "...");
	return out.length ? text_take(&out) : memory_text("", 0);
}

/* Returns a stack as --folded writes it, without outermost functions that have no room. The caller
 * frees it. */
static char *stack_make(const struct reader *reader, const struct task *task)
{
	const uint64_t *words = reader->stacks + task->stack, count = words[0];
	uint64_t first = count;
	struct text out = {0};
	size_t bytes = sizeof("[lost];");

	while (first && bytes + strlen(python_name_text(words[1 + first])) + 1 < TASK_STACK_SIZE)
		bytes += strlen(python_name_text(words[1 + first--])) + 1;
	if (first || words[1])
		text_add_string(&out, "[lost];");
	for (uint64_t i = first; i < count; i++)
		text_add_format(&out, "%s%s", i > first ? ";" : "", python_name_text(words[2 + i]));
	return out.length ? text_take(&out) : memory_text("", 0);
}

/* Replaces the addresses of those that await a task by their positions, and sets its group: of
 * tasks with the same thread, state and stack, that are awaited by tasks with the same stacks. */
static void task_place(struct reader *reader, struct task *task)
{
	uint64_t key[] = {task->stack, (uint64_t)task->tid, task->state, 0};
	struct index stacks = {.used = 0};
	uint32_t count = 0;
	bool added;

	for (uint32_t i = 0; i < task->awaiter_count; i++) {
		uint64_t *awaiters = reader->awaiters + task->awaiters;
		const uint64_t *position = index_find(&reader->task_at, awaiters[i]);

		if (!position || reader->tasks[*position].taken != TAKEN) {
			task->more_await = true;
			continue;
		}
		awaiters[count++] = *position;
		index_put(&stacks, reader->tasks[*position].stack, &added);
		if (added)
			key[3] += hash_u64(reader->tasks[*position].stack + 1);
	}
	index_clear(&stacks);
	task->awaiter_count = count;
	task->group = hash_bytes(key, sizeof(key));
}

/* Makes the group of tasks, which are in order. */
static void group_make(struct reader *reader, const uint64_t *positions, size_t count)
{
	const struct task *one = &reader->tasks[positions[0]];
	uint64_t *awaiters = NULL;
	size_t awaiter_count = 0, capacity = 0;
	struct task_group group;
	bool more = false;

	if (reader->to->group_count == TASK_GROUPS_MAX || reader->text_bytes > TEXT_BYTES_MAX) {
		reader->to->counts.left += count;
		reader->to->counts.tasks -= count;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct task *task = &reader->tasks[positions[i]];

		more |= task->more_await;
		if (!task->awaiter_count)
			continue;
		awaiters = memory_grow(awaiters, &capacity, awaiter_count + task->awaiter_count,
				       sizeof(*awaiters));
		memcpy(awaiters + awaiter_count, reader->awaiters + task->awaiters,
		       task->awaiter_count * sizeof(*awaiters));
		awaiter_count += task->awaiter_count;
	}
	if (awaiter_count)
		qsort(awaiters, awaiter_count, sizeof(*awaiters), name_compare);
	group = (struct task_group){.count = count,
				    .tid = one->tid,
				    .state = one->state,
				    .stack = stack_make(reader, one),
				    .names = names_make(reader, positions, count, false),
				    .awaited_by =
					    names_make(reader, awaiters, awaiter_count, more)};
	reader->text_bytes += group_bytes(&group);
	group_add(reader->to, &group);
	free(awaiters);
}

static int count_compare(const void *a, const void *b)
{
	const struct task_group *one = a, *other = b;

	if (one->count != other->count)
		return one->count < other->count ? 1 : -1;
	if (one->state != other->state)
		return one->state < other->state ? -1 : 1;
	return strcmp(one->stack, other->stack);
}

static void groups_make(struct reader *reader)
{
	uint64_t *positions = memory_get((reader->task_count + 1) * sizeof(*positions));
	struct tasks *to = reader->to;
	size_t count = 0, end;

	sorted = reader;
	for (size_t i = 0; i < reader->task_count; i++) {
		if (reader->tasks[i].taken != TAKEN)
			continue;
		task_place(reader, &reader->tasks[i]);
		positions[count++] = i;
	}
	if (count)
		qsort(positions, count, sizeof(*positions), group_and_name_compare);
	for (size_t i = 0; i < count; i = end) {
		const uint64_t group = reader->tasks[positions[i]].group;

		for (end = i + 1; end < count && reader->tasks[positions[end]].group == group;)
			end++;
		group_make(reader, positions + i, end - i);
	}
	if (to->group_count)
		qsort(to->groups, to->group_count, sizeof(*to->groups), count_compare);
	free(positions);
}

/* --- a process */

/* Reads where asyncio has its tasks. */
static bool asyncio_read(struct reader *reader, uint64_t address)
{
	uint64_t *asyncio = reader->asyncio;

	if (!bytes_read(reader, address, asyncio, sizeof(reader->asyncio)))
		return false;
	for (size_t i = TASK_NAME; i <= TASK_NODE; i++)
		if (asyncio[TASK_BYTES] > PYTHON_STRUCT_BYTES_MAX ||
		    asyncio[i] >= asyncio[TASK_BYTES])
			return false;
	if (asyncio[INTERPRETER_TASKS] > PYTHON_OFFSET_MAX ||
	    asyncio[THREAD_TASK] > PYTHON_OFFSET_MAX || asyncio[THREAD_TASKS] > PYTHON_OFFSET_MAX)
		return false;
	reader->has_waiters = asyncio[TASK_NAME] == asyncio[TASK_COROUTINE] + sizeof(uint64_t) &&
			      asyncio[TASK_IS_TASK] == asyncio[TASK_AWAITED_BY] + sizeof(uint64_t) +
							       sizeof(int32_t) &&
			      asyncio[TASK_COROUTINE] > asyncio[TASK_IS_TASK] + sizeof(uint64_t);
	return true;
}

/* Says why the tasks of a process can't be read, or returns 0. */
static int process_check(struct reader *reader, const struct task_source *source,
			 char why[TASK_WHY_SIZE])
{
	const uint64_t *exports = source->exports.python;
	uint64_t version = 0;
	unsigned int major, minor;

	if (!exports[MODULE_PYTHON_VERSION] ||
	    !word_read(reader, exports[MODULE_PYTHON_VERSION] + source->distance, &version) ||
	    version >> 16 != VERSION_3_14) {
		major = version >> 24 & 0xff;
		minor = version >> 16 & 0xff;
		if (major)
			snprintf(why, TASK_WHY_SIZE,
				 "it runs Python %u.%u, and tasks can be read of 3.14 only "
				 "(--python shows what threads of 3.11 to 3.14 do)",
				 major, minor);
		else
			snprintf(why, TASK_WHY_SIZE,
				 "it runs a Python older than 3.11, and tasks can be read of 3.14 "
				 "only");
		return -ENOTSUP;
	}
	snprintf(reader->to->version, sizeof(reader->to->version), "%u.%u.%u",
		 (unsigned int)(version >> 24 & 0xff), (unsigned int)(version >> 16 & 0xff),
		 (unsigned int)(version >> 8 & 0xff));
	if (!python_open(&reader->python, reader->memory, exports, source->distance)) {
		snprintf(why, TASK_WHY_SIZE,
			 "its Python %s is a build without the GIL, or does not say where its data "
			 "is",
			 reader->to->version);
		return -ENOTSUP;
	}
	if (!source->asyncio) {
		snprintf(why, TASK_WHY_SIZE,
			 "it has not loaded asyncio (none of its files has a section %s)",
			 ASYNCIO_SECTION);
		return -ENOTSUP;
	}
	if (!asyncio_read(reader, source->asyncio)) {
		snprintf(why, TASK_WHY_SIZE, "its section %s makes no sense", ASYNCIO_SECTION);
		return -EIO;
	}
	return 0;
}

int tasks_list(struct tasks *tasks, const struct task_source *source, struct thread_memory *memory,
	       char why[TASK_WHY_SIZE])
{
	const uint64_t *exports = source->exports.python;
	struct reader reader = {
		.to = tasks,
		.memory = memory,
		.pid = (uint64_t)source->pid,
		.coroutine_type = exports[MODULE_PYTHON_COROUTINE] + source->distance,
		.generator_type = exports[MODULE_PYTHON_GENERATOR] + source->distance,
		.async_generator_type = exports[MODULE_PYTHON_ASYNC_GENERATOR] + source->distance,
		.until_ns = clock_monotonic_ns() + READ_NS,
	};
	int err;

	memory_renew(&reader);
	python_names_begin(clock_monotonic_ns());
	err = process_check(&reader, source, why);
	if (!err && !lists_take(&reader)) {
		snprintf(why, TASK_WHY_SIZE, "its interpreters can't be read");
		err = -EIO;
	}
	if (!err)
		tasks_take(&reader);
	if (!err)
		groups_make(&reader);
	free(reader.threads);
	free(reader.tasks);
	free(reader.stacks);
	free(reader.awaiters);
	text_done(&reader.names);
	index_clear(&reader.task_at);
	index_clear(&reader.futures);
	index_clear(&reader.stack_at);
	return err;
}

/* --- requests to a parser. The first one, with the descriptor of the process' memory, has all
 * tasks read; then their groups are requested one by one. */

enum task_request_kind {
	TASKS_READ = PARSER_TASKS, /* struct tasks_answer */
	TASKS_GROUP,		   /* struct task_group_answer */
};

struct task_request {
	uint32_t kind;
	uint32_t group; /* index of the requested group */
	struct task_source source;
};

struct tasks_answer {
	int32_t err; /* -errno, or 0; why has it in words */
	uint32_t group_count;
	struct task_counts counts;
	char version[16];
	char why[TASK_WHY_SIZE];
};

struct task_group_answer {
	struct task_group group; /* without its texts */
	char stack[TASK_STACK_SIZE];
	char names[TASK_NAMES_SIZE], awaited_by[TASK_NAMES_SIZE];
};

_Static_assert(sizeof(struct task_group_answer) <= PARSER_MESSAGE_MAX, "one message");

/* Tasks that were read last. */
static struct tasks present;

static size_t all_answer(const struct parser_request *request, const struct task_request *of,
			 struct tasks_answer *answer)
{
	struct thread_memory *memory = runtime_memory_begin(request, TASK_CALLS);

	if (!memory)
		return 0;
	tasks_done(&present);
	memset(answer, 0, sizeof(*answer));
	answer->err = tasks_list(&present, &of->source, memory, answer->why);
	answer->group_count = (uint32_t)present.group_count;
	answer->counts = present.counts;
	memcpy(answer->version, present.version, sizeof(answer->version));
	return sizeof(*answer);
}

static size_t group_answer(const struct task_request *of, struct task_group_answer *answer)
{
	const struct task_group *group;

	if (of->group >= present.group_count)
		return 0;
	group = &present.groups[of->group];
	memset(answer, 0, sizeof(*answer));
	answer->group = *group;
	answer->group.stack = answer->group.names = answer->group.awaited_by = NULL;
	snprintf(answer->stack, sizeof(answer->stack), "%s", group->stack);
	snprintf(answer->names, sizeof(answer->names), "%s", group->names);
	snprintf(answer->awaited_by, sizeof(answer->awaited_by), "%s", group->awaited_by);
	return sizeof(*answer);
}

size_t task_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct task_request of;

	if (parser_request_kind(request) < PARSER_TASKS)
		return file_service(request, answer);
	if (request->count != sizeof(of))
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	switch (of.kind) {
	case TASKS_READ:
		return all_answer(request, &of, (struct tasks_answer *)answer);
	case TASKS_GROUP:
		return group_answer(&of, (struct task_group_answer *)answer);
	default:
		return 0;
	}
}

/* Returns a parser's text, which the caller frees. */
static char *text_of(char *text, size_t size)
{
	text[size - 1] = '\0';
	return memory_text(text, strlen(text));
}

static int group_take(struct tasks *tasks, struct parser *parser, uint32_t number, size_t *bytes)
{
	const struct task_request request = {.kind = TASKS_GROUP, .group = number};
	static struct task_group_answer answer;
	struct task_group *group;
	int err = runtime_list_request(parser, &request, sizeof(request), -1, &answer,
				       sizeof(answer));

	if (err)
		return err;
	group = group_add(tasks, &answer.group);
	group->stack = text_of(answer.stack, sizeof(answer.stack));
	group->names = text_of(answer.names, sizeof(answer.names));
	group->awaited_by = text_of(answer.awaited_by, sizeof(answer.awaited_by));
	*bytes += group_bytes(group);
	return *bytes > 2 * TEXT_BYTES_MAX ? -EBADMSG : 0;
}

int tasks_read(struct tasks *tasks, const struct task_source *source, const char *proc_root,
	       struct parser *parser, struct error *e)
{
	const struct task_request request = {.kind = TASKS_READ, .source = *source};
	int memory = proc_file_open(proc_root, 0, source->pid, "mem"), err;
	struct tasks_answer answer;
	size_t bytes = 0;

	if (memory < 0)
		return error_set(e, -memory, EXIT_FAILED, "tasks of process %lld: its memory: %s",
				 (long long)source->pid, strerror(-memory));
	err = runtime_list_request(parser, &request, sizeof(request), memory, &answer,
				   sizeof(answer));
	close(memory);
	if (!err && answer.err) {
		answer.why[TASK_WHY_SIZE - 1] = '\0';
		return error_set(e, EIO, EXIT_FAILED, "tasks of process %lld: %s",
				 (long long)source->pid, answer.why);
	}
	if (!err) {
		tasks->counts = answer.counts;
		memcpy(tasks->version, answer.version, sizeof(tasks->version));
		tasks->version[sizeof(tasks->version) - 1] = '\0';
	}
	for (uint32_t i = 0; !err && i < answer.group_count && i < TASK_GROUPS_MAX; i++)
		err = group_take(tasks, parser, i, &bytes);
	return err ? error_set(e, -err, EXIT_FAILED,
			       "tasks of process %lld: the process that reads them does not answer",
			       (long long)source->pid)
		   : 0;
}
