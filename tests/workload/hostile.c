/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile programs of a user without rights, which attack their observers. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

#define NOBODY 65534
#define RENAME_NS (4 * NS_PER_MS)

/* Gives up all rights, if there are any. */
static void rights_drop(void)
{
	if (geteuid())
		return;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		die("setresuid");
	prctl(PR_SET_DUMPABLE, 1); /* makes its own /proc writable again */
}

static void sleep_in_pipe(void *reading_end)
{
	char c;

	for (;;)
		if (read(*(int *)reading_end, &c, 1) < 0 && errno != EINTR)
			die("read");
}

static void rename_all(void *data)
{
	struct subject *subjects = data;
	long threads = option_number("threads", 100);

	for (unsigned int turn = 0;; turn++) {
		for (long i = 0; i < threads; i++) {
			char name[32];

			snprintf(name, sizeof(name), "%x-%lx", turn, i);
			name[15] = '\0';
			pthread_setname_np(subjects[i].thread, name);
		}
		sleep_ns(RENAME_NS);
	}
}

static void hostile_names_run(void)
{
	long threads = option_number("threads", 100);
	struct subject *subjects = calloc((size_t)threads, sizeof(*subjects)), renamer;
	int fds[2];

	rights_drop();
	make_pipe(fds);
	for (long i = 0; i < threads; i++)
		subject_start(&subjects[i], "named", sleep_in_pipe, &fds[0]);
	subject_start(&renamer, "renamer", rename_all, subjects);
	ready_begin(renamer.tid, getpid());
	line_end();
	hold();
}

const struct workload hostile_workloads[] = {
	{"hostile_names", "threads=N", "threads that get another name every 4 ms",
	 hostile_names_run},
	{0},
};
