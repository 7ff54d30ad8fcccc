/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of a lock that a thread waits for in futex(2), as far as user memory shows it.
 *
 * The kernel knows the holder of a PI futex only: its word holds the thread's id, with bit 31 for
 * waiters (FUTEX_TID_MASK, FUTEX_WAITERS). Holders of other locks are known to the C library only;
 * its layouts are assumed to be:
 *  - glibc's pthread_mutex_t, from 2.3 to 2.41, is int lock, unsigned count, int owner, unsigned
 *    nusers (on 32-bit hosts: kind, nusers); its waiters set the word to 2 and wait until that
 *    changes. Robust mutexes have id | FUTEX_WAITERS in the word.
 *  - a stream's lock (FILE, stdio) has the address of its holder's descriptor; see there.
 *  - musl's typed mutexes have id | 0x80000000 in the word; its normal mutexes EBUSY in place of
 *    the id.
 *  - pthread_join waits with a shared futex on the id of a thread, which is zeroed by the kernel at
 *    its end (CLONE_CHILD_CLEARTID). In later glibc (seen in 2.43) that word holds a state and no
 *    id: such a wait is reported by its address.
 * The words are believed only if the futex word still has the value that the call was given, and
 * the id is that of a living thread of the same process (of any process, for a shared PI futex,
 * mutex or read-write lock: any user can write any thread's id there, so one of another user is
 * marked as likely only). Where all words of a glibc mutex are as such a mutex has them, an id
 * without such a thread is believed, too: the holder has ended, or was left behind by a fork. Locks
 * of language runtimes, whose waiters sleep on a condition variable, come from a
 * runtime_lock_finder (sample/runtime_lock.h). Everything else, such as condition variables and
 * semaphores, is reported by its address.
 */
#include "waits/wait_object.h"
#include "base/clock.h"
#include "proc/proc.h"

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
	bool glibc;	   /* all words are those of a mutex or a read-write lock of glibc */
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

static struct cache locks = {.entry_bytes = sizeof(struct lock_words), .entries_max = LOCKS_MAX};

static uint64_t lock_key(int64_t pid, uint64_t address)
{
	return hash_u64(address) ^ hash_u64((uint64_t)pid + 1);
}

/* Reads the words from the futex on, once in a scan for all of its waiters. */
static void words_read(struct wait *wait, struct futex *futex)
{
	bool added;
	struct lock_words *lock =
		cache_get(&locks, lock_key(wait->pid, futex->address), wait->now_ns, &added);

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

	if (wait->waits->own_ids)
		return !syscall(SYS_tgkill, (pid_t)wait->pid, (pid_t)tid, 0) || errno != ESRCH;
	snprintf(path, sizeof(path), "%s/%lld/task/%lld", wait->waits->root, (long long)wait->pid,
		 (long long)tid);
	return !access(path, F_OK);
}

/* The process of a thread that may hold the futex: the waiter's own process, or any process that
 * shares a PI futex or a lock of glibc. ABSENT: there is no such thread. */
static int64_t holder_process(const struct wait *wait, const struct futex *futex, int64_t tid)
{
	int64_t uid, pid;

	if (process_has(wait, tid))
		return wait->pid;
	if (!futex->shared || proc_ids_read(wait->waits->root, tid, &uid, &pid))
		return ABSENT;
	/* threads of another pid namespace write other ids there */
	return futex->owned || (futex->glibc && wait_shares_namespace(wait, "pid", pid)) ? pid
											 : ABSENT;
}

/* True if the first thread of a process has ended: others go on, or nobody has waited for the
 * process. All other threads are gone from /proc when they end. */
static bool is_zombie(const struct wait *wait, int64_t pid)
{
	struct proc_stat stat;

	return !proc_stat_read(wait->waits->root, pid, pid, &stat) && stat.state == 'Z';
}

static bool is_of_other_user(const struct wait *wait, int64_t pid)
{
	int64_t own, other;

	return pid != wait->pid &&
	       (proc_owner_read(wait->waits->root, wait->pid, wait->tid, &own) ||
		proc_owner_read(wait->waits->root, pid, pid, &other) || own != other);
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

static void held_describe(struct wait *wait, const struct futex *futex, const char *kind,
			  uint64_t lock, int64_t tid)
{
	wait->facts.lock = EDGE_MUTEX;
	wait->facts.tid = tid;
	wait->facts.pid = futex->holder;
	wait->facts.other_user = is_of_other_user(wait, futex->holder);
	text_add_format(wait->text, "%s %#llx%s held", kind, (unsigned long long)lock,
			wait->facts.other_user ? " likely" : "");
	wait_add_thread(wait, " by ", tid);
}

/* --- mutexes of glibc whose holder is no thread of the process */

#define MUTEX_WORDS 10 /* pthread_mutex_t of 64-bit hosts; the last four are a list's pointers */

#define WORD_COUNT 1
#define WORD_OWNER 2
#define WORD_USERS 3
#define WORD_KIND 4
#define WORD_LIST 6

/* Bits of the kind: PTHREAD_MUTEX_... in nptl/pthreadP.h of glibc. */
#define KIND_TYPE 0x3u
#define KIND_RECURSIVE 0x1u
#define KIND_ROBUST 0x10u
#define KIND_SHARED 0x80u
#define KIND_ELISION 0x300u

/* True if the words are a mutex that a thread may wait for. */
static bool mutex_parse(const uint32_t words[MUTEX_WORDS], const struct futex *futex)
{
	uint32_t kind = words[WORD_KIND], owner = words[WORD_OWNER];

	if (kind & ~(KIND_TYPE | KIND_ROBUST | KIND_SHARED | KIND_ELISION) ||
	    (kind & KIND_SHARED && !futex->shared) || !owner || owner > TID_MAX ||
	    !words[WORD_USERS] || words[WORD_USERS] > NUSERS_MAX ||
	    ((kind & KIND_TYPE) != KIND_RECURSIVE &&
	     words[WORD_COUNT] > (kind & KIND_ROBUST ? 1 : 0)))
		return false;
	if (kind & KIND_ROBUST)
		return words[0] == (owner | FUTEX_WAITERS);
	for (int i = WORD_LIST; i < MUTEX_WORDS; i++)
		if (words[i])
			return false;
	return words[0] == LOCKED_WITH_WAITERS;
}

/* True if the thread is one of the process that this process was forked from. */
static bool is_of_parent(const struct wait *wait, int64_t tid)
{
	struct proc_stat stat;
	int64_t uid, pid;

	return !proc_stat_read(wait->waits->root, wait->pid, wait->tid, &stat) &&
	       !proc_ids_read(wait->waits->root, tid, &uid, &pid) && pid == stat.ppid;
}

/* Describes the futex if it is a mutex that no thread of the process holds; false: it is not. The
 * words are read after the thread was looked for, so that it did not unlock it meanwhile. */
static bool mutex_describe(struct wait *wait, struct futex *futex)
{
	uint32_t words[MUTEX_WORDS];
	int64_t tid;

	if (wait->compat || futex->owned ||
	    !wait_memory_read(wait, futex->address, words, sizeof(words)) ||
	    words[0] != futex->expected || !mutex_parse(words, futex))
		return false;
	futex->glibc = true;
	tid = holder_of(wait, futex, words[WORD_OWNER]);
	if (tid) {
		held_describe(wait, futex, "mutex", futex->address, tid);
		return true;
	}
	/* an id that another pid namespace may have given is no proof. A thread that has begun to
	 * hold the mutex since is found in the next scan */
	if (words[WORD_KIND] & KIND_SHARED ||
	    !wait_memory_read(wait, futex->address, words, sizeof(words)) ||
	    words[0] != futex->expected || !mutex_parse(words, futex))
		return false;
	tid = words[WORD_OWNER];
	wait->facts.lock = EDGE_MUTEX;
	wait->facts.lost = is_of_parent(wait, tid) ? "a thread of the parent process"
						   : "a thread that has ended";
	text_add_format(wait->text, "mutex %#llx held by %lld, %s",
			(unsigned long long)futex->address, (long long)tid, wait->facts.lost);
	return true;
}

/* --- locks of FILE streams (stdio): flockfile(3), which printf(3) and its like call, too
 *
 * _IO_lock_t of glibc is int lock, int cnt, void *owner: the thread descriptor (struct pthread) of
 * the thread that has it. From 2.3.4 to 2.41 that has the thread's id where the table says, and the
 * head of its list of robust mutexes 16 bytes behind it, with the same offset in all threads
 * (nptl/descr.h, sysdeps/nptl/lowlevellock.h, sysdeps/nptl/stdio-lock.h).
 */

#ifdef __x86_64__
#define DESCRIPTOR_TID 720
#else
#define DESCRIPTOR_TID 208 /* aarch64 */
#endif
#define ROBUST_WORD 6	    /* from the id on: futex_offset of struct robust_list_head */
#define ROBUST_OFFSET (-32) /* of __lock from __list.__next in pthread_mutex_t */
#define STREAM_DEPTH_MAX 1024

/* Describes the futex if it is the lock of a stream that another thread of the process has; false:
 * it is not. */
static bool stream_describe(struct wait *wait, const struct futex *futex)
{
	uint64_t owner = (uint64_t)futex->words[3] << 32 | futex->words[2];
	uint32_t words[ROBUST_WORD + 2];
	struct futex of = *futex;
	int64_t offset, tid;

	if (wait->compat || futex->shared || futex->owned || futex->count < 4 ||
	    futex->words[0] != LOCKED_WITH_WAITERS || !futex->words[1] ||
	    futex->words[1] > STREAM_DEPTH_MAX || !owner || owner % 8 ||
	    !wait_memory_read(wait, owner + DESCRIPTOR_TID, words, sizeof(words)))
		return false;
	memcpy(&offset, words + ROBUST_WORD, sizeof(offset));
	tid = offset == ROBUST_OFFSET ? other_holder_of(wait, &of, words[0]) : 0;
	if (!tid)
		return false;
	held_describe(wait, &of, "stdio lock", futex->address, tid);
	return true;
}

/* --- read-write locks of glibc, as waiting threads leave them in memory
 *
 * pthread_rwlock_t is the same on 64-bit hosts from glibc 2.25 to 2.41: eight words.
 * std::shared_mutex contains one. Bit 0 of the first word says that the lock is in a write phase,
 * bit 1 that a writer has it or waits for readers to leave, and the bits above bit 2 count readers.
 * Threads wait on two words, both with bit 1 for waiters: the third (a change of the phase) and the
 * fourth (the end of a writer). The seventh has the thread id of the writer that holds the lock.
 */

#define RWLOCK_WORDS 8
#define RWLOCK_PHASE_WORD 2  /* waited on by readers, and by a writer for readers */
#define RWLOCK_WRITER_WORD 3 /* waited on by writers for another writer */

#define WORD_READERS 0
#define WORD_WRITER_ID 6
#define WORD_SHARED 7

/* Bits of the first word: PTHREAD_RWLOCK_... in nptl/pthread_rwlock_common.c of glibc. */
#define WRITE_PHASE 1u
#define WRITE_LOCKED 2u
#define READER_SHIFT 3
#define FUTEX_USED 2u
#define READERS_MAX 16384 /* a larger value is no count, but part of something else */

/* True if the words are a lock that a thread may wait for at word `at`, whose value was `expected`
 * when the wait began. writer: id of the thread that holds the lock; 0: `readers` threads do.
 * shared: the futex is shared between processes. */
static bool rwlock_parse(const uint32_t words[RWLOCK_WORDS], int at, uint32_t expected, bool shared,
			 uint32_t *writer, uint32_t *readers)
{
	uint32_t state = words[WORD_READERS], held;

	held = state & WRITE_PHASE ? 1 : 0;
	/* a writer waits for a write phase, all other threads for the end of a writer */
	if (words[at] != expected ||
	    expected != (FUTEX_USED | (at == RWLOCK_PHASE_WORD ? held : 1)) ||
	    !(state & WRITE_LOCKED) || !(words[RWLOCK_WRITER_WORD] & 1) ||
	    (words[WORD_SHARED] != 0) != shared)
		return false;
	*writer = held ? words[WORD_WRITER_ID] : 0;
	*readers = held ? 0 : state >> READER_SHIFT;
	return held ? *writer != 0 : *readers && *readers <= READERS_MAX && !words[WORD_WRITER_ID];
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
	futex->glibc = true;
	tid = writer ? other_holder_of(wait, futex, writer) : 0;
	if (writer && !tid)
		return false;
	if (tid) {
		held_describe(wait, futex, "rwlock", lock, tid);
		return true;
	}
	text_add_format(wait->text, "rwlock %#llx held by %u reader%s", (unsigned long long)lock,
			readers, readers == 1 ? "" : "s");
	wait->facts.readers = readers;
	return true;
}

/* --- locks of languages' runtimes */

/* Calls the runtime_lock_finder for the futex; false if there is none. */
static bool runtime_lock_find(const struct wait *wait, uint64_t futex, struct runtime_lock *lock)
{
	const struct runtime_waiter waiter = {.pid = wait->pid,
					      .tid = wait->tid,
					      .now_ns = wait->now_ns,
					      .futex = futex,
					      .episode = wait->episode,
					      .with_location = !wait->numbers_only};
	struct waits *waits = wait->waits;
	bool for_class = wait->numbers_only && !wait->anew, found;
	int64_t start_ns, took_ns;

	lock->later = for_class && waits->classes.locks_left_ns <= 0;
	if (!waits->runtime_locks || lock->later)
		return false;
	start_ns = for_class ? clock_monotonic_ns() : 0;
	found = waits->runtime_locks(waits->runtime_lock_finder, &waiter, lock);
	if (for_class) {
		took_ns = clock_monotonic_ns() - start_ns;
		waits->classes.locks_left_ns -= took_ns;
		waits->classes.left_ns += took_ns;
	}
	return found;
}

/* Writes "GIL held by 4711 worker app.py:88", "monitor 0x7f21c3a0 held by 4711 worker",
 * "ReentrantLock 0x7f21c3a0 held by 4711 worker", or "GIL, free" while the lock passes from thread
 * to thread. */
static bool runtime_lock_describe(struct wait *wait, struct futex *futex)
{
	struct runtime_lock lock;
	int64_t tid;

	if (wait->compat || futex->shared)
		return false;
	if (!runtime_lock_find(wait, futex->address, &lock)) {
		wait->pending |= lock.later;
		wait->facts.open |= lock.later;
		return false;
	}
	text_add_string(wait->text, *lock.class ? lock.class : edge_kinds[lock.kind].name);
	if (lock.address)
		text_add_format(wait->text, " %#llx", (unsigned long long)lock.address);
	tid = lock.holder > 0 && lock.holder <= TID_MAX
		      ? other_holder_of(wait, futex, (uint32_t)lock.holder)
		      : 0;
	if (lock.free)
		text_add_string(wait->text, ", free");
	if (lock.lost) {
		wait->facts.lock = lock.kind;
		wait->facts.lost = "a thread that has ended";
		text_add_format(wait->text, " held by %s", wait->facts.lost);
	}
	if (!tid)
		return true;
	text_add_string(wait->text, " held");
	wait_add_thread(wait, " by ", tid);
	if (*lock.location)
		text_add_format(wait->text, " %s", lock.location);
	wait->facts.lock = lock.kind;
	wait->facts.tid = tid;
	wait->facts.pid = wait->pid;
	wait->facts.turn = lock.turn;
	wait->facts.changing = lock.changing;
	return true;
}

/* --- all futexes */

static void word_describe(struct wait *wait, struct futex *futex)
{
	int64_t tid = 0;

	words_read(wait, futex);
	if (futex->count && (futex->owned || futex->words[0] == futex->expected)) {
		tid = word_owner(wait, futex);
		if (!tid && futex->expected == LOCKED_WITH_WAITERS)
			tid = glibc_owner(wait, futex);
		if (tid) {
			held_describe(wait, futex, "mutex", futex->address, tid);
			return;
		}
		if (stream_describe(wait, futex) || mutex_describe(wait, futex))
			return;
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
		served_describe(wait);
		return;
	}
	wait_for_thread(wait, tid);
}

static void futex_describe(struct wait *wait)
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
	default: /* other commands do not wait */
		wait->facts = wait_facts_absent;
		return;
	}
	word_describe(wait, &futex);
}

/* Arguments of futex_wait(2), 6.7: address, value, mask, flags, timeout, clock. */
static void futex_wait_describe(struct wait *wait)
{
	struct futex futex = {
		.address = wait_address(wait, 0),
		.expected = (uint32_t)wait->arg[1],
		.shared = !(wait->arg[3] & FUTEX2_PRIVATE_FLAG),
	};

	word_describe(wait, &futex);
}

/* Arguments of futex_waitv(2), 5.16: waiters, their count, flags, timeout. */
static void futex_waitv_describe(struct wait *wait)
{
	int64_t count = (uint32_t)wait->arg[1];

	wait->facts.count = count;
	text_add_format(wait->text, "%lld futexes", (long long)count);
}

static void lock_edge(const struct wait_facts *facts, const struct sample *sample,
		      struct edge *edge)
{
	bool of_runtime = edge_kinds[facts->lock].traits & OF_RUNTIME;

	/* nobody can end the wait */
	if (facts->lost) {
		edge->kind = facts->lock;
		edge->thing = facts->lost;
	}
	/* a thread may wait for a mutex that it holds itself, but for no lock of a runtime */
	if (facts->tid == ABSENT || (facts->tid == sample->thread.tid && of_runtime))
		return;
	edge->kind = facts->lock;
	edge->tid = facts->tid;
	edge->pid = facts->pid;
	edge->sure = facts->changing || facts->other_user ? SURE_LIKELY : SURE_CERTAIN;
	edge->firm = !of_runtime;
	edge->timed = edge_kinds[facts->lock].traits & SLEEPS_ONCE && wait_has_limit(sample);
}

const struct wait_object futex_object = {
	.kind = WAIT_LOCK,
	.serves = SERVES_LOCK,
	.calls =
		(const struct wait_call[]){
			{"futex", futex_describe, 3},
			{"futex_time64", futex_describe, 3},
			{"futex_wait", futex_wait_describe, 4},
			{"futex_waitv", futex_waitv_describe, 3},
			{0},
		},
	.edge = lock_edge,
	.passes_on = true,
	.known = &locks,
	.threads_end = true,
	.apart = 7, /* a condition variable of glibc has two futexes side by side, which take turns
		     */
};
