/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper/keeper.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/host_file.h"
#include "base/index.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/thread.h"
#include "keeper/avoid.h"
#include "keeper/terminal_rescue.h"

#include <dirent.h>
#include <errno.h>
#include <mntent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS (250 * NS_PER_MS)
#define POLL_QUIET_NS (500 * NS_PER_MS)	  /* while no thread was seen to read */
#define POLL_REST_NS (1 * NS_PER_SECOND)  /* while all were at rest (base/thread.h) */
#define BLOCKED_NS (1 * NS_PER_SECOND)	  /* time in one call: it is not going to end */
#define BLOCKED_STOP_NS (300 * NS_PER_MS) /* time in one call, if tsnap is requested to end */
#define SAVE_POLLS 200			  /* of let_go_pause */
#define LET_GO_POLLS 400
#define END_S 5 /* time in which the main thread must end the process after the keeper's end */

static const struct timespec let_go_pause = {0, 5 * NS_PER_MS};
static pthread_t main_thread; /* of the worker */

/* A thread of the worker that was found in a call. */
struct watched {
	uint64_t switches; /* voluntary switches until then: an equal number means the same sleep */
	int64_t since_ns;
};

struct watch {
	pid_t worker;
	pid_t shown; /* pid of the worker in /proc, which may be of another pid namespace */
	bool stop_requested;
	bool reads;	      /* a thread was in a call that reads at the last look */
	bool rests;	      /* no thread was busy at the last poll (base/thread.h) */
	struct keyed threads; /* struct watched by tid */
};

/* What the worker's standby thread does. */
static struct {
	pthread_t thread;
	bool begun;
	void (*save)(void *of);
	void *of;
} standby;

static void (*explain)(int err, struct text *to);
static struct keeper_progress own_progress, *shared_progress = &own_progress;

struct keeper_progress *keeper_progress(void)
{
	return shared_progress;
}

/* Returns what follows key, "\nSigPnd:\t", in the status of a thread of the worker; "": it has
 * none.
 */
static const char *status_find(const struct watch *watch, pid_t tid, const char *key)
{
	static char text[4096];
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", watch->shown, tid);
	at = host_file_read(path, text, sizeof(text)) > 0 ? strstr(text, key) : NULL;
	return at ? at + strlen(key) : "";
}

static DIR *tasks_open(const struct watch *watch)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", watch->shown);
	return opendir(path);
}

/* True if the worker was killed, and does not end: a thread of it waits in the kernel. */
static bool worker_is_killed(const struct watch *watch)
{
	uint64_t pending = strtoull(status_find(watch, watch->shown, "\nSigPnd:\t"), NULL, 16);

	return pending >> (SIGKILL - 1) & 1 ||
	       *status_find(watch, watch->shown, "\nState:\t") == 'Z';
}

/* Returns how long the thread has slept in a reading call; 0: it does not, or since now. */
static int64_t blocked_ns(struct watch *watch, pid_t tid, int64_t now_ns, struct blocked_call *call)
{
	struct watched *watched;
	uint64_t switches;

	if (!blocked_call_read(watch->shown, tid, call) || !call->reads)
		return 0;
	watch->reads = true;
	watched = keyed_put(&watch->threads, sizeof(*watched), (uint64_t)tid, NULL);
	switches = strtoull(status_find(watch, tid, "\nvoluntary_ctxt_switches:\t"), NULL, 10);
	if (!watched->since_ns || watched->switches != switches)
		*watched = (struct watched){switches, now_ns};
	return now_ns - watched->since_ns;
}

/* True if a thread of the worker looks at another process, or at a file, in a call that does not
 * end.
 */
static bool worker_is_blocked(struct watch *watch)
{
	const int64_t now_ns = clock_monotonic_ns(),
		      most_ns = watch->stop_requested ? BLOCKED_STOP_NS : BLOCKED_NS;
	const int64_t users_ns = shared_progress->users_ns;
	struct blocked_subject *subject = &shared_progress->subject;
	struct blocked_call call;
	struct dirent *entry;
	DIR *tasks = tasks_open(watch);
	bool blocked = false;

	watch->reads = false;
	while (!blocked && tasks && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		blocked = tid && blocked_ns(watch, tid, now_ns, &call) >= most_ns &&
			  blocked_subject_find(watch->shown, tid, &call, subject);
	}
	if (tasks)
		closedir(tasks);
	/* The name service waits in calls of its own, one after the other. A file that blocks
	 * meanwhile is read by it. */
	subject->users = users_ns && (blocked ? !subject->pid : now_ns - users_ns > 2 * most_ns);
	return blocked || subject->users;
}

/* Finds the mount point of a file's file system; the file itself if that is the root. */
static void mount_point_find(const char *path, char point[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;
	size_t longest = 1, length;

	snprintf(point, PATH_MAX, "%s", path);
	while (mounts && (mount = getmntent(mounts))) {
		length = strlen(mount->mnt_dir);
		if (length > longest && !strncmp(path, mount->mnt_dir, length) &&
		    path[length] == '/') {
			longest = length;
			snprintf(point, PATH_MAX, "%s", mount->mnt_dir);
		}
	}
	if (mounts)
		endmntent(mounts);
}

/* Adds the subject to those that are avoided. False: it was avoided already, and was met
 * nevertheless. */
static bool subject_avoid(const struct blocked_subject *subject)
{
	char point[PATH_MAX];

	if (subject->users)
		return avoid_users();
	if (subject->pid)
		return avoid_process(subject->pid, subject->why);
	mount_point_find(subject->path, point);
	return avoid_files(point, subject->why);
}

/* Reports an unexpected signal: a script sees an exit code at best. */
static void signal_report(int number)
{
	struct text words = {0};

	if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGPIPE)
		return;
	text_add_format(&words,
			"the worker process was killed, and what it had not written is lost: by "
			"signal %d (%s)",
			number, strsignal(number));
	/* the kernel kills so where memory is short */
	if (number == SIGKILL) {
		text_add_string(&words, "; ");
		explain(ENOMEM, &words);
	}
	output_complain(text_string(&words));
	text_done(&words);
}

/* Ends the keeper with the exit code of the worker, or by the signal that ended it. */
static void keeper_end(int status)
{
	sigset_t all;

	terminal_rescue();
	if (WIFSIGNALED(status)) {
		signal_report(WTERMSIG(status));
		signal(WTERMSIG(status), SIG_DFL);
		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

/* Waits for the worker; returns when it is blocked. */
static void worker_keep(struct watch *watch, const sigset_t *signals)
{
	int status, killed = 0;
	pid_t ended;

	for (;;) {
		int64_t period_ns = watch->stop_requested || watch->reads ? POLL_NS
				    : watch->rests			  ? POLL_REST_NS
									  : POLL_QUIET_NS;
		const struct timespec period = {period_ns / NS_PER_SECOND,
						period_ns % NS_PER_SECOND};
		siginfo_t info = {0};
		int number = sigtimedwait(signals, &info, &period);

		if (number > 0 && number != SIGCHLD) {
			watch->stop_requested = true;
			/* a terminal sends its signals to both processes */
			if (info.si_code <= 0)
				kill(watch->worker, number);
			kill(watch->worker, SIGCONT); /* it may be stopped */
		}
		/* also workers that were given up */
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended == watch->worker)
				keeper_end(status);
		watch->shown = (pid_t)shared_progress->worker_pid;
		watch->rests = !shared_progress->busy;
		if (!watch->shown || watch->rests)
			continue;
		killed = worker_is_killed(watch) ? killed + 1 : 0;
		if (killed > 1)
			keeper_end(SIGKILL);
		if (!killed && worker_is_blocked(watch))
			return;
	}
}

/* Closes all files, in those threads that still run of a worker that is given up. Files would stay
 * open for as long as the other thread waits in the kernel. A reader of the output would get no
 * end, a recording would stay locked, and probes would run on. Standard input comes last: once it
 * is closed, worker_let_go() ends what is left. */
static void let_go(int number)
{
	static _Atomic int next = DESCRIPTORS_WANTED;
	int fd;

	(void)number;
	/* the call has ended after all, and the standby thread uses what the main thread used */
	while (shared_progress->saves && !shared_progress->saved && pthread_self() == main_thread)
		select(0, NULL, NULL, NULL, &(struct timeval){0, let_go_pause.tv_nsec / NS_PER_US});
	while ((fd = --next) >= 0)
		close(fd);
	_exit(EXIT_FAILURE);
}

static void *standby_run(void *of)
{
	sigset_t signals;
	int number;

	(void)of;
	thread_rest(true);
	sigemptyset(&signals);
	sigaddset(&signals, THREAD_SAVE_SIGNAL);
	while (sigwait(&signals, &number))
		;
	if (standby.save) {
		subject_avoid(&shared_progress->subject);
		standby.save(standby.of);
	}
	shared_progress->saved = true;
	return NULL;
}

void keeper_saves(void (*save)(void *of), void *of)
{
	shared_progress->saves = false;
	standby.save = save;
	standby.of = of;
	if (save && shared_progress != &own_progress && !standby.begun)
		standby.begun = !thread_begin(&standby.thread, standby_run, NULL);
	shared_progress->saves = save && standby.begun;
}

/* Has the worker save what it has sampled, if its main thread sleeps in a system call, and is not
 * at half of an output. */
static void worker_save(const struct watch *watch)
{
	const struct keeper_progress *progress = shared_progress;
	struct blocked_call call;
	int polls = 0;

	while (progress->saves &&
	       (!blocked_call_read(watch->shown, watch->shown, &call) ||
		call.number == SYS_write) &&
	       polls++ < SAVE_POLLS)
		nanosleep(&let_go_pause, NULL);
	if (!progress->saves || polls > SAVE_POLLS)
		return;
	/* the main thread must not go on meanwhile */
	syscall(SYS_tgkill, watch->worker, watch->worker, THREAD_LET_GO_SIGNAL);
	kill(watch->worker, THREAD_SAVE_SIGNAL);
	for (int i = 0; i < SAVE_POLLS && !progress->saved; i++)
		nanosleep(&let_go_pause, NULL);
}

/* Signals each of the worker's threads: the kernel would deliver a signal of the process to the
 * thread that waits. */
static void worker_let_go(const struct watch *watch)
{
	char path[64], target[PATH_MAX];
	struct dirent *entry;
	DIR *tasks = tasks_open(watch);

	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			syscall(SYS_tgkill, watch->worker, (pid_t)strtol(entry->d_name, NULL, 10),
				THREAD_LET_GO_SIGNAL);
	if (tasks)
		closedir(tasks);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", watch->shown, STDIN_FILENO);
	for (int i = 0; i < LET_GO_POLLS && readlink(path, target, sizeof(target)) > 0; i++)
		nanosleep(&let_go_pause, NULL);
}

/* Gives the worker up: it is not waited for if one of its calls does not end. */
static void worker_give_up(const struct watch *watch)
{
	struct keeper_progress *progress = shared_progress;
	const struct blocked_subject *subject = &progress->subject;
	struct error e = {0};
	const char *what;

	worker_save(watch);
	worker_let_go(watch);
	kill(watch->worker, SIGKILL);
	/* a thread of the screen that saw its files closed has marked the terminal as given back */
	progress->terminal.taken = progress->terminal.saved;
	terminal_rescue();
	if (!watch->stop_requested && subject_avoid(subject))
		return;
	if (!watch->stop_requested)
		what = "gave up, because reads hang again and again, last on";
	else if (progress->saved)
		what = "stopped while a read hung; all that was sampled until then is printed or "
		       "recorded:";
	else
		what = "stopped while a read hung, and what was sampled is lost:";
	if (subject->users)
		error_set(&e, 0, EXIT_FAILED, "%s the name service (getpwuid)", what);
	else if (subject->pid)
		error_set(&e, 0, EXIT_FAILED, "%s process %lld (%s)", what, (long long)subject->pid,
			  subject->why);
	else
		error_set(&e, 0, EXIT_FAILED, "%s %s (%s)", what, subject->path, subject->why);
	output_complain(e.line);
	_exit(watch->stop_requested && progress->saved ? EXIT_SUCCESS : EXIT_FAILURE);
}

bool keeper_begin(void (*limits_explain)(int err, struct text *to))
{
	sigset_t signals, before;
	pid_t parent = getpid();
	struct keeper_progress *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return false;
	shared_progress = shared;
	explain = limits_explain;
	terminal_rescue_use(&shared->terminal);
	signals_stop_set(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	for (;;) {
		struct watch watch = {.worker = fork()};

		if (watch.worker <= 0) {
			sigaddset(&before, THREAD_SAVE_SIGNAL);
			sigprocmask(SIG_SETMASK, &before, NULL);
			if (watch.worker < 0)
				return false;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(EXIT_FAILURE);
			/* parsers must not inherit this memory */
			madvise(shared, sizeof(*shared), MADV_DONTFORK);
			thread_busy_count(&shared->busy);
			terminal_rescue_use(&shared->terminal);
			main_thread = pthread_self();
			signal(THREAD_LET_GO_SIGNAL, let_go);
			shared->worker_pid = shown_pid();
			return true;
		}
		worker_keep(&watch, &signals);
		shared->worker_pid = 0;
		worker_give_up(&watch);
		shared->saves = shared->saved = false;
		shared->users_ns = 0;
		keyed_done(&watch.threads);
	}
}

static atomic_bool lost;

static void *loss_watch(void *of)
{
	const struct timespec end = {END_S, 0};
	sigset_t wanted;
	int number;

	(void)of;
	/* also in this thread: a change of its user takes the signal from the main thread */
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	sigemptyset(&wanted);
	sigaddset(&wanted, THREAD_LOST_SIGNAL);
	thread_rest(true);
	sigwait(&wanted, &number);
	thread_rest(false);
	lost = true;
	kill(getpid(), SIGTERM);
	nanosleep(&end, NULL);
	terminal_rescue();
	raise(THREAD_LET_GO_SIGNAL);
	return NULL;
}

void keeper_loss_watch(void)
{
	pthread_t thread;
	sigset_t wanted;

	if (!keeper_progress()->worker_pid)
		return;
	sigemptyset(&wanted);
	sigaddset(&wanted, THREAD_LOST_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &wanted, NULL);
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	if (thread_begin(&thread, loss_watch, NULL))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		pthread_detach(thread);
}

bool keeper_is_lost(void)
{
	return lost;
}
