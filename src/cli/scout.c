/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/scout.h"
#include "base/avoid.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/shown_pid.h"
#include "cli/blocked_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKERS 8
#define LOST_MAX 64		  /* child processes that may be given up */
#define LOOK_NS (300 * NS_PER_MS) /* time for the look at one process */
#define POLL_NS (10 * NS_PER_MS)
#define ALL_NS (5 * NS_PER_SECOND) /* time for all; those left then count as blocked, too */

/* A child process that takes pids in turn. */
struct looker {
	pid_t process;
	_Atomic pid_t shown; /* pid of process in /proc; 0: not known yet */
	_Atomic int64_t at;  /* index of the pid that it looks at; -1: it has ended */
	int64_t seen_at;     /* value of `at` seen since since_ns */
	int64_t since_ns;
};

/* State of a scout, in memory that all child processes share. */
struct scout {
	_Atomic int64_t next; /* index of the first pid that no child process has taken */
	struct looker lookers[LOOKERS];
};

static void file_look(int64_t pid, const char *name)
{
	char path[64], bytes[256];
	int fd;

	snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!read(fd, bytes, sizeof(bytes));
	close(fd);
}

/* Looks at the files of a process that samples may want. */
static void process_look(int64_t pid)
{
	char path[64], target[PATH_MAX];

	file_look(pid, "stat");
	file_look(pid, "stack"); /* reading it waits for an exec, like syscall */
	file_look(pid, "cmdline");
	file_look(pid, "maps");
	snprintf(path, sizeof(path), "/proc/%lld/exe", (long long)pid);
	(void)!readlink(path, target, sizeof(target));
}

static void looker_begin(struct scout *scout, struct looker *looker, const int64_t *pids,
			 int64_t count)
{
	pid_t parent = getpid(), process;

	looker->seen_at = -1;
	looker->since_ns = clock_monotonic_ns();
	looker->at = 0;
	looker->shown = 0;
	process = fork(); /* looker is in shared memory */
	if (process) {
		looker->process = process;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	looker->shown = shown_pid();
	for (int64_t i; getppid() == parent && (i = atomic_fetch_add(&scout->next, 1)) < count;) {
		looker->at = i;
		process_look(pids[i]);
	}
	looker->at = -1;
	_exit(0);
}

/* True if the child process waits at the same pid for too long. */
static bool looker_is_lost(struct looker *looker, int64_t now_ns)
{
	char line[BLOCKED_LINE_SIZE];

	if (looker->at != looker->seen_at) {
		looker->seen_at = looker->at;
		looker->since_ns = now_ns;
		return false;
	}
	/* on a loaded host it may just wait for a CPU */
	return looker->shown && now_ns - looker->since_ns > LOOK_NS &&
	       blocked_line_read(looker->shown, looker->shown, line);
}

static bool looker_has_ended(const struct looker *looker)
{
	return looker->process < 0 || looker->at < 0;
}

/* Adds the process or file that a child process waits for, and gives the child up. */
static bool looker_give_up(const struct looker *looker, const int64_t *pids)
{
	struct blocked_subject subject = {.why = "it does not answer"};
	char line[BLOCKED_LINE_SIZE];

	if (blocked_line_read(looker->shown, looker->shown, line))
		blocked_subject_find(looker->process, looker->shown, looker->shown, line, &subject);
	kill(looker->process, SIGKILL);
	return avoid_process(pids[looker->at], subject.why);
}

static int64_t *pids_read(int64_t *count)
{
	int64_t *pids = NULL;
	size_t capacity = 0;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	*count = 0;
	while (proc && (entry = readdir(proc))) {
		int64_t pid = strtoll(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || avoids_process(pid))
			continue;
		pids = memory_grow(pids, &capacity, (size_t)*count + 1, sizeof(*pids));
		pids[(*count)++] = pid;
	}
	if (proc)
		closedir(proc);
	return pids;
}

size_t scout_all(void)
{
	int64_t count, *pids = pids_read(&count), end_ns = clock_monotonic_ns() + ALL_NS, now_ns;
	size_t found = 0, lost = 0, busy = 1;
	struct scout *scout = mmap(NULL, sizeof(*scout), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (scout == MAP_FAILED) {
		free(pids);
		return 0;
	}
	for (size_t i = 0; i < LOOKERS; i++)
		looker_begin(scout, &scout->lookers[i], pids, count);
	while (busy && (now_ns = clock_monotonic_ns()) < end_ns) {
		struct timespec pause = {0, POLL_NS};

		nanosleep(&pause, NULL);
		busy = 0;
		for (size_t i = 0; i < LOOKERS; i++) {
			struct looker *looker = &scout->lookers[i];

			if (looker_has_ended(looker))
				continue;
			busy++;
			if (!looker_is_lost(looker, now_ns))
				continue;
			found += looker_give_up(looker, pids);
			if (++lost < LOST_MAX)
				looker_begin(scout, looker, pids, count);
			else
				looker->at = -1;
		}
	}
	for (size_t i = 0; i < LOOKERS; i++)
		if (!looker_has_ended(&scout->lookers[i]))
			kill(scout->lookers[i].process, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	munmap(scout, sizeof(*scout));
	free(pids);
	return found;
}
