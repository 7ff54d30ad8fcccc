/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_monitors.h"
#include "base/clock.h"
#include "base/index.h"

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (120 * NS_PER_SECOND)
#define KNOWN_OLD_NS (30 * NS_PER_SECOND) /* an exec may have passed unseen */
#define OTHER_OLD_NS (60 * NS_PER_SECOND)
#define LIST_OLD_NS (5 * NS_PER_SECOND) /* threads come and go */
#define RESTING_MAX 65536

struct monitor_process {
	struct cache_entry entry; /* key: pid */
	int64_t next_look_ns, next_list_ns;
	bool known;  /* a parser knows the layout */
	bool nested; /* the process knows its threads by other ids */
	struct runtime_location location;
	struct runtime_standing standing;
	/* Threads to episodes, plus one, in which they wait for no monitor: there are many of them,
	 * and no request is made for them again */
	struct index resting;
};

static void process_drop(void *entry)
{
	index_clear(&((struct monitor_process *)entry)->resting);
}

void java_monitors_init(struct java_monitors *monitors, const char *proc_root,
			int64_t (*id_of)(const char *proc_root, const struct stack_thread *thread),
			struct parser *parser)
{
	*monitors = (struct java_monitors){
		.reader = {.proc_root = proc_root, .parser = parser},
		.id_of = id_of,
		.processes = {.entry_bytes = sizeof(struct monitor_process),
			      .entries_max = PROCESSES_MAX,
			      .drop = process_drop},
	};
}

void java_monitors_done(struct java_monitors *monitors)
{
	cache_done(&monitors->processes);
}

void java_monitors_sweep(struct java_monitors *monitors, int64_t now_ns)
{
	cache_sweep(&monitors->processes, now_ns, PROCESS_IDLE_NS);
}

static bool is_jvm(const struct runtime_exports *exports)
{
	return exports->java[MODULE_JAVA_TYPES];
}

static const struct runtime_kind jvm_kind = {{"/libjvm.so", NULL}, is_jvm};

static bool layout_request(struct java_monitors *monitors, struct monitor_process *process,
			   const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_JAVA_LAYOUT};
	struct java_layout_answer answer = {.has_monitors = false};

	/* faults: names of fields, which nobody else reads, are in memory only when they are
	 * read */
	return !runtime_location_request(&monitors->reader, &process->standing, thread,
					 &process->location, &request, true, &answer,
					 sizeof(answer)) &&
	       answer.has_monitors;
}

static struct monitor_process *process_get(struct java_monitors *monitors,
					   const struct stack_thread *thread)
{
	bool added;
	struct monitor_process *process =
		cache_get(&monitors->processes, (uint64_t)thread->pid, thread->now_ns, &added);
	int64_t began_ns;

	if (runtime_look_begin(&monitors->looks, thread->now_ns, process->next_look_ns,
			       &began_ns)) {
		process->known =
			runtime_find(&monitors->reader, thread, &jvm_kind, &process->location) &&
			layout_request(monitors, process, thread);
		process->nested = process->known && monitors->id_of(monitors->reader.proc_root,
								    thread) != thread->tid;
		process->next_look_ns =
			runtime_look_end(&monitors->looks, thread->now_ns, began_ns,
					 process->known ? KNOWN_OLD_NS : OTHER_OLD_NS);
	}
	return process;
}

static void resting_put(struct monitor_process *process, int64_t tid, uint64_t episode)
{
	if (process->resting.used >= RESTING_MAX)
		index_empty(&process->resting);
	*index_put(&process->resting, (uint64_t)tid, NULL) = episode + 1;
}

bool java_monitor_find(struct java_monitors *monitors, const struct stack_thread *thread,
		       uint64_t episode, struct java_monitor *monitor)
{
	struct monitor_process *process = process_get(monitors, thread);
	struct runtime_request request = {.kind = RUNTIME_JAVA_MONITOR, .episode = episode};
	const uint64_t *resting = index_find(&process->resting, (uint64_t)thread->tid);
	struct java_monitor_answer answer = {.known = false};

	if (!process->known || (resting && *resting == episode + 1))
		return false;
	request.id =
		(uint64_t)(process->nested ? monitors->id_of(monitors->reader.proc_root, thread)
					   : thread->tid);
	request.anew = thread->now_ns >= process->next_list_ns;
	if (runtime_location_request(&monitors->reader, &process->standing, thread,
				     &process->location, &request, false, &answer, sizeof(answer)))
		return false;
	if (request.anew)
		process->next_list_ns = thread->now_ns + LIST_OLD_NS;
	if (!answer.known) /* the parser is a new one */
		process->next_look_ns = 0;
	if (answer.requested && !answer.waits)
		resting_put(process, thread->tid, episode);
	*monitor = answer.monitor;
	return answer.waits;
}

bool java_monitors_due(struct java_monitors *monitors, const struct stack_thread *thread)
{
	const struct monitor_process *process =
		cache_find(&monitors->processes, (uint64_t)thread->pid);

	return !process || thread->now_ns >= process->next_look_ns;
}
