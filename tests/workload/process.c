/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States that need a second process, and threads whose identity changes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

static void hold_process(pid_t pid, char state)
{
	char letter[2] = {state, 0};

	await_state(pid, pid, letter, NR_ANY);
	ready_begin(pid, pid);
	line_add("state", "%c", state);
	line_add("parent", "%d", getpid());
	line_end();
	hold();
}

/* Waits as the parent of vfork, in D (TASK_KILLABLE), until the child execs or exits. */
static void vfork_parent(void *data)
{
	int *fds = data;
	char c;

	if (!vfork()) {
		/* the writing end is open in the parent only: its end or a close releases this
		 * process */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_close, fds[1]);
		syscall(SYS_read, fds[0], &c, 1);
		_exit(0);
	}
}

static void vfork_run(void)
{
	struct subject subject;
	int fds[2];

	make_pipe(fds);
	subject_start(&subject, "vfork", vfork_parent, fds);
	await_state(getpid(), subject.tid, "D", NR_ANY);
	ready_begin(subject.tid, getpid());
#ifdef SYS_vfork
	ready_call('D', "vfork", SYS_vfork);
#else
	ready_call('D', "clone", SYS_clone);
#endif
	line_end();
	hold();
	close(fds[1]);
	pthread_join(subject.thread, NULL);
	wait(NULL);
}

static void stopped_run(void)
{
	pid_t pid = child_fork();

	if (!pid)
		for (;;)
			raise(SIGSTOP);
	hold_process(pid, 'T');
}

static void traced_run(void)
{
	pid_t pid = child_fork();

	if (!pid)
		for (;;)
			pause();
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL))
		unready("ptrace is forbidden here");
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		die("ptrace");
	hold_process(pid, 't');
}

static void zombie_run(void)
{
	pid_t pid = child_fork();

	if (!pid)
		_exit(0);
	hold_process(pid, 'Z');
}

static void pause_forever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

/* Makes a process that lives on after its first thread has ended: the leader is a zombie, the other
 * thread is not. */
static void zombie_leader_run(void)
{
	int fds[2];
	pid_t pid, other;

	make_pipe(fds);
	pid = child_fork();
	if (!pid) {
		struct subject subject;

		subject_start(&subject, "orphan", pause_forever, NULL);
		if (write(fds[1], &subject.tid, sizeof(subject.tid)) < 0)
			die("write");
		pthread_exit(NULL);
	}
	if (read(fds[0], &other, sizeof(other)) != sizeof(other))
		die("read");
	await_state(pid, pid, "Z", NR_ANY);
	await_state(pid, other, "S", NR_ANY);
	ready_begin(pid, pid);
	line_add("state", "Z");
	line_add("tid2", "%d", other);
	line_end();
	hold();
}

static void self_exec(const char *name, const char *argument)
{
	char path[4096], seconds[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	long left = option_number("seconds", 0);

	if (n < 0)
		die("readlink");
	path[n] = 0;
	snprintf(seconds, sizeof(seconds), "seconds=%ld", left);
	execl(path, path, name, argument ? argument : seconds, seconds, (char *)NULL);
	die("exec");
}

static void exec_now(void *unused)
{
	(void)unused;
	self_exec("after_exec", NULL);
}

/* Execs; with from=thread the thread that execs is not the first: it takes over the first one's
 * id. */
static void exec_change_run(void)
{
	char text[64];

	prctl(PR_SET_NAME, "before_exec");
	ready_begin(getpid(), getpid());
	line_add("comm", "before_exec");
	line_end();
	if (!hold_line(text, sizeof(text)))
		return;
	if (!strcmp(option_text("from", "leader"), "thread")) {
		struct subject subject;

		subject_start(&subject, "exec_thread", exec_now, NULL);
		pause();
	}
	exec_now(NULL);
}

static void after_exec_run(void)
{
	ready_begin(getpid(), getpid());
	line_add("comm", "workload");
	line_end();
	hold();
}

/* Makes a process, its child and its grandchild; each line read adds another child. */
static void tree_run(void)
{
	char text[64];
	int fds[2];
	pid_t child, grandchild;

	make_pipe(fds);
	child = child_fork();
	if (!child) {
		grandchild = child_fork();
		if (grandchild && write(fds[1], &grandchild, sizeof(grandchild)) < 0)
			die("write");
		pause_forever(NULL);
	}
	if (read(fds[0], &grandchild, sizeof(grandchild)) != sizeof(grandchild))
		die("read");
	await_state(child, child, "S", NR_ANY);
	await_state(grandchild, grandchild, "S", NR_ANY);
	ready_begin(getpid(), getpid());
	line_add("child", "%d", child);
	line_add("grandchild", "%d", grandchild);
	line_end();
	while (hold_line(text, sizeof(text))) {
		child = child_fork();
		if (!child)
			pause_forever(NULL);
		await_state(child, child, "S", NR_ANY);
		line_begin("done");
		line_add("child", "%d", child);
		line_end();
	}
	hold();
}

/* Spins under that name, so that each scan sees it awake. */
static void busy_as(const char *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		for (volatile int i = 0; i < 1 << 20; i++)
			;
}

/* Starts a child with that id, which is free: the kernel accepts a requested id with CAP_SYS_ADMIN
 * (5.5). */
static void stranger_start(pid_t id)
{
#ifdef SYS_clone3
	uint64_t tids = (uint64_t)&id, signal = SIGCHLD;
	/* flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, size
	 */
	uint64_t args[] = {0, 0, 0, 0, signal, 0, 0, 0, tids, 1};
	long pid = syscall(SYS_clone3, args, sizeof(args));

	if (pid < 0)
		unready("clone3 takes no set_tid");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!child_fork())
		busy_as("reuse_child");
	busy_as("reuse_after");
#else
	(void)id;
	unready("there is no clone3");
#endif
}

/* Makes a process that ends when a line is read, and one that gets its id, with a child of its
 * own. */
static void reuse_run(void)
{
	pid_t pid = child_fork();
	char text[64];

	if (!pid)
		busy_as("reuse_before");
	ready_begin(pid, pid);
	line_end();
	if (!hold_line(text, sizeof(text)))
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	stranger_start(pid);
	line_begin("done");
	line_end();
	hold();
	kill(pid, SIGKILL);
}

const struct workload process_workloads[] = {
	{"vfork", "", "a parent of vfork, in D", vfork_run},
	{"stopped", "", "a process stopped by a signal", stopped_run},
	{"traced", "", "a process stopped by a tracer", traced_run},
	{"zombie", "", "a process that ended and is not waited for", zombie_run},
	{"zombie_leader", "", "a process whose first thread has ended", zombie_leader_run},
	{"exec_change", "from=thread", "execs a program of another name when it reads a line",
	 exec_change_run},
	{"after_exec", "", "what exec_change execs", after_exec_run},
	{"reuse", "", "a process that ends when a line is read, and another with its id",
	 reuse_run},
	{"tree", "", "a process, child and grandchild; a line read adds a child", tree_run},
	{0},
};
