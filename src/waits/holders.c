/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/holders.h"
#include "keeper/avoid.h"
#include "proc/fd_dirs.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/lock_list.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE 16		     /* the search takes 1/SHARE of the time between scans */
#define PIECE_NS (5 * 1000000ll)     /* limit of the search in one scan */
#define CLOCK_EVERY 32		     /* descriptors between two reads of the clock */
#define NEAR_PIDS 4		     /* ids to each side of the requester's */
#define NEAR_DESCRIPTORS 64	     /* descriptors read of each of these; the walk reads all */
#define OWN_FAR 8		     /* numbers to each side of a descriptor */
#define HOLDS_STILL_NS NS_PER_SECOND /* age at which a found descriptor is checked again */
#define NOBODY_STILL_NS (10 * NS_PER_SECOND)
#define CHILDREN_BYTES 4096
#define END_FAMILY_MAX 128 /* limit of processes that are searched */
#define END_FDS_MAX 1024
#define END_THREADS_MAX 16 /* limit of threads of each process that are searched */

/* --- users of an end
 *
 * A family of processes may have inherited an end of a pipe or a socket pair, or an open file with
 * a lock, under the number that it has in the process that was found to have it. */

struct end_users {
	uint32_t count;	 /* processes that have the end */
	int64_t in_call; /* pid of one of these that is in a system call on the end; 0: none */
	int64_t oldest;	 /* pid of the one that started first */
};

enum wanted_state { WANTED_PENDING, WANTED_FOUND, WANTED_NOBODY };

struct wanted {
	struct cache_entry entry; /* key: hash of link and mode */
	const char *link;
	enum holder_mode mode;
	const struct holder_file *file; /* HOLDER_FILE */
	enum wanted_state state;
	int64_t requester, pid;
	int64_t table; /* the thread in whose table of descriptors fd is; its process has no other
			  table but for threads that have left it */
	int fd;
	int64_t own_table, own_fd; /* descriptor of the requester itself; -1: not seen */
	uint64_t end_round;	   /* walk count at which all processes have been seen */
	int64_t checked_ns;
	struct end_users users; /* users of the end as of users_ns; users_ns 0: not known */
	int64_t users_ns;
	/* own: the process own_pid has the end itself, as of own_ns */
	int64_t own_pid, own_ns;
	bool own;
	/* HOLDER_LOCKS: the lock's file, the process that took it, and the user that was chosen in
	 * the scan of chosen_ns */
	uint64_t inode;
	int64_t locker, chosen, chosen_ns;
};

struct family {
	const char *root;
	int64_t pids[END_FAMILY_MAX];
	size_t count;
};

/* The bits S_IRUSR (open for reading) and S_IWUSR (for writing) of the link of a descriptor. tid
 * 0: of the process. */
static mode_t fd_mode(const char *root, int64_t pid, int64_t tid, int fd)
{
	char task[32] = "", path[PATH_MAX];
	struct stat link;

	if (tid)
		snprintf(task, sizeof(task), "/task/%lld", (long long)tid);
	snprintf(path, sizeof(path), "%s/%lld%s/fd/%d", root, (long long)pid, task, fd);
	return lstat(path, &link) ? 0 : link.st_mode & (S_IRUSR | S_IWUSR);
}

/* Bits of a link's mode: at least one of them must be set. */
static const mode_t mode_bits[HOLDER_MODE_COUNT] = {
	[HOLDER_ANY] = S_IRUSR | S_IWUSR,
	[HOLDER_READS] = S_IRUSR,
	[HOLDER_WRITES] = S_IWUSR,
};

/* True if that descriptor of the process is what is wanted. */
static bool is_had(const struct holders *holders, const struct wanted *wanted, int64_t pid, int fd)
{
	if (wanted->mode == HOLDER_FILE)
		return wanted->file->is(holders->root, pid, fd, wanted->link);
	return wanted->mode == HOLDER_LOCKS ? lock_is_had(holders->root, pid, fd, wanted->link)
					    : proc_fd_is(holders->root, 0, pid, fd, wanted->link);
}

/* Does is_had() with exactly these mode bits: a FIFO that is open for both is no other end. */
static bool end_is_had(const struct holders *holders, const struct wanted *wanted, int64_t pid,
		       int fd)
{
	mode_t bits = mode_bits[wanted->mode];

	return !avoids_process(pid) && is_had(holders, wanted, pid, fd) &&
	       (!bits || fd_mode(holders->root, pid, 0, fd) == bits);
}

/* True if one of the process's first END_FDS_MAX descriptors is such an end. */
static bool end_is_among(const struct holders *holders, const struct wanted *wanted, int64_t pid)
{
	DIR *fds = avoids_process(pid) ? NULL : proc_dir_open(holders->root, pid, "fd");
	int left = END_FDS_MAX;
	bool found = false;
	int64_t fd;

	while (!found && left-- && (fd = proc_dir_next(fds)) >= 0)
		found = end_is_had(holders, wanted, pid, (int)fd);
	if (fds)
		closedir(fds);
	return found;
}

static void family_add(struct family *family, int64_t pid)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->pids[i] == pid)
			return;
	if (pid > 0 && family->count < END_FAMILY_MAX)
		family->pids[family->count++] = pid;
}

/* Adds the children that the process's first thread started; CONFIG_PROC_CHILDREN. */
static void children_add(struct family *family, int64_t pid)
{
	char text[CHILDREN_BYTES], *at = text, *end;

	if (pid <= 0 || proc_file_read(family->root, pid, pid, "children", text, sizeof(text)) <= 0)
		return;
	for (;;) {
		int64_t child = strtoll(at, &end, 10);

		/* the last id may have been cut */
		if (end == at || !*end)
			return;
		family_add(family, child);
		at = end;
	}
}

/* True if a thread of the process is in a system call on the descriptor. */
static bool is_in_call(const char *root, int64_t pid, int fd)
{
	DIR *tasks = proc_dir_open(root, pid, "task");
	struct proc_syscall call;
	int left = END_THREADS_MAX;
	bool found = false;
	int64_t tid;

	while (!found && left-- && (tid = proc_dir_next(tasks)) >= 0) {
		int64_t arg[6];

		if (proc_syscall_read(root, pid, tid, &call) || call.running || call.nr < 0)
			continue;
		memcpy(arg, call.arg, sizeof(arg));
		found = syscall_fd(call.nr, false, arg) == fd ||
			syscall_fd_to(call.nr, false, arg) == fd;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* Looks at the process that has the end as descriptor fd, at its parent, and at parents and
 * children of all that have it. */
static struct end_users end_users_find(const struct holders *holders, const struct wanted *wanted)
{
	const char *root = holders->root;
	struct family family = {.root = root};
	struct end_users users = {.oldest = wanted->pid};
	int64_t having[END_FAMILY_MAX];
	uint64_t oldest_ticks = UINT64_MAX;
	struct proc_stat stat;

	family_add(&family, wanted->pid);
	for (size_t i = 0; i < family.count; i++) {
		int64_t pid = family.pids[i];

		if (!end_is_had(holders, wanted, pid, wanted->fd))
			continue;
		having[users.count++] = pid;
		children_add(&family, pid);
		if (proc_stat_read(root, 0, pid, &stat))
			continue;
		family_add(&family, stat.ppid);
		children_add(&family, stat.ppid);
		if (stat.start_ticks < oldest_ticks) {
			oldest_ticks = stat.start_ticks;
			users.oldest = pid;
		}
	}
	for (size_t i = 0; users.count > 1 && i < users.count && !users.in_call; i++)
		if (is_in_call(root, having[i], wanted->fd))
			users.in_call = having[i];
	return users;
}

/* --- the search */

void holders_init(struct holders *holders, const char *root)
{
	*holders = (struct holders){
		.root = root,
		.wanted = {.entry_bytes = sizeof(struct wanted), .entries_max = HOLDERS_MAX},
	};
}

static void walk_close(struct holders *holders)
{
	if (holders->descriptors)
		closedir(holders->descriptors);
	if (holders->threads)
		closedir(holders->threads);
	if (holders->processes)
		closedir(holders->processes);
	holders->descriptors = holders->threads = holders->processes = NULL;
}

void holders_done(struct holders *holders)
{
	walk_close(holders);
	index_clear(&holders->lock_inodes);
	cache_done(&holders->wanted);
}

static uint64_t wanted_key(const char *link, enum holder_mode mode)
{
	return hash_bytes(link, strlen(link)) * HOLDER_MODE_COUNT + mode;
}

static void wanted_settle(struct holders *holders, struct wanted *wanted, enum wanted_state state,
			  int64_t pid, int64_t table, int fd)
{
	wanted->state = state;
	wanted->pid = pid;
	wanted->table = table;
	wanted->fd = fd;
	wanted->checked_ns = holders->scan_ns;
	holders->pending--;
	holders->files -= wanted->mode == HOLDER_FILE;
}

/* The process of an id near the requester's, which may be any thread's: /proc/TID exists for all
 * threads. 0: none. */
static int64_t process_of(const struct holders *holders, int64_t tid)
{
	int64_t uid, pid;

	return proc_ids_read(holders->root, tid, &uid, &pid) ? 0 : pid;
}

/* Settles what is wanted, as this descriptor of a thread, in the walk's process or near, is
 * that. */
static void wanted_meet(struct holders *holders, struct wanted *wanted, int64_t tid, int fd,
			bool near)
{
	int64_t holder = near ? process_of(holders, tid) : holders->pid;
	int64_t table = fd_are_apart(holder, tid) ? tid : holder;

	if (holder == wanted->requester) {
		wanted->own_fd = fd;
		wanted->own_table = table;
	} else if (holder) {
		wanted_settle(holders, wanted, WANTED_FOUND, holder, table, fd);
	}
}

/* Settles the wanted link, if there is one, that this descriptor of a process matches. */
static void link_meet(struct holders *holders, const char *link, enum holder_mode mode, int64_t pid,
		      int fd, bool near)
{
	struct wanted *wanted = cache_find(&holders->wanted, wanted_key(link, mode));

	if (!wanted || wanted->state != WANTED_PENDING || strcmp(wanted->link, link) ||
	    (mode_bits[mode] && !(fd_mode(holders->root, pid, 0, fd) & mode_bits[mode])))
		return;
	wanted_meet(holders, wanted, pid, fd, near);
}

/* Settles the wanted files of which this descriptor, with that link, is one. */
static void files_meet(struct holders *holders, const char *link, int64_t pid, int fd, bool near)
{
	const struct holder_file *const *kind = holders->kinds;

	while (*kind && !text_ends(link, (*kind)->link_end))
		kind++;
	for (size_t i = 0; *kind && i < holders->wanted.count; i++) {
		struct wanted *wanted = (struct wanted *)holders->wanted.entries[i];

		if (wanted->file == *kind && wanted->state == WANTED_PENDING &&
		    is_had(holders, wanted, pid, fd))
			wanted_meet(holders, wanted, pid, fd, near);
	}
}

/* Settles the wanted locks that belong to this descriptor's open file. */
static void locks_meet(struct holders *holders, int64_t pid, int fd, bool near)
{
	const char *held;
	uint64_t inode;
	char *at;

	if (!lock_inode(holders->root, pid, 0, fd, &inode) ||
	    !index_find(&holders->lock_inodes, inode))
		return;
	at = proc_fdinfo_read(holders->root, 0, pid, fd, NULL);
	while ((held = lock_of_fdinfo(&at)))
		link_meet(holders, held, HOLDER_LOCKS, pid, fd, near);
}

static void descriptor_meet(struct holders *holders, int64_t pid, int fd, bool near)
{
	char name[32], target[PATH_MAX];

	snprintf(name, sizeof(name), "fd/%d", fd);
	if (proc_link_read(holders->root, 0, pid, name, target, sizeof(target)) <= 0)
		return;
	for (enum holder_mode mode = HOLDER_ANY; mode < HOLDER_LOCKS; mode++)
		link_meet(holders, target, mode, pid, fd, near);
	if (holders->lock_inodes.used && *target == '/')
		locks_meet(holders, pid, fd, near);
	if (holders->files)
		files_meet(holders, target, pid, fd, near);
}

/* Opens the threads of a process that has several. */
static DIR *threads_open(const struct holders *holders, int64_t pid)
{
	return avoids_process(pid) || proc_thread_count(holders->root, pid) <= 1
		       ? NULL
		       : proc_dir_open(holders->root, pid, "task");
}

static DIR *descriptors_open(const struct holders *holders, int64_t pid)
{
	return avoids_process(pid) ? NULL : proc_dir_open(holders->root, pid, "fd");
}

/* Checks the next descriptor of dir. False: there are no more. */
static bool descriptor_next(struct holders *holders, DIR *dir, int64_t pid, bool near)
{
	int64_t fd = proc_dir_next(dir);

	if (fd >= 0)
		descriptor_meet(holders, pid, (int)fd, near);
	return fd >= 0;
}

/* Goes on to the next thread of the process if it has another table of descriptors than the one
 * that was walked last. */
static void thread_step(struct holders *holders)
{
	int64_t tid = proc_dir_next(holders->threads);

	if (tid < 0) {
		closedir(holders->threads);
		holders->threads = NULL;
	} else if (fd_are_apart(holders->pid, tid) && fd_are_apart(holders->tid, tid)) {
		holders->tid = tid;
		holders->descriptors = descriptors_open(holders, tid);
	}
}

/* Advances the walk by one process, thread or descriptor. False: the walk has ended. */
static bool walk_step(struct holders *holders)
{
	if (holders->descriptors) {
		if (!descriptor_next(holders, holders->descriptors, holders->tid, false)) {
			closedir(holders->descriptors);
			holders->descriptors = NULL;
		}
		return true;
	}
	if (holders->threads) {
		thread_step(holders);
		return true;
	}
	if (!holders->processes)
		holders->processes = opendir(holders->root);
	holders->pid = holders->tid = proc_dir_next(holders->processes);
	if (holders->pid < 0) {
		walk_close(holders);
		return false;
	}
	holders->descriptors = descriptors_open(holders, holders->pid);
	holders->threads = threads_open(holders, holders->pid);
	return true;
}

/* Settles, at the end of a walk, the links for which all of it has been searched: the requester's
 * own descriptor, or no holder. */
static void round_end(struct holders *holders)
{
	holders->round++;
	for (size_t i = 0; i < holders->wanted.count; i++) {
		struct wanted *wanted = (struct wanted *)holders->wanted.entries[i];
		bool own = wanted->own_fd >= 0;

		if (wanted->state == WANTED_PENDING && holders->round >= wanted->end_round)
			wanted_settle(holders, wanted, own ? WANTED_FOUND : WANTED_NOBODY,
				      own ? wanted->requester : 0, own ? wanted->own_table : 0,
				      own ? (int)wanted->own_fd : -1);
	}
}

/* Continues the walk while a link is pending and this scan has time left for it. */
static void walk_on(struct holders *holders)
{
	int64_t start_ns = clock_monotonic_ns(), now_ns = start_ns;

	while (holders->pending && now_ns - start_ns < holders->left_ns) {
		for (int i = 0; i < CLOCK_EVERY && holders->pending; i++)
			if (!walk_step(holders))
				round_end(holders);
		now_ns = clock_monotonic_ns();
	}
	holders->left_ns -= now_ns - start_ns;
}

static void near_look(struct holders *holders, struct wanted *wanted, int64_t pid)
{
	DIR *dir = pid > 0 ? descriptors_open(holders, pid) : NULL;

	if (!dir)
		return;
	for (int i = 0; i < NEAR_DESCRIPTORS && wanted->state == WANTED_PENDING; i++)
		if (!descriptor_next(holders, dir, pid, true))
			break;
	closedir(dir);
}

/* Looks at processes that were probably started together with the requester, and at its parent; for
 * a lock at those around the process that took it. */
static void near_look_all(struct holders *holders, struct wanted *wanted)
{
	int64_t start_ns = clock_monotonic_ns(), middle = wanted->requester;
	struct proc_stat stat;

	if (wanted->locker)
		middle = wanted->locker;
	for (int64_t far = 1; far <= NEAR_PIDS; far++) {
		near_look(holders, wanted, middle - far);
		near_look(holders, wanted, middle + far);
	}
	if (wanted->state == WANTED_PENDING && !proc_stat_read(holders->root, 0, middle, &stat))
		near_look(holders, wanted, stat.ppid);
	holders->left_ns -= clock_monotonic_ns() - start_ns;
}

static void wanted_begin(struct holders *holders, struct wanted *wanted)
{
	wanted->state = WANTED_PENDING;
	wanted->own_fd = -1;
	wanted->users_ns = wanted->chosen_ns = 0;
	/* a walk that is under way has passed some processes already */
	wanted->end_round = holders->round + 1 + (holders->processes != NULL);
	holders->pending++;
	holders->files += wanted->mode == HOLDER_FILE;
	if (wanted->mode == HOLDER_LOCKS)
		index_put(&holders->lock_inodes, wanted->inode, NULL);
	/* nearly always the process that took a lock has it: that needs no time of the search */
	if (wanted->locker)
		near_look(holders, wanted, wanted->locker);
	if (wanted->state == WANTED_PENDING && holders->left_ns > 0)
		near_look_all(holders, wanted);
}

/* True if the result is out of date and must be searched for again. */
static bool wanted_is_old(const struct holders *holders, struct wanted *wanted)
{
	int64_t age_ns = holders->scan_ns - wanted->checked_ns;

	if (wanted->state == WANTED_NOBODY)
		return age_ns >= NOBODY_STILL_NS;
	/* a lock changes hands in less than a second */
	if (wanted->state != WANTED_FOUND ||
	    age_ns < (wanted->mode == HOLDER_LOCKS ? 1 : HOLDS_STILL_NS))
		return false;
	wanted->checked_ns = holders->scan_ns;
	return !is_had(holders, wanted, wanted->table, wanted->fd);
}

/* Finds another holder for a requester that is the found holder itself. The requester before it is
 * the answer if it has the link, too; if not, a new search begins and 0 is returned. */
static int64_t other_find(struct holders *holders, struct wanted *wanted, int64_t requester)
{
	int64_t own_table = wanted->table;
	int own_fd = wanted->fd;

	if (wanted->own_fd >= 0 && is_had(holders, wanted, wanted->own_table, (int)wanted->own_fd))
		return wanted->requester;
	wanted->requester = requester;
	wanted_begin(holders, wanted);
	if (wanted->own_fd < 0) {
		wanted->own_fd = own_fd;
		wanted->own_table = own_table;
	}
	return 0;
}

static void scan_begin(struct holders *holders, int64_t now_ns)
{
	int64_t since_ns = now_ns - holders->scan_ns;

	if (!since_ns)
		return;
	holders->left_ns = since_ns / SHARE < PIECE_NS ? since_ns / SHARE : PIECE_NS;
	holders->scan_ns = now_ns;
}

void holders_give_time(struct holders *holders, int64_t now_ns, int64_t time_ns)
{
	scan_begin(holders, now_ns);
	holders->left_ns = time_ns;
}

/* Finds or adds the entry of a link; NULL: there are too many. */
static struct wanted *wanted_get(struct holders *holders, const char *link, enum holder_mode mode,
				 int64_t now_ns, bool *added)
{
	uint64_t key = wanted_key(link, mode);
	struct wanted *wanted;

	/* a full cache hands out a spare entry that no search would find */
	if (holders->wanted.count == HOLDERS_MAX && !cache_find(&holders->wanted, key))
		return NULL;
	wanted = cache_get(&holders->wanted, key, now_ns, added);
	if (*added) {
		wanted->link = name_transient_string(link);
		wanted->mode = mode;
	}
	return wanted;
}

void holders_note(struct holders *holders, const char *link, int64_t pid, int fd, int64_t now_ns)
{
	struct wanted *wanted;
	bool added;

	scan_begin(holders, now_ns);
	wanted = wanted_get(holders, link, HOLDER_ANY, now_ns, &added);
	if (!wanted || wanted->requester == pid || (!added && wanted->state == WANTED_FOUND))
		return;
	holders->pending += added || wanted->state == WANTED_NOBODY;
	wanted_settle(holders, wanted, WANTED_FOUND, pid, pid, fd);
	if (added)
		wanted->own_fd = -1;
}

static void users_look(struct holders *holders, struct wanted *wanted, int64_t requester)
{
	if (!wanted->users_ns || holders->scan_ns - wanted->users_ns >= HOLDS_STILL_NS) {
		wanted->users = end_users_find(holders, wanted);
		wanted->users_ns = holders->scan_ns;
	}
	if (wanted->users.count > 1 && wanted->mode < HOLDER_LOCKS &&
	    (wanted->own_pid != requester || holders->scan_ns - wanted->own_ns >= HOLDS_STILL_NS)) {
		wanted->own = end_is_among(holders, wanted, requester);
		wanted->own_pid = requester;
		wanted->own_ns = holders->scan_ns;
	}
}

/* Chooses one of the processes that have inherited the end: the requester itself, or one that uses
 * it. */
static int64_t user_choose(struct holders *holders, struct wanted *wanted, int64_t requester,
			   uint32_t *count)
{
	int64_t start_ns;

	if (wanted->pid == requester)
		return requester;
	start_ns = clock_monotonic_ns();
	users_look(holders, wanted, requester);
	holders->left_ns -= clock_monotonic_ns() - start_ns;
	if (wanted->users.count < 2)
		return wanted->pid;
	if (wanted->own)
		return requester;
	if (wanted->users.in_call)
		return wanted->users.in_call;
	*count = wanted->users.count;
	return wanted->pid;
}

/* Chooses one of the processes that have the open file with the lock, once in a scan: requesters
 * differ in nothing, but one that has the file, too, waits for another one that has it. */
static int64_t sharer_choose(struct holders *holders, struct wanted *wanted, int64_t requester,
			     uint32_t *count)
{
	int64_t start_ns;

	if (wanted->chosen_ns != holders->scan_ns) {
		start_ns = clock_monotonic_ns();
		if (wanted->users_ns && !is_had(holders, wanted, wanted->chosen, wanted->fd))
			wanted->users_ns = 0;
		users_look(holders, wanted, requester);
		wanted->chosen = wanted->pid;
		if (wanted->pid != wanted->locker && wanted->users.count > 1)
			wanted->chosen = wanted->users.in_call ? wanted->users.in_call
							       : wanted->users.oldest;
		wanted->chosen_ns = holders->scan_ns;
		holders->left_ns -= clock_monotonic_ns() - start_ns;
	}
	if (wanted->users.count > 1)
		*count = wanted->users.count;
	return wanted->chosen == requester ? wanted->pid : wanted->chosen;
}

/* Which of several processes that have the file answers next is not known: one that reads it has
 * nothing to do. */
static int64_t server_choose(struct holders *holders, struct wanted *wanted, int64_t requester,
			     uint32_t *count)
{
	int64_t start_ns = clock_monotonic_ns();

	users_look(holders, wanted, requester);
	holders->left_ns -= clock_monotonic_ns() - start_ns;
	*count = wanted->users.count;
	return wanted->pid;
}

/* Finds the process that has what is wanted; 0: not known yet, or none. */
static int64_t wanted_find(struct holders *holders, struct wanted *wanted, bool added,
			   int64_t requester, uint32_t *count, bool *pending)
{
	int64_t other;

	if (added || wanted_is_old(holders, wanted)) {
		if (!wanted->requester) /* a new entry, or one from holders_note() */
			wanted->requester = requester;
		wanted_begin(holders, wanted);
	}
	if (wanted->state == WANTED_FOUND && wanted->pid == requester &&
	    wanted->requester != requester) {
		other = other_find(holders, wanted, requester);
		if (other)
			return other;
	}
	if (wanted->state == WANTED_PENDING)
		walk_on(holders);
	*pending |= wanted->state == WANTED_PENDING;
	if (count)
		*count = 1;
	if (wanted->state != WANTED_FOUND)
		return 0;
	if (!count)
		return wanted->pid;
	return wanted->mode == HOLDER_LOCKS  ? sharer_choose(holders, wanted, requester, count)
	       : wanted->mode == HOLDER_FILE ? server_choose(holders, wanted, requester, count)
					     : user_choose(holders, wanted, requester, count);
}

int64_t holders_find(struct holders *holders, const char *link, enum holder_mode mode,
		     int64_t requester, int64_t now_ns, uint32_t *count, bool *pending)
{
	struct wanted *wanted;
	bool added;

	scan_begin(holders, now_ns);
	wanted = wanted_get(holders, link, mode, now_ns, &added);
	return wanted ? wanted_find(holders, wanted, added, requester, count, pending) : 0;
}

int64_t holders_thread(struct holders *holders, const char *link, enum holder_mode mode,
		       int64_t pid)
{
	const struct wanted *wanted = cache_find(&holders->wanted, wanted_key(link, mode));

	return wanted && wanted->state == WANTED_FOUND && !strcmp(wanted->link, link) &&
			       wanted->pid == pid && wanted->table != pid
		       ? wanted->table
		       : 0;
}

int64_t holders_find_lock(struct holders *holders, const struct lock_wait *lock, int64_t requester,
			  int64_t now_ns, uint32_t *count, bool *pending)
{
	struct wanted *wanted;
	bool added;

	scan_begin(holders, now_ns);
	wanted = wanted_get(holders, lock->held, HOLDER_LOCKS, now_ns, &added);
	if (!wanted)
		return 0;
	wanted->inode = lock->inode;
	wanted->locker = lock->locker;
	return wanted_find(holders, wanted, added, requester, count, pending);
}

int64_t holders_find_file(struct holders *holders, const struct holder_file *file,
			  const char *which, int64_t requester, int64_t now_ns, uint32_t *count,
			  bool *pending)
{
	const struct holder_file **kind = holders->kinds; /* the last one stays NULL */
	struct wanted *wanted;
	bool added;

	scan_begin(holders, now_ns);
	wanted = wanted_get(holders, which, HOLDER_FILE, now_ns, &added);
	if (!wanted)
		return 0;
	wanted->file = file;
	while (*kind && *kind != file)
		kind++;
	*kind = file;
	return wanted_find(holders, wanted, added, requester, count, pending);
}

void holders_sweep(struct holders *holders, int64_t now_ns, int64_t idle_ns)
{
	holders->pending = holders->files = 0;
	cache_sweep(&holders->wanted, now_ns, idle_ns);
	index_empty(&holders->lock_inodes);
	for (size_t i = 0; i < holders->wanted.count; i++) {
		const struct wanted *wanted = (struct wanted *)holders->wanted.entries[i];

		if (wanted->state != WANTED_PENDING)
			continue;
		holders->pending++;
		holders->files += wanted->mode == HOLDER_FILE;
		if (wanted->mode == HOLDER_LOCKS)
			index_put(&holders->lock_inodes, wanted->inode, NULL);
	}
	if (!holders->pending)
		walk_close(holders);
}

bool holders_own(const char *root, int64_t pid, int64_t tid, int fd, const char *link,
		 enum holder_mode mode)
{
	for (int step = 2; step <= 2 * OWN_FAR + 1; step++) {
		int other = step % 2 ? fd - step / 2 : fd + step / 2;

		if (other >= 0 && proc_fd_is(root, pid, tid, other, link) &&
		    fd_mode(root, pid, tid, other) & mode_bits[mode])
			return true;
	}
	return false;
}
