/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups that are frozen, by cgroup v2 or by the freezer of cgroup v1.
 *
 * cgroup v1, since 6.1 (TASK_FREEZABLE) a thread that sleeps in some functions is frozen where it
 * is. No scheduler switch shows that: only its state in /proc does, which becomes D. The others are
 * woken, to sleep in __refrigerator.
 */
#include "base/clock.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "sample/waits_on.h"
#include "waits/kernel_stack.h"
#include "waits/wait_object.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CONTROLLER "freezer"
#define FILE_BYTES 8192
#define STATE_STILL_NS NS_PER_SECOND /* how long the state of a group is used */
#define PROCESSES_MAX 4096

/* Functions in which threads freeze where they are: otherwise they are in S there. */
#define SLEEPS_FROZEN                                                            \
	"hrtimer_nanosleep alarmtimer_do_nsleep futex_wait_queue futex_do_wait " \
	"futex_wait_multiple "                                                   \
	"futex_sleep_multiple do_sigtimedwait* unix_stream_data_wait"

/* A process whose threads sleep. */
struct freezer_process {
	struct cache_entry entry; /* key: pid */
	int64_t read_ns;	  /* time when frozen was read; 0: never */
	bool frozen;		  /* the group of one of its threads is not thawed */
};

static struct cache processes = {.entry_bytes = sizeof(struct freezer_process),
				 .entries_max = PROCESSES_MAX};
static struct cgroup_mount freezer;
static bool mount_looked_for;
static int64_t groups_read_ns;
static bool has_groups; /* the freezer has other groups than the mounted one */

/* The thread's group, for that controller; NULL: not known. */
static const char *group_of(const struct wait *wait, const char *controller, char text[FILE_BYTES],
			    size_t *length)
{
	return proc_file_read(wait->waits->root, wait->pid, wait->tid, "cgroup", text, FILE_BYTES) >
			       0
		       ? cgroup_of_controller(text, controller, length)
		       : NULL;
}

static void group_describe(struct wait *wait, const char *controller)
{
	char text[FILE_BYTES];
	size_t length = 0;
	const char *path = group_of(wait, controller, text, &length);

	text_add_format(wait->text, WAITS_ON_FROZEN "cgroup%s%.*s", path ? " " : "", (int)length,
			path ? path : "");
}

/* cgroup v2 has freezing, but no controller of it: the name of none finds the thread's group. */
static void frozen_describe(struct wait *wait)
{
	group_describe(wait, "");
}

const struct wait_object frozen_object = {
	/* 5.2 and later; get_signal has the other one inlined, and all other waits there are T */
	.functions = (const char *const[]){"do_freezer_trap", "get_signal", NULL},
	.describe = frozen_describe,
};

static void freezer_describe(struct wait *wait)
{
	group_describe(wait, CONTROLLER);
}

static bool freezer_is_used(const struct wait *wait)
{
	struct stat found;

	if (!mount_looked_for)
		cgroup_mount_find(&freezer, wait->waits->root, CONTROLLER);
	mount_looked_for = true;
	if (!freezer.v1)
		return false;
	if (!groups_read_ns || wait->now_ns - groups_read_ns >= STATE_STILL_NS) {
		groups_read_ns = wait->now_ns;
		has_groups = !stat(freezer.path, &found) && found.st_nlink > 2;
	}
	return has_groups;
}

/* True if the thread's group is frozen, or about to be, because of its own state or that of a group
 * around it. */
static bool group_is_frozen(const struct wait *wait)
{
	char text[FILE_BYTES], group[PATH_MAX], state[16];
	size_t length;
	const char *path = group_of(wait, CONTROLLER, text, &length);

	if (!path || length <= 1)
		return false;
	snprintf(group, sizeof(group), "%.*s", (int)length, path);
	return cgroup_mount_read(&freezer, group, "freezer.state", state, sizeof(state)) > 0 &&
	       !strncmp(state, "FR", 2); /* FROZEN or FREEZING */
}

static bool freezer_of_sleeper(struct wait *wait)
{
	struct freezer_process *process;
	struct proc_stat stat;
	bool added;

	if (!freezer_is_used(wait))
		return false;
	process = cache_get(&processes, (uint64_t)wait->pid, wait->now_ns, &added);
	if (!process->read_ns || wait->now_ns - process->read_ns >= STATE_STILL_NS) {
		process->read_ns = wait->now_ns;
		process->frozen = group_is_frozen(wait);
	}
	if (!process->frozen || proc_stat_read(wait->waits->root, wait->pid, wait->tid, &stat) ||
	    stat.state != 'D')
		return false;
	freezer_describe(wait);
	return true;
}

static bool freezer_of_stack(struct wait *wait, const char *stack, bool runs)
{
	char name[FUNCTION_SIZE];

	if (runs || !function_next(&stack, name) || !function_listed(SLEEPS_FROZEN, name))
		return false;
	wait->facts = wait_facts_absent;
	text_clear(wait->text);
	freezer_describe(wait);
	return true;
}

static void freezer_done(void)
{
	cgroup_mount_done(&freezer);
	mount_looked_for = false;
	groups_read_ns = 0;
}

const struct wait_object freezer_object = {
	.functions = (const char *const[]){"__refrigerator", NULL},
	.describe = freezer_describe,
	.of_stack = freezer_of_stack,
	.of_sleeper = freezer_of_sleeper,
	.known = &processes,
	.done = freezer_done,
};
