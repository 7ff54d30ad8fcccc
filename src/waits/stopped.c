/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that are held back on the way into a system call, or out of it, which their registers
 * still show: by a signal, a tracer, or the core dump that their process ends with. */
#include "waits/wait_object.h"
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
