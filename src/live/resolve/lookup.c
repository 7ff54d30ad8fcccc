/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/resolve/lookup_stages.h"
#include "base/memory.h"
#include "proc/processes.h"
#include "proc/containers.h"
#include "proc/devices.h"
#include "proc/proc_words.h"
#include "proc/syscalls.h"
#include "proc/users.h"
#include "waits/waits.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_IDLE_NS (5 * 1000000000ll)
#define SWEEP_USERS_IDLE_NS (600 * 1000000000ll)

/* Stages in the order in which they fill a sample. Columns: name; gives; wants: needs (NEED_*) that
 * stages above must have served for one of gives; of_thread: the stage keeps what it reads with the
 * thread; fill. */
/* clang-format off */
const struct lookup_stage lookup_stages[] = {
	{"work queue",    NEED_WORKQUEUE,                      0,                        false, stage_workqueue},
	{"call",          NEED_SYSCALL | NEED_WAIT_CLASS,      0,                        false, stage_call},
	{"class by call", NEED_WAIT_CLASS,                     NEED_SYSCALL,             false, stage_class_by_call},
	{"waker",         NEED_WAKER_COMM | NEED_WAKER_PID,    0,                        false, stage_waker},
	{"process",       NEEDS_OF_PROCESS,                    0,                        true,  stage_process},
	{"task",          NEED_USER | NEED_CGROUP,             0,                        true,  stage_task},
	{"user",          NEED_USER,                           0,                        true,  stage_user},
	{"cgroup",        NEED_CGROUP,                         0,                        true,  stage_cgroup},
	{"namespace",     NEED_PID_NS,                         0,                        true,  stage_namespace},
	{"values",        NEEDS_PROC_VALUES,                   0,                        true,  stage_values},
	{"container",     NEED_CONTAINER_NAME,                 NEED_CGROUP,              false, stage_container},
	{"file",          NEED_FILE | NEED_WAIT_CLASS,         0,                        false, stage_file},
	{"page cache",    NEED_CACHE,                          NEED_FILE,                false, stage_page_cache},
	{"refaults",      NEED_REFAULTS,                       NEED_FILE,                false, stage_refaults},
	{"class",         NEED_WAIT_CLASS,                     NEED_SYSCALL | NEED_FILE, false, stage_class},
	{"wait",          NEEDS_OF_WAIT,                       NEED_SYSCALL | NEED_FILE, false, stage_wait},
	{"app",           NEEDS_OF_APP,                        0,                        false, stage_app},
};
/* clang-format on */

#define STAGE_COUNT (sizeof(lookup_stages) / sizeof(lookup_stages[0]))
const size_t lookup_stage_count = STAGE_COUNT;
_Static_assert(STAGE_COUNT <= LOOKUP_STAGES_MAX, "raise LOOKUP_STAGES_MAX");

struct lookup *lookup_new(const char *proc_root)
{
	struct lookup *lookup = memory_get(sizeof(*lookup));

	lookup->root = memory_text(proc_root, strlen(proc_root));
	thread_facts_init(&lookup->threads);
	comms_init(&lookup->comms);
	processes_init(&lookup->processes);
	users_init(&lookup->users);
	proc_words_init(&lookup->proc_words);
	page_cache_init(&lookup->page_cache);
	group_refaults_init(&lookup->refaults);
	containers_init(&lookup->containers);
	lookup->waits = waits_new(lookup->root, &lookup->comms);
	lookup->apps = apps_new(lookup->root);
	waits_set_apps(lookup->waits, app_lock_find, app_serves_find, lookup->apps);
	return lookup;
}

void lookup_free(struct lookup *lookup)
{
	if (!lookup)
		return;
	cache_done(&lookup->threads);
	cache_done(&lookup->processes);
	cache_done(&lookup->users);
	cache_done(&lookup->comms);
	cache_done(&lookup->proc_words);
	cache_done(&lookup->page_cache);
	group_refaults_done(&lookup->refaults);
	cache_done(&lookup->containers.known);
	fd_dirs_sweep(&lookup->fd_dirs, INT64_MAX, 0);
	waits_free(lookup->waits);
	apps_free(lookup->apps);
	syscalls_clear();
	devices_clear();
	free(lookup->root);
	free(lookup);
}

void lookup_sweep(struct lookup *lookup, int64_t now_ns)
{
	cache_sweep(&lookup->threads, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->processes, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->comms, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->proc_words, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->page_cache, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->refaults.groups, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->users, now_ns, SWEEP_USERS_IDLE_NS);
	cache_sweep(&lookup->containers.known, now_ns, SWEEP_USERS_IDLE_NS);
	fd_dirs_sweep(&lookup->fd_dirs, now_ns, SWEEP_IDLE_NS);
	waits_sweep(lookup->waits, now_ns, SWEEP_IDLE_NS);
	apps_sweep(lookup->apps, now_ns, SWEEP_IDLE_NS);
}

const char *lookup_user(struct lookup *lookup, int64_t uid, int64_t now_ns)
{
	return user_name(&lookup->users, uid, now_ns);
}

const char *lookup_comm(struct lookup *lookup, int64_t tid, int64_t now_ns)
{
	return comm_find(&lookup->comms, lookup->root, tid, now_ns);
}

/* Plans the stages for needs; seldom, as most lookups are for the same needs as the one before. */
static SELDOM void stages_plan(struct lookup *lookup, uint64_t needs)
{
	size_t count = 0;

	lookup->planned = needs;
	lookup->plan_of_thread = false;
	for (size_t i = 0; i < STAGE_COUNT; i++) {
		if (!(needs & lookup_stages[i].gives))
			continue;
		lookup->plan[count++] = lookup_stages[i].fill;
		lookup->plan_of_thread |= lookup_stages[i].of_thread;
	}
	lookup->plan[count] = NULL;
}

void lookup_fill(struct lookup *lookup, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns)
{
	struct lookup_item item = {
		.lookup = lookup,
		.sample = sample,
		.hint = hint,
		.needs = needs,
		.now_ns = now_ns,
		.in_call = sample->call.nr != ABSENT && sample->thread.kthread != 1,
	};

	item.class_open = needs & NEED_WAIT_CLASS && !sample->wait.why &&
			  sample->now.state == STATE_SLEEP && (item.in_call || hint->no_call);
	if (lookup->planned != needs)
		stages_plan(lookup, needs);
	if (lookup->plan_of_thread)
		item.thread = thread_find(&item);
	for (lookup_stage_fill *const *fill = lookup->plan; *fill; fill++)
		(*fill)(&item);
}

struct waits *lookup_waits(const struct lookup *lookup)
{
	return lookup->waits;
}

struct apps *lookup_apps(const struct lookup *lookup)
{
	return lookup->apps;
}

void lookup_set_container_reader(struct lookup *lookup, container_file_reader *read, void *of)
{
	lookup->containers.read = read;
	lookup->containers.of = of;
}

void lookup_set_task_reader(struct lookup *lookup, task_reader *read)
{
	lookup->read_task = read;
}

size_t lookup_unnamed_containers(const struct lookup *lookup, bool refused)
{
	return containers_unnamed(&lookup->containers, refused);
}
