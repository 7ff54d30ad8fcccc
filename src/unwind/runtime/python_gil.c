/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_gil.h"
#include "base/clock.h"
#include "unwind/function_name.h"

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (120 * NS_PER_SECOND)
#define KNOWN_OLD_NS (5 * NS_PER_SECOND) /* an exec or a new interpreter may have passed unseen */
#define OTHER_OLD_NS (60 * NS_PER_SECOND)

struct gil_process {
	struct cache_entry entry; /* key: pid */
	int64_t next_look_ns;
	struct runtime_location location;
	struct runtime_standing standing;
	struct gils_answer known;
	/* Last GIL that was read with its holder's location, for all threads that wait for it in a
	 * scan. */
	int64_t reported_ns;
	uint64_t reported_at;
	struct python_gil reported;
};

void python_gils_init(struct python_gils *gils, const char *proc_root, struct parser *parser)
{
	*gils = (struct python_gils){
		.reader = {.proc_root = proc_root, .parser = parser},
		.processes = {.entry_bytes = sizeof(struct gil_process),
			      .entries_max = PROCESSES_MAX},
	};
}

void python_gils_done(struct python_gils *gils)
{
	cache_done(&gils->processes);
}

void python_gils_sweep(struct python_gils *gils, int64_t now_ns)
{
	cache_sweep(&gils->processes, now_ns, PROCESS_IDLE_NS);
}

static bool is_interpreter(const struct runtime_exports *exports)
{
	return exports->python[MODULE_PYTHON_RUNTIME];
}

static const struct runtime_kind python_kind = {{"/python", "/libpython", NULL}, is_interpreter};

static bool gils_take(struct python_gils *gils, struct gil_process *process,
		      const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_GILS, .anew = true};
	struct gils_answer *known = &process->known;

	if (!runtime_location_request(&gils->reader, &process->standing, thread, &process->location,
				      &request, false, known, sizeof(*known)) &&
	    known->known && known->count <= GILS_MAX)
		return true;
	known->count = 0;
	return false;
}

static struct gil_process *process_get(struct python_gils *gils, const struct stack_thread *thread)
{
	bool added, found;
	struct gil_process *process =
		cache_get(&gils->processes, (uint64_t)thread->pid, thread->now_ns, &added);
	int64_t began_ns;

	if (!runtime_look_begin(&gils->looks, thread->now_ns, process->next_look_ns, &began_ns))
		return process;
	process->known.count = 0;
	found = runtime_find(&gils->reader, thread, &python_kind, &process->location) &&
		gils_take(gils, process, thread);
	process->next_look_ns = runtime_look_end(&gils->looks, thread->now_ns, began_ns,
						 found ? KNOWN_OLD_NS : OTHER_OLD_NS);
	return process;
}

static bool is_within(uint64_t address, uint64_t condition)
{
	return address - condition < sizeof(pthread_cond_t);
}

static bool gil_read(struct python_gils *gils, struct gil_process *process,
		     const struct stack_thread *thread, uint64_t address, bool with_location,
		     struct python_gil *gil)
{
	struct runtime_request request = {
		.kind = RUNTIME_GIL, .address = address, .with_location = with_location};
	struct gil_answer answer = {.found = false};

	if (runtime_location_request(&gils->reader, &process->standing, thread, &process->location,
				     &request, false, &answer, sizeof(answer)) ||
	    !answer.found)
		return false;
	*gil = answer.gil;
	gil->location[PYTHON_LOCATION_SIZE - 1] = '\0';
	function_name_clean(gil->location);
	return true;
}

/* Fills gil as of this scan: what was read last is kept. */
static bool gil_describe(struct python_gils *gils, struct gil_process *process,
			 const struct stack_thread *thread, uint64_t address,
			 struct python_gil *gil)
{
	if (process->reported_ns != thread->now_ns || process->reported_at != address) {
		process->reported_ns = 0;
		if (!gil_read(gils, process, thread, address, true, &process->reported))
			return false;
		process->reported_ns = thread->now_ns;
		process->reported_at = address;
	}
	*gil = process->reported;
	return true;
}

bool python_gil_find(struct python_gils *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_location, struct python_gil *gil)
{
	struct gil_process *process = process_get(gils, thread);

	for (uint32_t i = 0; i < process->known.count; i++) {
		uint64_t at = process->known.gils[i], locked = at + process->known.locked;

		if (!at || (!is_within(futex, locked + CONDITION_AT) &&
			    !is_within(futex, locked + SWITCH_AT)))
			continue;
		if (with_location)
			return gil_describe(gils, process, thread, at, gil);
		return gil_read(gils, process, thread, at, false, gil);
	}
	return false;
}

bool python_gils_due(struct python_gils *gils, const struct stack_thread *thread)
{
	const struct gil_process *process = cache_find(&gils->processes, (uint64_t)thread->pid);

	return !process || thread->now_ns >= process->next_look_ns;
}
