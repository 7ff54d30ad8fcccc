/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_monitors.h"
#include "base/clock.h"
#include "base/index.h"
#include "unwind/elf/process_file.h"

#define KNOWN_OLD_NS (30 * NS_PER_SECOND) /* an exec may have passed unseen */
#define LIST_OLD_NS (5 * NS_PER_SECOND)	  /* threads come and go */
#define RESTING_MAX 65536

struct monitor_process {
	struct runtime_process process; /* known: a parser knows the layout */
	int64_t next_list_ns;
	bool nested; /* the process knows its threads by other ids */
	/* Threads to episodes, plus one, in which they wait for no monitor: there are many of them,
	 * and no request is made for them again */
	struct index resting;
};

static void process_drop(void *entry)
{
	index_clear(&((struct monitor_process *)entry)->resting);
}

static bool is_jvm(const struct runtime_exports *exports)
{
	return exports->java[MODULE_JAVA_TYPES];
}

static bool layout_request(struct runtime_finder *monitors, struct runtime_process *process,
			   const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_JAVA_LAYOUT};
	struct java_layout_answer answer;

	((struct monitor_process *)process)->nested =
		thread_inner_tid(monitors->reader.proc_root, thread->tid) != thread->tid;
	return !runtime_process_request(monitors, process, thread, &request, &answer,
					sizeof(answer)) &&
	       answer.has_monitors;
}

const struct runtime_kind java_monitors = {
	{"/libjvm.so", NULL},		is_jvm,	     layout_request, KNOWN_OLD_NS,
	sizeof(struct monitor_process), process_drop};

static void resting_put(struct monitor_process *process, int64_t tid, uint64_t episode)
{
	if (process->resting.used >= RESTING_MAX)
		index_empty(&process->resting);
	*index_put(&process->resting, (uint64_t)tid, NULL) = episode + 1;
}

bool java_monitor_find(struct runtime_finder *monitors, const struct stack_thread *thread,
		       uint64_t episode, struct java_monitor *monitor)
{
	struct runtime_process *process = runtime_process_get(monitors, thread);
	struct monitor_process *of = (struct monitor_process *)process;
	struct runtime_request request = {.kind = RUNTIME_JAVA_MONITOR, .episode = episode};
	const uint64_t *resting = index_find(&of->resting, (uint64_t)thread->tid);
	struct java_monitor_answer answer;

	if (!process->known || (resting && *resting == episode + 1))
		return false;
	request.id =
		(uint64_t)(of->nested ? thread_inner_tid(monitors->reader.proc_root, thread->tid)
				      : thread->tid);
	request.anew = thread->now_ns >= of->next_list_ns;
	if (runtime_process_request(monitors, process, thread, &request, &answer, sizeof(answer)))
		return false;
	if (request.anew)
		of->next_list_ns = thread->now_ns + LIST_OLD_NS;
	if (!answer.known) /* the parser is a new one */
		process->next_look_ns = 0;
	if (answer.requested && !answer.waits)
		resting_put(of, thread->tid, episode);
	*monitor = answer.monitor;
	return answer.waits;
}
