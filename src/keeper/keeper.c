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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time between two polls. A thread that is in the same sleep at both is blocked. */
#define POLL_NS NS_PER_SECOND
#define POLL_STOP_NS (300 * NS_PER_MS) /* while tsnap is requested to end */
#define PAUSE_NS (5 * NS_PER_MS)
#define PAUSES_OF_SECOND 200
#define LOST_END_S 5 /* time in which the main thread must end after the keeper's end */

static const struct timespec pause_of_waits = {0, PAUSE_NS};

struct watch {
	pid_t worker;
	pid_t shown; /* pid of the worker in /proc, which may be of another pid namespace */
	int64_t poll_ns;
	bool stop_requested;
	/* uint64_t by tid: how often a thread had gone to sleep when it was in a call that reads */
	struct keyed reading;
};

/* Of the worker: */
static pthread_t main_thread;
static void (*save_function)(void *of);
static void *save_of;
static atomic_bool lost;

static void (*explain)(int err, struct text *to);
static struct keeper_progress own_progress, *shared_progress = &own_progress;

struct keeper_progress *keeper_progress(void)
{
	return shared_progress;
}

/* Returns how often the worker's thread went to sleep. */
static uint64_t sleeps_of(const struct watch *watch, pid_t tid)
{
	static const char key[] = "\nvoluntary_ctxt_switches:\t";
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", watch->shown, tid);
	at = host_file_read(path, text, sizeof(text)) > 0 ? strstr(text, key) : NULL;
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* True if the thread is in a call that reads, and in the same sleep as at an earlier poll. */
static bool sleeps_on(struct watch *watch, pid_t tid, struct blocked_call *call)
{
	uint64_t sleeps, *before;

	if (!blocked_call_read(watch->shown, tid, call) || !call->reads)
		return false;
	sleeps = sleeps_of(watch, tid);
	before = keyed_put(&watch->reading, sizeof(*before), (uint64_t)tid, NULL);
	if (sleeps && *before == sleeps)
		return true;
	*before = sleeps;
	return false;
}

/* True if a thread of the worker looks at another process, or at a file, in a call that does not
 * end. */
static bool worker_is_blocked(struct watch *watch)
{
	const int64_t users_ns = shared_progress->users_ns;
	struct blocked_subject *subject = &shared_progress->subject;
	struct blocked_call call;
	struct dirent *entry;
	char path[64];
	bool blocked = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", watch->shown);
	tasks = opendir(path);
	while (!blocked && tasks && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		blocked = tid && sleeps_on(watch, tid, &call) &&
			  blocked_subject_find(watch->shown, tid, &call, subject);
	}
	if (tasks)
		closedir(tasks);
	/* The name service waits in calls of its own, one after the other. A file that blocks
	 * meanwhile is read by it. */
	if (!users_ns ||
	    (blocked ? subject->pid : clock_monotonic_ns() - users_ns <= 2 * watch->poll_ns))
		return blocked;
	*subject = (struct blocked_subject){0, AVOID_USERS, "the name service does not answer"};
	return true;
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

	if (subject->pid)
		return avoid_process(subject->pid, subject->why);
	if (!strcmp(subject->name, AVOID_USERS))
		return avoid_files(AVOID_USERS, subject->why);
	if (shared_progress->user_mounts && avoid_files(AVOID_USER_MOUNTS, subject->why))
		return true;
	mount_point_find(subject->name, point);
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
	pid_t ended, guard;

	for (;;) {
		const struct timespec period = {watch->poll_ns / NS_PER_SECOND,
						watch->poll_ns % NS_PER_SECOND};
		siginfo_t info;
		int number = sigtimedwait(signals, &info, &period);

		if (number > 0 && number != SIGCHLD) {
			watch->stop_requested = true;
			watch->poll_ns = POLL_STOP_NS;
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
		if (number > 0 || !watch->shown)
			continue;
		/* without its guard it has ended, but for a thread whose call does not */
		guard = (pid_t)shared_progress->guard;
		killed = guard && syscall(SYS_tgkill, watch->worker, guard, 0) ? killed + 1 : 0;
		if (killed && shared_progress->exit_code)
			keeper_end(W_EXITCODE(shared_progress->exit_code - 1, 0));
		if (killed > 1)
			keeper_end(SIGKILL);
		if (!killed && worker_is_blocked(watch))
			return;
	}
}

/* Gives the worker up: it is not waited for if one of its calls does not end. */
static void worker_give_up(const struct watch *watch)
{
	struct keeper_progress *progress = shared_progress;
	const struct blocked_subject *subject = &progress->subject;
	struct error e = {0};
	const char *what;

	kill(watch->worker, THREAD_SAVE_SIGNAL);
	for (int i = 0; i < 3 * PAUSES_OF_SECOND && progress->guard; i++)
		nanosleep(&pause_of_waits, NULL);
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
	error_set(&e, 0, EXIT_FAILED, "%s %s (%s)", what, subject->name, subject->why);
	output_complain(e.line);
	_exit(watch->stop_requested && progress->saved ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Adds the signals that the guard waits for, and which no other thread may take. */
static void guard_signals_add(sigset_t *signals)
{
	sigaddset(signals, THREAD_SAVE_SIGNAL);
	sigaddset(signals, THREAD_LOST_SIGNAL);
}

/* Keeps the main thread from using what the guard uses, should its call end after all. */
static void hold(int number)
{
	(void)number;
	for (;;)
		pause();
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
		struct watch watch = {.worker = fork(), .poll_ns = POLL_NS};

		if (watch.worker <= 0) {
			guard_signals_add(&before);
			sigprocmask(SIG_SETMASK, &before, NULL);
			if (watch.worker < 0)
				return false;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(EXIT_FAILURE);
			/* parsers must not inherit this memory */
			madvise(shared, sizeof(*shared), MADV_DONTFORK);
			terminal_rescue_use(&shared->terminal);
			main_thread = pthread_self();
			signal(THREAD_HOLD_SIGNAL, hold);
			shared->worker_pid = shown_pid();
			return true;
		}
		worker_keep(&watch, &signals);
		worker_give_up(&watch);
		shared->worker_pid = 0;
		shared->guard = shared->users_ns = 0;
		shared->saved = shared->user_mounts = false;
		keyed_done(&watch.reading);
	}
}

static void *save_run(void *of)
{
	(void)of;
	subject_avoid(&shared_progress->subject);
	save_function(save_of);
	return NULL;
}

/* Saves what was sampled once the main thread sleeps in a system call, and is not at half of an
 * output. False: that, or saving, takes more than a second. */
static bool guard_save(void)
{
	pid_t shown = (pid_t)shared_progress->worker_pid;
	struct blocked_call call;
	struct timespec until;
	pthread_t saver;

	if (!save_function)
		return false;
	for (int i = 0; !blocked_call_read(shown, shown, &call) || call.number == SYS_write; i++) {
		if (i == PAUSES_OF_SECOND)
			return false;
		nanosleep(&pause_of_waits, NULL);
	}
	pthread_kill(main_thread, THREAD_HOLD_SIGNAL);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return !thread_begin(&saver, save_run, NULL) && !pthread_timedjoin_np(saver, NULL, &until);
}

static void *guard_run(void *of)
{
	sigset_t signals;
	int number;

	(void)of;
	/* also in this thread: a change of its user takes the signal from the main thread */
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	shared_progress->guard = syscall(SYS_gettid);
	sigemptyset(&signals);
	guard_signals_add(&signals);
	sigwait(&signals, &number);
	if (number == THREAD_SAVE_SIGNAL) {
		shared_progress->saved = guard_save();
	} else {
		lost = true;
		kill(getpid(), SIGTERM);
		sleep(LOST_END_S);
		terminal_rescue();
	}
	/* Files would stay open for as long as another thread waits in the kernel: a reader of the
	 * output would get no end, a recording would stay locked, and probes would run on. A server
	 * may block the end of a file, too: output and probes, which were opened first, are first.
	 */
	for (int fd = 0; fd < DESCRIPTORS_WANTED; fd++)
		close(fd);
	shared_progress->guard = 0;
	_exit(EXIT_FAILURE);
}

void keeper_guard_begin(void)
{
	pthread_t guard;

	if (!shared_progress->worker_pid)
		return;
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	if (thread_begin(&guard, guard_run, NULL))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		pthread_detach(guard);
}

void keeper_saves(void (*save)(void *of), void *of)
{
	save_of = of;
	save_function = save;
}

bool keeper_avoids_user_mounts(void)
{
	shared_progress->user_mounts = true;
	return avoids_file(AVOID_USER_MOUNTS);
}

bool keeper_avoids_descriptor(int fd)
{
	return avoid_is_user_mount(shared_progress->worker_pid, fd) && keeper_avoids_user_mounts();
}

bool keeper_is_lost(void)
{
	return lost;
}
