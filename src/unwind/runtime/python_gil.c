/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_gil.h"
#include "base/clock.h"
#include "unwind/function_name.h"
#include "unwind/runtime/python_layout.h"

#define KNOWN_OLD_NS (5 * NS_PER_SECOND) /* an exec or a new interpreter may have passed unseen */

struct gil_process {
	struct runtime_process process;
	struct gils_answer known;
	/* Last GIL that was read with its holder's location, for all threads that wait for it in a
	 * scan. */
	int64_t reported_ns;
	uint64_t reported_at;
	struct python_gil reported;
};

static bool is_interpreter(const struct runtime_exports *exports)
{
	return exports->python[MODULE_PYTHON_RUNTIME];
}

static bool gils_take(struct runtime_finder *gils, struct runtime_process *process,
		      const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_GILS, .anew = true};
	struct gils_answer *known = &((struct gil_process *)process)->known;

	return !runtime_process_request(gils, process, thread, &request, known, sizeof(*known)) &&
	       known->known && known->count <= GILS_MAX;
}

const struct runtime_kind python_gils = {{"/python", "/libpython", NULL},
					 is_interpreter,
					 gils_take,
					 KNOWN_OLD_NS,
					 sizeof(struct gil_process),
					 NULL};

static bool is_within(uint64_t address, uint64_t condition)
{
	return address - condition < sizeof(pthread_cond_t);
}

static bool gil_read(struct runtime_finder *gils, struct gil_process *process,
		     const struct stack_thread *thread, uint64_t address, bool with_location,
		     struct python_gil *gil)
{
	struct runtime_request request = {
		.kind = RUNTIME_GIL, .address = address, .with_location = with_location};
	struct gil_answer answer = {.found = false};

	if (runtime_process_request(gils, &process->process, thread, &request, &answer,
				    sizeof(answer)) ||
	    !answer.found)
		return false;
	*gil = answer.gil;
	gil->location[PYTHON_LOCATION_SIZE - 1] = '\0';
	function_name_clean(gil->location);
	return true;
}

/* Fills gil as of this scan: what was read last is kept. */
static bool gil_describe(struct runtime_finder *gils, struct gil_process *process,
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

bool python_gil_find(struct runtime_finder *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_location, struct python_gil *gil)
{
	struct gil_process *process = (struct gil_process *)runtime_process_get(gils, thread);

	for (uint32_t i = 0; process->process.known && i < process->known.count; i++) {
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
