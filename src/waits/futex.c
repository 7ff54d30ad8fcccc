/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of a lock that a thread waits for in futex(2), as far as user memory shows it.
 *
 * The kernel knows the holder of a PI futex only: its word holds the thread's id, with bit 31 for
 * waiters (FUTEX_TID_MASK, FUTEX_WAITERS). Holders of other locks are known to the C library only;
 * its layouts are assumed to be:
 *  - glibc's pthread_mutex_t, from 2.3 to 2.41, is int lock, unsigned count, int owner, unsigned
 *    nusers (on 32-bit hosts: kind, nusers); its waiters set the word to 2 and wait until that
 *    changes. Robust mutexes have id | FUTEX_WAITERS in the word.
 *  - musl's typed mutexes have id | 0x80000000 in the word; its normal mutexes EBUSY in place of
 *    the id.
 *  - pthread_join waits with a shared futex on the id of a thread, which is zeroed by the kernel at
 *    its end (CLONE_CHILD_CLEARTID). In later glibc (seen in 2.43) that word holds a state and no
 *    id: such a wait is reported by its address.
 * The words are believed only if the futex word still has the value that the call was given, and
 * the id is that of a living thread of the same process (of any process, for a shared PI futex: any
 * user can write any thread's id there, so one of another user is marked as likely only).
 * Read-write locks of glibc: see waits/rwlock.h. Locks of language runtimes, whose waiters sleep on
 * a condition variable, come from a runtime_lock_finder (waits/waits.h). Everything else, such as
 * condition variables and semaphores, is reported by its address.
 */
#include "waits/waits.h"
#include "proc/proc.h"
#include "waits/rwlock.h"
#include "base/cache.h"
#include "base/text.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKED_WITH_WAITERS 2 /* value of glibc's lowlevellock */
#define TID_MAX (1 << 22)     /* PID_MAX_LIMIT of include/linux/threads.h */
#define NUSERS_MAX 16384      /* a larger value is no count, but half of an address */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13 /* 5.14 */
#endif
#define FUTEX2_PRIVATE_FLAG 128 /* FUTEX2_PRIVATE of linux/futex.h, 6.7 */

struct futex {
	uint64_t address;
	uint32_t expected; /* value of the word when the thread went to sleep */
	bool shared, owned /* a PI futex */;
	uint32_t words[4]; /* words from `address` on */
	size_t count;	   /* words read */
	int64_t holder;	   /* process of the thread that holder_of() found last */
};

#define LOCKS_MAX 4096

/* Words at a futex, read once in a scan for all of its waiters. */
struct lock_words {
	struct cache_entry entry; /* key: lock_key() */
	int64_t pid, scan_ns;	  /* scan_ns: the scan that read the words; 0: none has */
	uint64_t address;
	uint32_t words[4];
	size_t count; /* words read */
};

void locks_init(struct cache *locks)
{
	*locks = (struct cache){.entry_bytes = sizeof(struct lock_words), .entries_max = LOCKS_MAX};
}

static uint64_t lock_key(int64_t pid, uint64_t address)
{
	return hash_u64(address) ^ hash_u64((uint64_t)pid + 1);
}

/* Reads the words from the futex on, once in a scan for all of its waiters. */
static void words_read(struct wait *wait, struct futex *futex)
{
	bool added;
	struct lock_words *lock = cache_get(wait_locks(wait), lock_key(wait->pid, futex->address),
					    wait->now_ns, &added);

	if (wait->anew || lock->scan_ns != wait->now_ns || lock->pid != wait->pid ||
	    lock->address != futex->address) {
		lock->pid = wait->pid;
		lock->scan_ns = wait->now_ns;
		lock->address = futex->address;
		lock->count = 4;
		if (!wait_memory_read(wait, futex->address, lock->words, sizeof(lock->words)))
			lock->count = wait_memory_read(wait, futex->address, lock->words,
						       sizeof(*lock->words));
	}
	memcpy(futex->words, lock->words, sizeof(futex->words));
	futex->count = lock->count;
}

/* True if the process has that thread. Signal 0 costs a tenth of a look into /proc, but needs the
 * same ids as /proc shows. */
static bool process_has(const struct wait *wait, int64_t tid)
{
	char path[64 + 256];

	if (wait_own_ids(wait))
		return !syscall(SYS_tgkill, (pid_t)wait->pid, (pid_t)tid, 0) || errno != ESRCH;
	snprintf(path, sizeof(path), "%s/%lld/task/%lld", wait_root(wait), (long long)wait->pid,
		 (long long)tid);
	return !access(path, F_OK);
}

/* The process of a thread that may hold the futex: the waiter's own process, or any process that
 * shares a PI futex. ABSENT: there is no such thread. */
static int64_t holder_process(const struct wait *wait, const struct futex *futex, int64_t tid)
{
	int64_t uid, pid;

	if (process_has(wait, tid))
		return wait->pid;
	return futex->owned && futex->shared && !proc_ids_read(wait_root(wait), tid, &uid, &pid)
		       ? pid
		       : ABSENT;
}

/* True if the first thread of a process has ended: others go on, or nobody has waited for the
 * process. All other threads are gone from /proc when they end. */
static bool is_zombie(const struct wait *wait, int64_t pid)
{
	struct proc_stat stat;

	return !proc_stat_read(wait_root(wait), pid, pid, &stat) && stat.state == 'Z';
}

static bool is_of_other_user(const struct wait *wait, int64_t pid)
{
	int64_t own, other;

	return pid != wait->pid &&
	       (proc_owner_read(wait_root(wait), wait->pid, wait->tid, &own) ||
		proc_owner_read(wait_root(wait), pid, pid, &other) || own != other);
}

/* The living thread that has this id in its pid namespace; 0: none. */
static int64_t holder_of(struct wait *wait, struct futex *futex, uint32_t number)
{
	int64_t tid = number && number <= TID_MAX ? thread_of_inner(wait, number) : 0;

	wait->of_thread |= tid == wait->tid;
	if (!tid)
		return 0;
	futex->holder = holder_process(wait, futex, tid);
	if (futex->holder == ABSENT || (tid == futex->holder && is_zombie(wait, tid)))
		return 0;
	return tid;
}

/* Does holder_of() for words in which the waiting thread's own id does not mean that it waits for
 * itself. */
static int64_t other_holder_of(struct wait *wait, struct futex *futex, uint32_t number)
{
	int64_t tid = holder_of(wait, futex, number);

	return tid == wait->tid ? 0 : tid;
}

static int64_t glibc_owner(struct wait *wait, struct futex *futex)
{
	uint32_t users = futex->words[3];

	/* in a 32-bit process this word is kind, which is small too; nusers follows it */
	if (futex->count < 4 || futex->words[0] != LOCKED_WITH_WAITERS ||
	    (!wait->compat && (!users || users > NUSERS_MAX)))
		return 0;
	return holder_of(wait, futex, futex->words[2]);
}

static int64_t word_owner(struct wait *wait, struct futex *futex)
{
	uint32_t id = futex->words[0] & FUTEX_TID_MASK;

	if (!(futex->words[0] & FUTEX_WAITERS) || (!futex->owned && id == EBUSY))
		return 0;
	return holder_of(wait, futex, id);
}

static void held_describe(struct wait *wait, const struct futex *futex, int64_t tid)
{
	wait->facts.tid = tid;
	wait->facts.pid = futex->holder;
	wait->facts.other_user = is_of_other_user(wait, futex->holder);
	text_add_format(wait->text, "mutex %#llx%s held", (unsigned long long)futex->address,
			wait->facts.other_user ? " likely" : "");
	wait_add_thread(wait, " by ", tid);
}

/* Describes the futex if it is a word of a read-write lock that is held; false: it is not. */
static bool rwlock_describe(struct wait *wait, struct futex *futex, int at)
{
	uint32_t words[RWLOCK_WORDS], writer, readers;
	uint64_t lock = futex->address - (uint64_t)at * sizeof(*words);
	int64_t tid;

	if (wait->compat || !wait_memory_read(wait, lock, words, sizeof(words)) ||
	    !rwlock_parse(words, at, futex->expected, futex->shared, &writer, &readers))
		return false;
	tid = writer ? other_holder_of(wait, futex, writer) : 0;
	if (writer && !tid)
		return false;
	text_add_format(wait->text, "rwlock %#llx held", (unsigned long long)lock);
	if (!tid) {
		text_add_format(wait->text, " by %u reader%s", readers, readers == 1 ? "" : "s");
		wait->facts.readers = readers;
		return true;
	}
	wait_add_thread(wait, " by ", tid);
	wait->facts.tid = tid;
	wait->facts.pid = futex->holder;
	return true;
}

/* Writes "GIL held by 4711 worker app.py:88", "monitor 0x7f21c3a0 held by 4711 worker", or "GIL,
 * free" while the lock passes from thread to thread. */
static bool runtime_lock_describe(struct wait *wait, struct futex *futex)
{
	struct runtime_lock lock;
	int64_t tid;

	if (wait->compat || futex->shared)
		return false;
	if (!wait_runtime_lock(wait, futex->address, &lock)) {
		wait->pending |= lock.later;
		wait->facts.open |= lock.later;
		return false;
	}
	text_add_string(wait->text, lock.name);
	if (lock.address)
		text_add_format(wait->text, " %#llx", (unsigned long long)lock.address);
	tid = lock.holder > 0 && lock.holder <= TID_MAX
		      ? other_holder_of(wait, futex, (uint32_t)lock.holder)
		      : 0;
	if (lock.free)
		text_add_string(wait->text, ", free");
	if (!tid)
		return true;
	text_add_string(wait->text, " held");
	wait_add_thread(wait, " by ", tid);
	if (*lock.location)
		text_add_format(wait->text, " %s", lock.location);
	wait->facts.tid = tid;
	wait->facts.pid = wait->pid;
	wait->facts.turn = lock.turn;
	wait->facts.one_of_many = lock.address;
	wait->facts.changing = lock.changing;
	return true;
}

static void word_describe(struct wait *wait, struct futex *futex)
{
	int64_t tid = 0;

	words_read(wait, futex);
	wait->facts.kind = WAIT_LOCK;
	if (futex->count && (futex->owned || futex->words[0] == futex->expected)) {
		tid = word_owner(wait, futex);
		if (!tid && futex->expected == LOCKED_WITH_WAITERS)
			tid = glibc_owner(wait, futex);
		if (tid) {
			held_describe(wait, futex, tid);
			return;
		}
		tid = futex->shared && !futex->owned ? other_holder_of(wait, futex, futex->words[0])
						     : 0;
	}
	if (!tid && runtime_lock_describe(wait, futex))
		return;
	if (!tid && (rwlock_describe(wait, futex, RWLOCK_PHASE_WORD) ||
		     rwlock_describe(wait, futex, RWLOCK_WRITER_WORD)))
		return;
	if (!tid) {
		text_add_format(wait->text, "futex %#llx", (unsigned long long)futex->address);
		served_describe(wait_served(wait), wait);
		return;
	}
	wait->facts.kind = WAIT_PROCESS;
	wait_add_thread(wait, "end of thread ", tid);
	wait->facts.tid = tid;
	wait->facts.pid = wait->pid;
}

void futex_describe(struct wait *wait)
{
	int command = (int)wait->arg[1] & FUTEX_CMD_MASK;
	struct futex futex = {
		.address = wait_address(wait, 0),
		.expected = (uint32_t)wait->arg[2],
		.shared = !(wait->arg[1] & FUTEX_PRIVATE_FLAG),
	};

	switch (command) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		futex.owned = true;
		break;
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
		break;
	default:
		return; /* other commands do not wait */
	}
	word_describe(wait, &futex);
}

/* Arguments of futex_wait(2), 6.7: address, value, mask, flags, timeout, clock. */
void futex_wait_describe(struct wait *wait)
{
	struct futex futex = {
		.address = wait_address(wait, 0),
		.expected = (uint32_t)wait->arg[1],
		.shared = !(wait->arg[3] & FUTEX2_PRIVATE_FLAG),
	};

	word_describe(wait, &futex);
}

/* Arguments of futex_waitv(2), 5.16: waiters, their count, flags, timeout. */
void futex_waitv_describe(struct wait *wait)
{
	int64_t count = (uint32_t)wait->arg[1];

	wait->facts.kind = WAIT_LOCK;
	wait->facts.count = count;
	text_add_format(wait->text, "%lld futexes", (long long)count);
}
