/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/keeper.h"
#include "base/avoid.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/shown_pid.h"
#include "base/output.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/blocked_call.h"
#include "kernel/host_file.h"
#include "kernel/process_locks.h"
#include "live/context/live_limits.h"

#include <dirent.h>
#include <errno.h>
#include <mntent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_NS (250 * NS_PER_MS)
#define POLL_QUIET_NS (500 * NS_PER_MS)	  /* while no thread was seen to read */
#define POLL_REST_NS (1 * NS_PER_SECOND)  /* while all were at rest (base/thread.h) */
#define BLOCKED_NS (1 * NS_PER_SECOND)	  /* time in one call: it is not going to end */
#define BLOCKED_STOP_NS (300 * NS_PER_MS) /* time in one call, if tsnap is requested to end */
#define THREADS_MAX 16			  /* threads of a worker that are watched */
#define SAVE_POLLS 200			  /* of LET_GO_POLL_NS */
#define LET_GO_POLL_NS (5 * NS_PER_MS)
#define LET_GO_POLLS 400

/* A thread of the worker that was found in a call. */
struct watched {
	pid_t tid;
	char line[BLOCKED_LINE_SIZE];
	uint64_t switches; /* voluntary switches until then: an equal number means the same call */
	int64_t since_ns;
};

struct watch {
	pid_t worker;
	pid_t shown; /* pid of the worker in /proc, which may be of another pid namespace */
	bool stop_requested;
	bool reads; /* a thread was in a call that reads at the last look */
	bool rests; /* no thread was busy at the last poll (base/thread.h) */
	struct watched threads[THREADS_MAX];
	size_t count;
	struct blocked_subject subject; /* process or file that the blocked call was to read */
	uint64_t users_requested;	/* users_requested of the workers at the last look */
	int64_t users_since_ns;		/* time of the last change of users_requested */
	bool users;			/* the request for a user's name is not answered */
};

/* What the worker's standby thread does. */
static struct {
	pthread_t thread;
	bool begun;
	void (*save)(void *of);
	void *of;
} standby;

static pthread_t main_thread; /* of the worker */
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

/* True if the worker was killed, and does not end: a thread of it waits in the kernel. */
static bool worker_is_killed(const struct watch *watch)
{
	uint64_t pending = strtoull(status_find(watch, watch->shown, "\nSigPnd:\t"), NULL, 16);

	return pending >> (SIGKILL - 1) & 1 ||
	       *status_find(watch, watch->shown, "\nState:\t") == 'Z';
}

/* Returns how long the thread has been in its present reading call; 0: in no such call, or in a new
 * one. */
static int64_t blocked_ns(struct watch *watch, pid_t tid, int64_t now_ns, const char **line)
{
	struct watched *watched = watch->threads, *end = watched + watch->count;
	char now[BLOCKED_LINE_SIZE];
	uint64_t switches;

	if (!blocked_line_read(watch->shown, tid, now) || !blocked_line_reads(now))
		return 0;
	watch->reads = true;
	while (watched < end && watched->tid != tid)
		watched++;
	if (watched == &watch->threads[THREADS_MAX])
		return 0;
	switches = strtoull(status_find(watch, tid, "\nvoluntary_ctxt_switches:\t"), NULL, 10);
	*line = watched->line;
	if (watched < end && watched->switches == switches && !strcmp(watched->line, now))
		return now_ns - watched->since_ns;
	watch->count += watched == end;
	*watched = (struct watched){.tid = tid, .switches = switches, .since_ns = now_ns};
	memcpy(watched->line, now, sizeof(now));
	return 0;
}

/* True if a request for a user's name does not end: the name service waits in calls of its own, one
 * after the other. */
static bool users_are_blocked(struct watch *watch, int64_t now_ns, int64_t most_ns)
{
	uint64_t requested = shared_progress->users_requested;

	if (requested != watch->users_requested) {
		watch->users_requested = requested;
		watch->users_since_ns = now_ns;
	}
	watch->users = requested & 1 && now_ns - watch->users_since_ns > 2 * most_ns;
	return watch->users;
}

/* True if a thread of the worker looks at another process, or at a file, in a call that does not
 * end.
 */
static bool worker_is_blocked(struct watch *watch)
{
	int64_t now_ns = clock_monotonic_ns(), most_ns;
	char path[64];
	struct dirent *entry;
	bool blocked = false;
	DIR *tasks;

	most_ns = watch->stop_requested ? BLOCKED_STOP_NS : BLOCKED_NS;
	watch->reads = false;
	snprintf(path, sizeof(path), "/proc/%d/task", watch->shown);
	tasks = opendir(path);
	while (!blocked && tasks && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		const char *line = NULL;

		blocked = tid && blocked_ns(watch, tid, now_ns, &line) >= most_ns &&
			  blocked_subject_find(watch->shown, tid, line, &watch->subject);
	}
	if (tasks)
		closedir(tasks);
	/* a file that blocks during a request for a user's name is read by the name service */
	watch->users = blocked && !watch->subject.pid && shared_progress->users_requested & 1;
	return blocked || users_are_blocked(watch, now_ns, most_ns);
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
static bool subject_avoid(const struct blocked_subject *subject, bool users)
{
	char point[PATH_MAX];

	if (users) {
		avoid_users();
		return true;
	}
	if (subject->pid)
		return avoid_process(subject->pid, subject->why);
	mount_point_find(subject->path, point);
	return avoid_files(point, subject->why);
}

static void line_write(const char *words, const char *subject)
{
	struct text line = {0};

	text_add_string(&line, "tsnap: ");
	text_add_string(&line, words);
	text_add_printable(&line, subject);
	text_add_char(&line, '\n');
	output_write(STDERR_FILENO, text_string(&line), line.length);
	text_done(&line);
}

static void stop_signals_set(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

/* Reports an unexpected signal: a script sees an exit code at best. */
static void signal_report(int number)
{
	struct text words = {0};

	if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGPIPE)
		return;
	text_add_format(&words, "by signal %d (%s)", number, strsignal(number));
	/* the kernel kills so where memory is short */
	if (number == SIGKILL) {
		text_add_string(&words, "; ");
		live_limits_explain(ENOMEM, &words);
	}
	line_write("the worker process was killed, and what it had not written is lost: ",
		   text_string(&words));
	text_done(&words);
}

/* Ends the keeper with the exit code of the worker, or by the signal that ended it. */
static void keeper_end(int status)
{
	terminal_rescue();
	if (WIFSIGNALED(status)) {
		sigset_t all;

		signal_report(WTERMSIG(status));
		signal(WTERMSIG(status), SIG_DFL);
		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static int64_t poll_ns(const struct watch *watch)
{
	if (watch->stop_requested || watch->reads || watch->users)
		return POLL_NS;
	return watch->rests ? POLL_REST_NS : POLL_QUIET_NS;
}

/* Waits for the worker; returns when it is blocked. */
static void worker_keep(struct watch *watch, const sigset_t *signals)
{
	int status, killed = 0;
	pid_t ended;

	for (;;) {
		int64_t period_ns = poll_ns(watch);
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
		select(0, NULL, NULL, NULL, &(struct timeval){0, LET_GO_POLL_NS / NS_PER_US});
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
		subject_avoid(&shared_progress->subject, shared_progress->users);
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

/* True if the worker's main thread sleeps in a system call, and is not at half of an output. */
static bool main_waits(const struct watch *watch)
{
	char line[BLOCKED_LINE_SIZE];
	long call;

	if (!blocked_line_read(watch->shown, watch->shown, line))
		return false;
	call = strtol(line, NULL, 10);
	return call >= 0 && call != SYS_write;
}

/* Has the worker save what it has sampled. */
static void worker_save(const struct watch *watch)
{
	const struct timespec pause = {0, LET_GO_POLL_NS};

	for (int i = 0; i < SAVE_POLLS && shared_progress->saves && !main_waits(watch); i++)
		nanosleep(&pause, NULL);
	if (!shared_progress->saves || !main_waits(watch))
		return;
	shared_progress->subject = watch->subject;
	shared_progress->users = watch->users;
	/* the main thread must not go on meanwhile */
	syscall(SYS_tgkill, watch->worker, watch->worker, THREAD_LET_GO_SIGNAL);
	kill(watch->worker, THREAD_SAVE_SIGNAL);
	for (int i = 0; i < SAVE_POLLS && !shared_progress->saved; i++)
		nanosleep(&pause, NULL);
}

/* Signals each of the worker's threads: the kernel would deliver a signal of the process to the
 * thread that waits. */
static void worker_let_go(const struct watch *watch)
{
	const struct timespec pause = {0, LET_GO_POLL_NS};
	char path[64], target[PATH_MAX];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", watch->shown);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			syscall(SYS_tgkill, watch->worker, (pid_t)strtol(entry->d_name, NULL, 10),
				THREAD_LET_GO_SIGNAL);
	if (tasks)
		closedir(tasks);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", watch->shown, STDIN_FILENO);
	for (int i = 0; i < LET_GO_POLLS && readlink(path, target, sizeof(target)) > 0; i++)
		nanosleep(&pause, NULL);
}

/* Gives the worker up: it is not waited for if one of its calls does not end. */
static void worker_give_up(struct watch *watch)
{
	struct keeper_progress *progress = shared_progress;
	char name[PATH_MAX + 64];

	worker_save(watch);
	worker_let_go(watch);
	kill(watch->worker, SIGKILL);
	/* a thread of the screen that saw its files closed has marked the terminal as given back */
	progress->terminal.taken = progress->terminal.saved;
	terminal_rescue();
	if (watch->users)
		snprintf(name, sizeof(name), "the name service (getpwuid)");
	else if (watch->subject.pid)
		snprintf(name, sizeof(name), "process %lld (%s)", (long long)watch->subject.pid,
			 watch->subject.why);
	else
		snprintf(name, sizeof(name), "%s (%s)", watch->subject.path, watch->subject.why);
	if (watch->stop_requested) {
		line_write(progress->saved
				   ? "stopped while a read hung; all that was sampled until then "
				     "is printed or recorded: "
				   : "stopped while a read hung, and what was sampled is lost: ",
			   name);
		_exit(progress->saved ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	if (!subject_avoid(&watch->subject, watch->users)) {
		line_write("gave up, because reads hang again and again, last on ", name);
		_exit(EXIT_FAILURE);
	}
}

bool keeper_begin(void)
{
	sigset_t signals, before;
	pid_t parent = getpid();
	struct keeper_progress *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return false;
	shared_progress = shared;
	process_locks_begin();
	avoid_users_count(&shared->users_requested);
	terminal_rescue_use(&shared->terminal);
	stop_signals_set(&signals);
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
	}
}
