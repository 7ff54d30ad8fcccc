/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleeps in which a thread's registers still show a system call that it does not wait in: it was
 * stopped, traced or frozen on the way out of the call, or has a page fault in it. */
#include "waits/elsewhere.h"
#include "base/text.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "waits/memory_wait.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES 8192

static void frozen_describe(struct wait *wait, const char *controller)
{
	char text[FILE_BYTES];
	const char *path = NULL;
	size_t length = 0;

	if (proc_file_read(wait_root(wait), wait->pid, wait->tid, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_of_controller(text, controller, &length);
	text_add_format(wait->text, "frozen cgroup%s%.*s", path ? " " : "", (int)length,
			path ? path : "");
}

/* cgroup v2 has freezing, but no controller of it: the name of none finds the thread's group. */
static void frozen_v2_describe(struct wait *wait)
{
	frozen_describe(wait, "");
}

static void frozen_v1_describe(struct wait *wait)
{
	frozen_describe(wait, "freezer");
}

static void userfault_describe(struct wait *wait)
{
	wait->facts.kind = WAIT_FILE;
	wait->facts.stored = true;
	text_add_string(wait->text, USERFAULT_WORDS);
}

static void stopped_describe(struct wait *wait)
{
	static const char key[] = "\nTracerPid:";
	char status[FILE_BYTES];
	const char *line = NULL;
	int64_t tracer;

	if (proc_file_read(wait_root(wait), wait->pid, wait->tid, "status", status,
			   sizeof(status)) > 0)
		line = strstr(status, key);
	tracer = line ? strtoll(line + strlen(key), NULL, 10) : 0;
	if (tracer) {
		wait->facts.pid = tracer;
		wait_add_thread(wait, "traced by ", tracer);
	} else if (line) {
		text_add_string(wait->text, "SIGCONT");
	}
}

/* Functions that wchan shows, of Linux 4.3 (userfaultfd), 5.2 (cgroup v2) and earlier to 6.18. */
static const struct {
	const char *wchan;
	wait_describer *describe;
} rows[] = {
	{"do_freezer_trap", frozen_v2_describe},
	{"get_signal", frozen_v2_describe}, /* has that one inlined; all other waits there are T */
	{"__refrigerator", frozen_v1_describe},
	{"handle_userfault", userfault_describe},
};

bool elsewhere_describe(struct wait *wait, enum thread_state_kind state)
{
	char wchan[64];
	ssize_t length;

	if (state == STATE_STOPPED) {
		stopped_describe(wait);
		return true;
	}
	if (state != STATE_SLEEP && state != STATE_DISK)
		return false;
	length = proc_file_read(wait_root(wait), wait->pid, wait->tid, "wchan", wchan,
				sizeof(wchan));
	for (size_t i = 0; length > 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].wchan, wchan)) {
			rows[i].describe(wait);
			return true;
		}
	return false;
}
