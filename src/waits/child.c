/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other processes: their end, or change of state; a child that uses its parent's memory until it
 * executes a program; and the other threads of a process that executes one. */
#include "waits/wait_object.h"
#include "proc/proc.h"

#include <string.h>
#include <sys/wait.h>

#define PROC "/proc" /* edges are of this host */
#ifndef P_PIDFD
#define P_PIDFD 3 /* linux/wait.h, 5.4 */
#endif

struct children {
	size_t count;
	int64_t last;
};

static bool child_add(void *to, int64_t child)
{
	struct children *children = to;

	children->count++;
	children->last = child;
	return true;
}

static struct children children_count(const char *root, int64_t pid, int64_t tid)
{
	struct children children = {0};

	proc_children_walk(root, pid, tid, child_add, &children);
	return children;
}

/* Describes a wait for that process, or for any child; 0: any. */
static void process_describe(struct wait *wait, int64_t pid, bool any)
{
	struct children children = {0};

	if (any)
		children = children_count(wait->waits->root, wait->pid, wait->tid);
	if (children.count == 1)
		pid = children.last;
	if (pid <= 0) {
		text_add_string(wait->text, "child");
		return;
	}
	wait->facts.pid = pid;
	wait_add_thread(wait, "pid ", pid);
}

/* Describes wait4(2): its first argument is a child, or any. */
static void child_describe(struct wait *wait)
{
	int given = (int)wait->arg[0];

	process_describe(wait, given > 0 ? thread_of_inner(wait, given) : 0, given <= 0);
}

/* Describes waitid(2): its first argument is the type of the second one. */
static void child_id_describe(struct wait *wait)
{
	int type = (int)wait->arg[0], id = (int)wait->arg[1];

	if (type == P_PIDFD)
		descriptor_describe(wait, id);
	else
		process_describe(wait, type == P_PID ? thread_of_inner(wait, id) : 0,
				 type == P_ALL);
}

/* Describes exit_group(2) of a pid namespace's first process, which waits for the other ones, its
 * children by now (zap_pid_ns_processes() of kernel/pid_namespace.c). */
static void namespace_exit_describe(struct wait *wait)
{
	char function[64];

	if (proc_file_read(wait->waits->root, wait->pid, wait->tid, "wchan", function,
			   sizeof(function)) > 0 &&
	    (!strcmp(function, "do_wait") || !strcmp(function, "zap_pid_ns_processes")))
		process_describe(wait, 0, true);
}

static void child_edge(const struct wait_facts *facts, const struct sample *sample,
		       struct edge *edge)
{
	(void)sample;
	edge->kind = EDGE_CHILD;
	edge->pid = facts->pid;
	edge->sure = SURE_CERTAIN;
}

const struct wait_object child_object = {
	.kind = WAIT_PROCESS,
	.calls =
		(const struct wait_call[]){
			{"wait4", child_describe, 0},
			{"waitpid", child_describe, 0},
			{"waitid", child_id_describe, 0},
			{"exit_group", namespace_exit_describe, 0},
			{"exit", namespace_exit_describe, 0},
			{0},
		},
	.edge = child_edge,
};

/* The Pid line of fdinfo has the id in the reader's pid namespace; -1: the process has been waited
 * for. */
static void pidfd_describe(struct wait *wait)
{
	int64_t pid = wait_fdinfo_number(wait, "Pid:", 10);

	if (pid <= 0) {
		text_add_string(wait->text, "pidfd");
		return;
	}
	wait->facts.pid = pid;
	wait_add_thread(wait, "pid ", pid);
}

const struct wait_object pidfd_object = {
	.kind = WAIT_PROCESS,
	.links =
		(const struct wait_link[]){
			{"anon_inode:[pidfd]", "pidfd"},
			{"pidfd:[", "pidfd"}, /* since 6.9 */
			{0},
		},
	.describe = pidfd_describe,
	.edge = child_edge,
};

static void vfork_describe(struct wait *wait)
{
	/* orphans that the thread adopts become its last children, too */
	if (!wait->numbers_only)
		process_describe(wait, 0, true);
}

static void vfork_edge(const struct wait_facts *facts, const struct sample *sample,
		       struct edge *edge)
{
	struct children children;

	(void)facts;
	if (sample->now.state != STATE_DISK)
		return;
	edge->kind = EDGE_CHILD;
	/* orphans that the thread adopts become its last children, too */
	children = children_count(PROC, sample->thread.pid, sample->thread.tid);
	edge->pid = children.last;
	edge->sure = children.count == 1 ? SURE_CERTAIN : children.count ? SURE_LIKELY : SURE_NONE;
}

/* Also of clone(2), as posix_spawn(3) calls it. Other waits in these calls, for memory or a lock,
 * are in other functions. */
const struct wait_object vfork_object = {
	.functions = (const char *const[]){"kernel_clone", "_do_fork", "do_fork",
					   "wait_for_vfork_done", NULL},
	.describe = vfork_describe,
	.edge = vfork_edge,
};

void wait_for_thread(struct wait *wait, int64_t tid)
{
	wait->facts.object = &thread_object;
	wait->facts.kind = thread_object.kind;
	wait_add_thread(wait, "end of thread ", tid);
	wait->facts.tid = tid;
	wait->facts.pid = wait->pid;
}

static void thread_edge(const struct wait_facts *facts, const struct sample *sample,
			struct edge *edge)
{
	(void)sample;
	edge->kind = EDGE_THREAD;
	edge->tid = facts->tid;
	edge->pid = facts->pid;
	edge->sure = SURE_CERTAIN;
}

/* The end of a thread of the process. */
const struct wait_object thread_object = {.kind = WAIT_PROCESS, .edge = thread_edge};

/* execve(2) ends the other threads first: de_thread() of fs/exec.c. Of those that do not end, one
 * in D is named, which no signal reaches. */
static void exec_describe(struct wait *wait)
{
	DIR *tasks = proc_dir_open(wait->waits->root, wait->pid, "task");
	struct proc_stat stat;
	int64_t found = 0, tid;
	size_t count = 0;
	bool in_disk = false;

	while ((tid = proc_dir_next(tasks)) > 0) {
		if (tid == wait->tid || proc_stat_read(wait->waits->root, wait->pid, tid, &stat) ||
		    stat.state == 'Z')
			continue;
		count++;
		if (!found || (!in_disk && stat.state == 'D'))
			found = tid;
		in_disk |= stat.state == 'D';
	}
	if (tasks)
		closedir(tasks);
	if (!found) /* it waits for something else in that function */
		return;
	wait_for_thread(wait, found);
	if (count > 1)
		text_add_format(wait->text, " and %zu more", count - 1);
}

const struct wait_object exec_object = {
	.kind = WAIT_PROCESS,
	.functions = (const char *const[]){"begin_new_exec", "flush_old_exec", "de_thread", NULL},
	.describe = exec_describe,
};
