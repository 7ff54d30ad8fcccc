/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that wait for something else than the file that their descriptor refers to. */
#include "waits/waits.h"
#include "proc/proc.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define CHILDREN_BYTES 4096
#ifndef P_PIDFD
#define P_PIDFD 3 /* linux/wait.h, 5.4 */
#endif

void timer_describe(struct wait *wait)
{
	wait->facts.kind = WAIT_TIMER;
	text_add_string(wait->text, "timer");
}

void signal_describe(struct wait *wait)
{
	wait->facts.kind = WAIT_SIGNAL;
	text_add_string(wait->text, "signal");
}

static void process_describe(struct wait *wait, int64_t pid)
{
	wait->facts.pid = pid;
	wait_add_thread(wait, "pid ", pid);
}

/* The only child of the thread; 0: it has none or several, or the kernel does not list them
 * (CONFIG_PROC_CHILDREN). */
static int64_t only_child(const struct wait *wait)
{
	char text[CHILDREN_BYTES], *end;
	ssize_t length = proc_file_read(wait_root(wait), wait->pid, wait->tid, "children", text,
					sizeof(text));
	int64_t pid = length > 0 ? strtoll(text, &end, 10) : 0;

	return pid > 0 && !strtoll(end, NULL, 10) ? pid : 0;
}

/* Describes wait4(2): its first argument is a child, or any. */
void child_describe(struct wait *wait)
{
	int given = (int)wait->arg[0];
	int64_t pid = given > 0 ? thread_of_inner(wait, given) : only_child(wait);

	wait->facts.kind = WAIT_PROCESS;
	if (pid > 0)
		process_describe(wait, pid);
	else
		text_add_string(wait->text, "child");
}

/* Describes waitid(2): its first argument is the type of the second one. */
void child_id_describe(struct wait *wait)
{
	int type = (int)wait->arg[0], id = (int)wait->arg[1];
	int64_t pid = 0;

	wait->facts.kind = WAIT_PROCESS;
	if (type == P_PIDFD) {
		descriptor_describe(wait, id);
		return;
	}
	if (type == P_PID)
		pid = thread_of_inner(wait, id);
	else if (type == P_ALL)
		pid = only_child(wait);
	if (pid > 0)
		process_describe(wait, pid);
	else
		text_add_string(wait->text, "child");
}

static void object_describe(struct wait *wait, enum wait_kind kind, const char *what)
{
	wait->facts.kind = kind;
	text_add_format(wait->text, "%s %d", what, (int)wait->arg[0]);
}

/* Describes System V semaphores by the id that ipcs(1) shows. The kernel does not show which thread
 * could wake this one. */
static void semaphores_describe(struct wait *wait)
{
	object_describe(wait, WAIT_LOCK, "semaphores");
}

static void messages_describe(struct wait *wait)
{
	object_describe(wait, WAIT_EVENT, "message queue");
}

/* A row for each call, of all architectures: its name; the function that describes what it waits
 * for (NULL: it waits for the file that its descriptor refers to); whether only threads can end the
 * wait, apart from signals and time: no packet, no disk; and the index of the argument that is a
 * time limit (0: it has none). */
static const struct wait_row {
	const char *name;
	wait_describer *describe;
	bool threads_end;
	int limit;
} table[] = {
	/* clang-format off */
	{"futex",                  futex_describe,       true,  3},
	{"futex_time64",           futex_describe,       true,  3},
	{"futex_wait",             futex_wait_describe,  true,  4},
	{"futex_waitv",            futex_waitv_describe, true,  3},
	{"poll",                   poll_describe,        false, 0},
	{"ppoll",                  poll_describe,        false, 0},
	{"ppoll_time64",           poll_describe,        false, 0},
	{"_newselect",             select_describe,      false, 0},
	{"select",                 select_describe,      false, 0},
	{"pselect6",               select_describe,      false, 0},
	{"pselect6_time64",        select_describe,      false, 0},
	{"wait4",                  child_describe,       false, 0},
	{"waitpid",                child_describe,       false, 0},
	{"waitid",                 child_id_describe,    false, 0},
	{"io_getevents",           aio_describe,         false, 0},
	{"io_pgetevents",          aio_describe,         false, 0},
	{"io_pgetevents_time64",   aio_describe,         false, 0},
	{"flock",                  flock_describe,       false, 0},
	{"fcntl",                  fcntl_describe,       false, 0},
	{"fcntl64",                fcntl_describe,       false, 0},
	{"semop",                  semaphores_describe,  true,  0},
	{"semtimedop",             semaphores_describe,  true,  3},
	{"semtimedop_time64",      semaphores_describe,  true,  3},
	{"msgrcv",                 messages_describe,    true,  0},
	{"msgsnd",                 messages_describe,    true,  0},
	{"nanosleep",              timer_describe,       false, 0},
	{"clock_nanosleep",        timer_describe,       false, 0},
	{"clock_nanosleep_time64", timer_describe,       false, 0},
	{"pause",                  signal_describe,      false, 0},
	{"sigsuspend",             signal_describe,      false, 0},
	{"rt_sigsuspend",          signal_describe,      false, 0},
	{"rt_sigtimedwait",        signal_describe,      false, 0},
	{"rt_sigtimedwait_time64", signal_describe,      false, 0},
	{"read",                   NULL,             true,  0}, /* an eventfd, or the like */
	/* clang-format on */
};

static const struct wait_row *row_find(const char *syscall_name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, syscall_name))
			return &table[i];
	return NULL;
}

wait_describer *wait_describer_find(const char *syscall_name)
{
	const struct wait_row *row = row_find(syscall_name);

	return row ? row->describe : NULL;
}

static bool is_limited(const struct wait_row *row, const struct sample *sample)
{
	return row->limit && sample->call.arg[row->limit];
}

bool wait_has_limit(const struct sample *sample)
{
	const struct wait_row *row = row_find(sample->call.name);

	return row && is_limited(row, sample);
}

bool wait_threads_end(const struct sample *sample)
{
	const struct wait_row *row = row_find(sample->call.name);

	return row && row->threads_end && !is_limited(row, sample);
}
