/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_frames.h"
#include "base/clock.h"
#include "base/names.h"
#include "unwind/elf/process_file.h"
#include "unwind/function_name.h"

#include <stdio.h>
#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* an exec may have passed unseen */
/* Limits of work, as struct python_stack_answer has it. */
#define SCAN_PROCESS_WORK 80000 /* work in one scan for stacks of one process */
#define SCAN_WORK 200000	/* work in one scan for all stacks */

struct python_process {
	struct cache_entry entry; /* key: pid */
	int64_t looked_ns;
	bool foreign;		     /* the process knows its threads by other ids */
	const struct module *module; /* the interpreter; distance: how far from its file */
	uint64_t distance;
	struct runtime_standing standing;
	int64_t scan_ns;
	uint64_t work; /* work of reading its stacks, in the scan of scan_ns */
};

void python_frames_init(struct python_frames *python, const char *proc_root,
			struct module_table *modules, struct parser *parser)
{
	*python = (struct python_frames){
		.reader = {.proc_root = proc_root, .parser = parser},
		.modules = modules,
		.processes = {.entry_bytes = sizeof(struct python_process),
			      .entries_max = PROCESSES_MAX},
	};
}

void python_frames_clear(struct python_frames *python)
{
	cache_done(&python->processes);
}

void python_frames_sweep(struct python_frames *python, int64_t now_ns)
{
	cache_sweep(&python->processes, now_ns, PROCESS_IDLE_NS);
}

/* Finds the innermost interpreter that the walk passes, and how far from its file's addresses it
 * lies. */
static const struct module *interpreter_find(const struct python_frames *python,
					     const struct stack_walk *walk, uint64_t *distance)
{
	uint32_t last = MODULE_NONE;

	for (uint32_t i = 0; i < walk->count; i++) {
		const struct frame *frame = &walk->frames[i];
		const struct runtime_exports *exports;
		struct module *module;

		if (frame->module == last || frame->module >= MODULES_KNOWN_MAX)
			continue;
		last = frame->module;
		module = python->modules->modules[last];
		exports = module_exports(python->modules, module);
		if (exports->python[MODULE_PYTHON_RUNTIME]) {
			*distance = walk->locations[i].ip - frame->address;
			return module;
		}
	}
	return NULL;
}

/* Returns the process with its interpreter: the one that this walk passes, or, where it has lost
 * its way, that of an earlier walk. NULL: none is known. */
static struct python_process *process_get(struct python_frames *python,
					  const struct stack_thread *thread,
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
	process->looked_ns = thread->now_ns;
	process->foreign = thread_inner_tid(python->reader.proc_root, thread->pid) != thread->pid;
	return process;
}

/* Returns the name of a frame, transient. A parser's text is cleaned once more. */
static const char *frame_name(const struct python_stack_answer *answer, uint32_t at)
{
	char name[FUNCTION_NAME_SIZE];

	snprintf(name, sizeof(name), "%s", answer->texts + answer->frames[at].name);
	function_name_clean(name);
	return name_transient_string(name);
}

/* Adds the functions of the call of the interpreter that frame *at belongs to. */
static void call_put(const struct python_stack_answer *answer, uint32_t *at, struct stack_walk *to)
{
	uint64_t mark = answer->frames[*at].mark;

	for (; *at < answer->count && answer->frames[*at].mark == mark; (*at)++) {
		if (to->count == STACK_FRAMES_MAX)
			to->end = WALK_DEEP;
		else
			to->frames[to->count++] =
				frame_of_name(MODULE_PYTHON, frame_name(answer, *at));
	}
}

/* Puts each call's functions in place of the C frame that has its mark; where there is no such
 * frame, because the walk lost its way, puts them where it would be. */
static void walk_merge(const struct python_stack_answer *answer, struct stack_walk *walk)
{
	static struct stack_walk merged;
	const struct python_stack_frame *frames = answer->frames;
	const uint32_t count = answer->count;
	uint32_t at = 0;

	merged.end = walk->end;
	merged.count = 0;
	for (uint32_t i = 0; i < walk->count; i++) {
		/* the outermost frame has no known end */
		uint64_t until = walk->locations[i + 1 < walk->count ? i + 1 : i].sp;
		bool call = false;

		while (at < count && frames[at].mark < until) {
			call = call || frames[at].mark >= walk->locations[i].sp;
			call_put(answer, &at, &merged);
		}
		if (call)
			continue;
		if (merged.count == STACK_FRAMES_MAX)
			merged.end = WALK_DEEP;
		else
			merged.frames[merged.count++] = walk->frames[i];
	}
	while (at < count)
		call_put(answer, &at, &merged);
	walk->end = merged.end;
	walk->count = merged.count;
	memcpy(walk->frames, merged.frames, merged.count * sizeof(merged.frames[0]));
}

/* Forgets work of earlier scans. */
static void scan_begin(struct python_frames *python, struct python_process *process, int64_t now_ns)
{
	if (python->scan_ns != now_ns)
		python->work = 0;
	python->scan_ns = now_ns;
	if (process->scan_ns != now_ns)
		process->work = 0;
	process->scan_ns = now_ns;
}

/* True if a walk can be merged with the answer, which may say anything. */
static bool answer_fits(const struct python_stack_answer *answer, size_t bytes)
{
	const size_t head = offsetof(struct python_stack_answer, texts);

	if (bytes < head || answer->count > STACK_FRAMES_MAX ||
	    answer->text_bytes != bytes - head ||
	    (answer->text_bytes && answer->texts[answer->text_bytes - 1]))
		return false;
	for (uint32_t i = 0; i < answer->count; i++)
		if (answer->frames[i].name >= answer->text_bytes)
			return false;
	return true;
}

/* Returns the parser's answer; NULL: there is none. */
static const struct python_stack_answer *stack_request(struct python_frames *python,
						       struct python_process *process,
						       const struct stack_thread *thread)
{
	static struct python_stack_answer got;
	struct runtime_reader *reader = &python->reader;
	int64_t id =
		process->foreign ? thread_inner_tid(reader->proc_root, thread->tid) : thread->tid;
	const struct runtime_request request = {.kind = RUNTIME_PYTHON_STACK,
						.pid = thread->pid,
						.tid = thread->tid,
						.now_ns = thread->now_ns,
						.distance = process->distance,
						.exports = process->module->exports,
						.id = (uint64_t)id};
	ssize_t bytes =
		runtime_request(reader, &process->standing, &request, NULL, &got, sizeof(got));

	return bytes >= 0 && answer_fits(&got, (size_t)bytes) ? &got : NULL;
}

bool python_frames_expect(struct python_frames *python, int64_t pid)
{
	return cache_find(&python->processes, (uint64_t)pid);
}

bool python_frames_lack(struct python_frames *python, const struct stack_thread *thread,
			const struct stack_walk *walk)
{
	uint64_t distance;

	return interpreter_find(python, walk, &distance) ||
	       (walk->end != WALK_WHOLE && python_frames_expect(python, thread->pid));
}

void python_frames_add(struct python_frames *python, const struct stack_thread *thread,
		       struct stack_walk *walk)
{
	const struct python_stack_answer *answer;
	struct python_process *process;

	if (!walk->count)
		return;
	process = process_get(python, thread, walk);
	if (!process)
		return;
	scan_begin(python, process, thread->now_ns);
	if (process->work >= SCAN_PROCESS_WORK || python->work >= SCAN_WORK) {
		python->late_count++;
		return;
	}
	answer = stack_request(python, process, thread);
	if (!answer) {
		python->broken_count++;
		return;
	}
	if (!answer->known) {
		python->unknown_count++;
		return;
	}
	walk_merge(answer, walk);
	python->broken_count += answer->broken;
	process->work += answer->work;
	python->work += answer->work;
}
