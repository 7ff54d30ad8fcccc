/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for something; the ready line has what they wait for, in tsnap's words, in
 * connection, waits_on and remote. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wait.h"

void stay(void)
{
	for (;;)
		pause();
}

pid_t other_start(int close_fd)
{
	pid_t pid = child_fork();

	if (!pid) {
		prctl(PR_SET_NAME, OTHER);
		close(close_fd);
		stay();
	}
	/* the name is set before it is read */
	await_state(pid, pid, "S", NR_ANY);
	return pid;
}

void read_of(struct waiting *w, int fd)
{
	static char buffer[4096];

	if (fd < 0)
		die("open a descriptor to read");
	w->nr = SYS_read;
	w->fd = fd;
	w->arg[0] = fd;
	w->arg[1] = (long)buffer;
	w->arg[2] = sizeof(buffer);
}

static void child(struct waiting *w)
{
	w->pid = other_start(-1);
	w->nr = SYS_wait4;
	w->arg[0] = w->pid;
	snprintf(w->waits_on, sizeof(w->waits_on), "pid %d " OTHER, w->pid);
}

static void child_id(struct waiting *w)
{
	w->pid = other_start(-1);
	w->nr = SYS_waitid;
	w->arg[0] = P_PID;
	w->arg[1] = w->pid;
	w->arg[3] = WEXITED;
	snprintf(w->waits_on, sizeof(w->waits_on), "pid %d " OTHER, w->pid);
}

static void timer(struct waiting *w)
{
	static const struct timespec far = {.tv_sec = 1000000};

	w->nr = SYS_clock_nanosleep;
	w->arg[0] = CLOCK_MONOTONIC;
	w->arg[2] = (long)&far;
	strcpy(w->waits_on, "timer");
}

static const struct wait_row other_waits[] = {
	{"child", child},
	{"child_id", child_id},
	{"timer", timer},
	{0},
};

static const struct wait_row *const tables[] = {
	socket_waits, file_waits, set_waits, lock_waits, other_waits,
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static void call_forever(void *data)
{
	const struct waiting *w = data;
	const long *a = w->arg;

	for (;;)
		syscall(w->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void waiting_run(const struct wait_row *row)
{
	static struct waiting w = {.fd = -1, .inflight = -1, .semaphores = -1};
	struct subject subject;

	row->prepare(&w);
	subject_start(&subject, row->name, w.run ? w.run : call_forever, &w);
	await_state(getpid(), subject.tid, "S", w.nr);
	ready_begin(subject.tid, getpid());
	line_add("waits_on", "%s", w.waits_on);
	line_add("connection", "%s", w.connection);
	line_add("remote", "%s", w.remote);
	line_add("filetype", "%s", w.filetype ? w.filetype : "");
	if (w.pid)
		line_add("waits_on_pid", "%d", w.pid);
	if (w.inflight >= 0)
		line_add("inflight", "%ld", w.inflight);
	if (*w.file)
		line_add("file", "%s", w.file);
	line_end();
	hold();
	if (*w.file)
		unlink(w.file);
	if (w.semaphores >= 0)
		semctl(w.semaphores, 0, IPC_RMID);
}

static void wait_run(void)
{
	const char *name = option_text("on", "pipe_reader");

	for (size_t i = 0; i < TABLE_COUNT; i++)
		for (const struct wait_row *row = tables[i]; row->name; row++)
			if (!strcmp(row->name, name))
				return waiting_run(row);
	unready("it knows nothing of that name to wait on");
}

static void wait_names_run(void)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		for (const struct wait_row *row = tables[i]; row->name; row++)
			puts(row->name);
}

const struct workload wait_workloads[] = {
	{"wait", "on=NAME dir=PATH", "a thread that waits for something (see wait_names)",
	 wait_run},
	{"wait_names", "", "lists what wait can wait on", wait_names_run},
	{0},
};
