/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that wait for something else than the file behind their descriptor. */
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

void timer_tell(struct wait *wait)
{
	wait->facts.kind = WAIT_TIMER;
	text_add_string(wait->text, "timer");
}

void signal_tell(struct wait *wait)
{
	wait->facts.kind = WAIT_SIGNAL;
	text_add_string(wait->text, "signal");
}

static void process_tell(struct wait *wait, int64_t pid)
{
	wait->facts.pid = pid;
	wait_add_thread(wait, "pid ", pid);
}

/* The only child of the thread; 0: it has others, or the kernel does not tell
 * (CONFIG_PROC_CHILDREN). */
static int64_t only_child(const struct wait *wait)
{
	char text[CHILDREN_BYTES], *end;
	ssize_t length = proc_file_read(wait_root(wait), wait->pid, wait->tid, "children", text,
					sizeof(text));
	int64_t pid = length > 0 ? strtoll(text, &end, 10) : 0;

	return pid > 0 && !strtoll(end, NULL, 10) ? pid : 0;
}

/* wait4(2): its first argument names a child, or any. */
void child_tell(struct wait *wait)
{
	int given = (int)wait->arg[0];
	int64_t pid = given > 0 ? thread_of_inner(wait, given) : only_child(wait);

	wait->facts.kind = WAIT_PROCESS;
	if (pid > 0)
		process_tell(wait, pid);
	else
		text_add_string(wait->text, "child");
}

/* waitid(2): the first argument tells what the second one is. */
void child_id_tell(struct wait *wait)
{
	int type = (int)wait->arg[0], id = (int)wait->arg[1];
	int64_t pid = 0;

	wait->facts.kind = WAIT_PROCESS;
	if (type == P_PIDFD) {
		descriptor_tell(wait, id);
		return;
	}
	if (type == P_PID)
		pid = thread_of_inner(wait, id);
	else if (type == P_ALL)
		pid = only_child(wait);
	if (pid > 0)
		process_tell(wait, pid);
	else
		text_add_string(wait->text, "child");
}

static void object_tell(struct wait *wait, enum wait_kind kind, const char *what)
{
	wait->facts.kind = kind;
	text_add_format(wait->text, "%s %d", what, (int)wait->arg[0]);
}

/* System V: the id that ipcs(1) shows. Who could wake the thread the kernel does not tell. */
static void semaphores_tell(struct wait *wait)
{
	object_tell(wait, WAIT_LOCK, "semaphores");
}

static void messages_tell(struct wait *wait)
{
	object_tell(wait, WAIT_EVENT, "message queue");
}

/* Names of all architectures. */
static const struct {
	const char *name;
	wait_teller *tell;
} table[] = {
	{"futex", futex_tell},
	{"futex_time64", futex_tell},
	{"futex_wait", futex_wait_tell},
	{"futex_waitv", futex_waitv_tell},
	{"poll", poll_tell},
	{"ppoll", poll_tell},
	{"ppoll_time64", poll_tell},
	{"_newselect", select_tell},
	{"select", select_tell},
	{"pselect6", select_tell},
	{"pselect6_time64", select_tell},
	{"wait4", child_tell},
	{"waitpid", child_tell},
	{"waitid", child_id_tell},
	{"io_getevents", aio_tell},
	{"io_pgetevents", aio_tell},
	{"io_pgetevents_time64", aio_tell},
	{"flock", flock_tell},
	{"fcntl", fcntl_tell},
	{"fcntl64", fcntl_tell},
	{"semop", semaphores_tell},
	{"semtimedop", semaphores_tell},
	{"semtimedop_time64", semaphores_tell},
	{"msgrcv", messages_tell},
	{"msgsnd", messages_tell},
	{"nanosleep", timer_tell},
	{"clock_nanosleep", timer_tell},
	{"clock_nanosleep_time64", timer_tell},
	{"pause", signal_tell},
	{"sigsuspend", signal_tell},
	{"rt_sigsuspend", signal_tell},
	{"rt_sigtimedwait", signal_tell},
	{"rt_sigtimedwait_time64", signal_tell},
};

wait_teller *wait_teller_find(const char *syscall_name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, syscall_name))
			return table[i].tell;
	return NULL;
}
