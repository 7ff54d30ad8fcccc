/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that are held back on the way into a system call, or out of it, which their registers
 * still show: by a signal, a tracer, a frozen cgroup, or the core dump that their process ends
 * with. */
#include "waits/kernel_stack.h"
#include "waits/wait_object.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "sample/waits_on.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES 8192

static void stopped_describe(struct wait *wait)
{
	static const char key[] = "\nTracerPid:";
	char status[FILE_BYTES];
	const char *line = NULL;
	int64_t tracer;

	if (proc_file_read(wait->waits->root, wait->pid, wait->tid, "status", status,
			   sizeof(status)) > 0)
		line = strstr(status, key);
	tracer = line ? strtoll(line + strlen(key), NULL, 10) : 0;
	if (tracer) {
		wait->facts.pid = tracer;
		wait_add_thread(wait, "traced by ", tracer);
	} else if (line) {
		text_add_string(wait->text, WAITS_ON_SIGCONT);
	}
}

const struct wait_object stopped_object = {.describe = stopped_describe};

static void group_describe(struct wait *wait, const char *controller)
{
	char text[FILE_BYTES];
	const char *path = NULL;
	size_t length = 0;

	if (proc_file_read(wait->waits->root, wait->pid, wait->tid, "cgroup", text, sizeof(text)) >
	    0)
		path = cgroup_of_controller(text, controller, &length);
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

static void frozen_v1_describe(struct wait *wait)
{
	group_describe(wait, "freezer");
}

/* Since 6.1 (TASK_FREEZABLE) threads that sleep in these functions freeze where they are: otherwise
 * they are in S there. */
#define SLEEPS_FROZEN                                                            \
	"hrtimer_nanosleep alarmtimer_do_nsleep futex_wait_queue futex_do_wait " \
	"futex_wait_multiple "                                                   \
	"futex_sleep_multiple do_sigtimedwait* unix_stream_data_wait"

static bool frozen_v1_of_stack(struct wait *wait, const char *stack, bool runs)
{
	char name[FUNCTION_SIZE];

	if (runs || !function_next(&stack, name) || !function_listed(SLEEPS_FROZEN, name))
		return false;
	wait->facts = wait_facts_absent;
	text_clear(wait->text);
	frozen_v1_describe(wait);
	return true;
}

const struct wait_object frozen_v1_object = {
	.functions = (const char *const[]){"__refrigerator", NULL},
	.describe = frozen_v1_describe,
	.of_stack = frozen_v1_of_stack,
};

static void core_dump_describe(struct wait *wait)
{
	text_add_string(wait->text, "core dump of its process");
}

/* The thread that dumps waits for all others, and these, which are in I since 4.2, for it. */
const struct wait_object core_dump_object = {
	.functions = (const char *const[]){"coredump_task_exit", "do_exit", "exit_mm",
					   "coredump_wait", NULL},
	.describe = core_dump_describe,
};
