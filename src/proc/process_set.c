/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/process_set.h"
#include "base/clock.h"
#include "base/index.h"
#include "proc/proc.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WATCHED_MAX 512		 /* limit of pidfds */
#define UNWATCHED_OFTEN 16	 /* processes without a pidfd that every check compares, at most */
#define EVENTS_MAX 64		 /* limit of ends that one check gets from epoll */
#define START_UNKNOWN UINT64_MAX /* start time of a process that must not be looked at */
#define PARENT_S 60		 /* seconds that a process remains as a parent after its end */
#define ROUNDING_TICKS 2 /* limit of the difference of start times of records and of /proc */

void process_set_init(struct process_set *set, const char *root)
{
	long hz = sysconf(_SC_CLK_TCK);

	*set = (struct process_set){
		.root = root, .epoll = -1, .tick_ns = NS_PER_SECOND / (hz > 0 ? hz : 100)};
	set->pidfds = proc_own_pid(root) == getpid();
}

static void unwatch(struct process_set *set, int64_t pid)
{
	uint64_t *fd = index_find(&set->watched, (uint64_t)pid);

	if (!fd) {
		set->unwatched_count--;
		return;
	}
	close((int)*fd - 1); /* removes it from the epoll, too */
	index_remove(&set->watched, (uint64_t)pid);
}

void process_set_done(struct process_set *set)
{
	uint64_t pid, fd;

	for (size_t at = 0; index_next(&set->watched, &at, &pid, &fd);)
		close((int)fd - 1);
	if (set->epoll >= 0)
		close(set->epoll);
	index_clear(&set->began);
	index_clear(&set->watched);
	index_clear(&set->ended);
	*set = (struct process_set){.epoll = -1};
}

/* Opens a pidfd that shows the end of the process; -1: there is none. */
static int watch_open(struct process_set *set, int64_t pid)
{
#ifdef SYS_pidfd_open
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)pid};
	int fd;

	if (set->pidfds && set->epoll < 0)
		set->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (set->epoll < 0 || set->watched.used >= WATCHED_MAX)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (fd >= 0 && epoll_ctl(set->epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		fd = -1;
	}
	return fd;
#else
	(void)set;
	(void)pid;
	return -1;
#endif
}

/* Start time of the process in clock ticks, plus one; 0: there is no such process. */
static uint64_t start_read(const struct process_set *set, int64_t pid)
{
	struct proc_stat stat;
	int err = proc_stat_read(set->root, 0, pid, &stat);

	if (err == -ETIMEDOUT) /* keeper/avoid.h */
		return START_UNKNOWN;
	return err ? 0 : stat.start_ticks + 1;
}

static bool starts_are_same(uint64_t one, uint64_t two)
{
	return one == START_UNKNOWN || two == START_UNKNOWN ||
	       (one + ROUNDING_TICKS >= two && two + ROUNDING_TICKS >= one);
}

bool process_set_lives(const struct process_set *set, int64_t pid)
{
	return index_find(&set->began, (uint64_t)pid) && !index_find(&set->ended, (uint64_t)pid);
}

bool process_set_add(struct process_set *set, int64_t pid, uint64_t start_boot_ns)
{
	uint64_t start, *ended = index_find(&set->ended, (uint64_t)pid);
	int fd;

	if (process_set_lives(set, pid))
		return true;
	/* the pidfd is opened before the start time is read: both are of one process, or the pidfd
	 * shows the end of an earlier one */
	fd = watch_open(set, pid);
	start = start_read(set, pid);
	if (!start || (start_boot_ns &&
		       !starts_are_same(start, start_boot_ns / (uint64_t)set->tick_ns + 1))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (ended)
		index_remove(&set->ended, (uint64_t)pid);
	*index_put(&set->began, (uint64_t)pid, NULL) = start;
	if (fd >= 0)
		*index_put(&set->watched, (uint64_t)pid, NULL) = (uint64_t)fd + 1;
	else
		set->unwatched_count++;
	return true;
}

bool process_set_has_parent(const struct process_set *set, int64_t ppid, uint64_t start_boot_ns)
{
	const uint64_t *began = index_find(&set->began, (uint64_t)ppid);
	const uint64_t *ended = index_find(&set->ended, (uint64_t)ppid);

	return began &&
	       (*began == START_UNKNOWN ||
		start_boot_ns / (uint64_t)set->tick_ns + 1 + ROUNDING_TICKS >= *began) &&
	       (!ended || start_boot_ns < *ended);
}

/* True if a process that ended, as its pidfd shows, was waited for: until then it is a zombie and
 * has the id. */
static bool id_is_free(int fd)
{
#ifdef SYS_pidfd_send_signal
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) && errno == ESRCH;
#else
	(void)fd;
	return true;
#endif
}

/* Notes the end of a process. successor: start time of the process that has the id now; 0: there is
 * none. */
static void end(struct process_set *set, int64_t pid, uint64_t successor)
{
	uint64_t ended_ns = (uint64_t)clock_boot_ns();

	if (successor && successor != START_UNKNOWN)
		ended_ns = (successor - 1) * (uint64_t)set->tick_ns;
	unwatch(set, pid);
	*index_put(&set->ended, (uint64_t)pid, NULL) = ended_ns;
}

static void watched_check(struct process_set *set, void (*gone)(void *to, int64_t pid), void *to)
{
	struct epoll_event events[EVENTS_MAX];
	int count = set->watched.used ? epoll_wait(set->epoll, events, EVENTS_MAX, 0) : 0;

	for (int i = 0; i < count; i++) {
		int64_t pid = (int64_t)events[i].data.u64;
		const uint64_t *fd = index_find(&set->watched, (uint64_t)pid);

		if (!fd || !id_is_free((int)*fd - 1))
			continue;
		end(set, pid, start_read(set, pid));
		gone(to, pid);
	}
}

static void unwatched_check(struct process_set *set, void (*gone)(void *to, int64_t pid), void *to)
{
	uint64_t pid, start;

	for (size_t at = 0; index_next(&set->began, &at, &pid, &start);) {
		uint64_t now;

		if (index_find(&set->watched, pid) || index_find(&set->ended, pid))
			continue;
		now = start_read(set, (int64_t)pid);
		if (now && starts_are_same(now, start))
			continue;
		end(set, (int64_t)pid, now);
		gone(to, (int64_t)pid);
	}
}

/* Forgets parents that ended long ago. */
static void ended_sweep(struct process_set *set)
{
	int64_t now_ns = clock_boot_ns();
	struct index kept = {0};
	uint64_t pid, ended;

	if (!set->ended.used || now_ns - set->swept_ns < PARENT_S * NS_PER_SECOND / 4)
		return;
	set->swept_ns = now_ns;
	for (size_t at = 0; index_next(&set->ended, &at, &pid, &ended);) {
		if (now_ns - (int64_t)ended < PARENT_S * NS_PER_SECOND)
			*index_put(&kept, pid, NULL) = ended;
		else
			index_remove(&set->began, pid);
	}
	index_clear(&set->ended);
	set->ended = kept;
}

void process_set_check(struct process_set *set, bool whole, void (*gone)(void *to, int64_t pid),
		       void *to)
{
	watched_check(set, gone, to);
	if (whole || set->unwatched_count <= UNWATCHED_OFTEN)
		unwatched_check(set, gone, to);
	if (whole)
		ended_sweep(set);
}
