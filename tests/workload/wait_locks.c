/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for what other threads hold, or do. */
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait.h"

static pthread_mutex_t mutex;

static void mutex_take(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
}

static void mutex_hold(void *unused)
{
	pthread_mutex_lock(&mutex);
	(void)unused;
	stay();
}

/* Prepares a wait for a mutex. pthread_mutex_* of this C library is assumed to be glibc's: its word
 * is the first. */
static void mutex_of(struct waiting *w, void (*set)(pthread_mutexattr_t *))
{
	static struct subject holder;
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	if (set)
		set(&attributes);
	if (pthread_mutex_init(&mutex, &attributes))
		unready("no such mutex here");
	subject_start(&holder, "holder", mutex_hold, NULL);
	await_state(getpid(), holder.tid, "S", NR_ANY);
	w->nr = SYS_futex;
	w->run = mutex_take;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "mutex %#lx held by %d holder", (long)&mutex,
		 holder.tid);
}

static void mutex_plain(struct waiting *w)
{
	mutex_of(w, NULL);
}

static void set_recursive(pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_RECURSIVE);
}

static void mutex_recursive(struct waiting *w)
{
	mutex_of(w, set_recursive);
}

static void set_pi(pthread_mutexattr_t *attributes)
{
	if (pthread_mutexattr_setprotocol(attributes, PTHREAD_PRIO_INHERIT))
		unready("no priority inheritance here");
}

static void mutex_pi(struct waiting *w)
{
	mutex_of(w, set_pi);
}

static void set_robust(pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_setrobust(attributes, PTHREAD_MUTEX_ROBUST);
}

static void mutex_robust(struct waiting *w)
{
	mutex_of(w, set_robust);
}

static void mutex_take_twice(void *unused)
{
	mutex_take(unused);
	mutex_take(unused);
}

/* A normal mutex that the waiting thread holds itself. */
static void mutex_own(struct waiting *w)
{
	pthread_mutex_init(&mutex, NULL);
	w->nr = SYS_futex;
	w->run = mutex_take_twice;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "mutex %#lx held by *", (long)&mutex);
}

/* A mutex whose holder has ended. */
static void mutex_lost(struct waiting *w)
{
	static struct subject holder;

	pthread_mutex_init(&mutex, NULL);
	subject_start(&holder, "holder", mutex_take, NULL);
	pthread_join(holder.thread, NULL);
	w->nr = SYS_futex;
	w->run = mutex_take;
	snprintf(w->waits_on, sizeof(w->waits_on), "mutex %#lx held by %d, a thread that has ended",
		 (long)&mutex, holder.tid);
}

static void set_shared(pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_setpshared(attributes, PTHREAD_PROCESS_SHARED);
}

static void set_shared_robust(pthread_mutexattr_t *attributes)
{
	set_shared(attributes);
	pthread_mutexattr_setrobust(attributes, PTHREAD_MUTEX_ROBUST);
}

static pthread_mutex_t *shared_mutex;

static void shared_mutex_take(void *unused)
{
	(void)unused;
	pthread_mutex_lock(shared_mutex);
}

/* A mutex in memory that another process has locked. */
static void mutex_of_process(struct waiting *w, void (*set)(pthread_mutexattr_t *))
{
	pthread_mutexattr_t attributes;

	shared_mutex = mmap(NULL, sizeof(*shared_mutex), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_mutex == MAP_FAILED)
		die("mmap");
	pthread_mutexattr_init(&attributes);
	set(&attributes);
	if (pthread_mutex_init(shared_mutex, &attributes))
		unready("no such mutex here");
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		pthread_mutex_lock(shared_mutex);
		stay();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	w->nr = SYS_futex;
	w->run = shared_mutex_take;
	snprintf(w->waits_on, sizeof(w->waits_on), "mutex %#lx held by %d " OTHER,
		 (long)shared_mutex, w->pid);
}

static void mutex_shared(struct waiting *w)
{
	mutex_of_process(w, set_shared);
}

static void mutex_shared_robust(struct waiting *w)
{
	mutex_of_process(w, set_shared_robust);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void rwlock_read(void *unused)
{
	(void)unused;
	pthread_rwlock_rdlock(&rwlock);
}

static void rwlock_write(void *unused)
{
	(void)unused;
	pthread_rwlock_wrlock(&rwlock);
}

static void rwlock_read_hold(void *unused)
{
	rwlock_read(unused);
	stay();
}

static void rwlock_write_hold(void *unused)
{
	rwlock_write(unused);
	stay();
}

static void rwlock_of(struct waiting *w, void (*take)(void *), int holders, void (*run)(void *))
{
	static struct subject holder[2];
	int minor;

	/* src/waits/futex.c */
	if (sizeof(long) != 8 || sscanf(gnu_get_libc_version(), "2.%d", &minor) != 1 || minor < 25)
		unready("read-write locks are not told here");
	for (int i = 0; i < holders; i++) {
		subject_start(&holder[i], "holder", take, NULL);
		await_state(getpid(), holder[i].tid, "S", NR_ANY);
	}
	w->nr = SYS_futex;
	w->run = run;
	if (take == rwlock_write_hold) {
		w->pid = getpid();
		snprintf(w->waits_on, sizeof(w->waits_on), "rwlock %#lx held by %d holder",
			 (long)&rwlock, holder[0].tid);
	} else {
		snprintf(w->waits_on, sizeof(w->waits_on), "rwlock %#lx held by %d readers",
			 (long)&rwlock, holders);
	}
}

static void rwlock_reader(struct waiting *w)
{
	rwlock_of(w, rwlock_write_hold, 1, rwlock_read);
}

static void rwlock_writer(struct waiting *w)
{
	rwlock_of(w, rwlock_write_hold, 1, rwlock_write);
}

static void rwlock_of_readers(struct waiting *w)
{
	rwlock_of(w, rwlock_read_hold, 2, rwlock_write);
}

static pthread_rwlock_t *shared_rwlock;

static void shared_rwlock_read(void *unused)
{
	(void)unused;
	pthread_rwlock_rdlock(shared_rwlock);
}

static void shared_rwlock_write(void *unused)
{
	(void)unused;
	pthread_rwlock_wrlock(shared_rwlock);
}

/* Waits for a read-write lock in memory that processes share: another one has it for writing. */
static void rwlock_of_process(struct waiting *w, void (*run)(void *))
{
	pthread_rwlockattr_t attributes;

	shared_rwlock = mmap(NULL, sizeof(*shared_rwlock), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_rwlock == MAP_FAILED)
		unready("no shared memory here");
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (pthread_rwlock_init(shared_rwlock, &attributes))
		unready("no such locks here");
	/* where waits for such locks are told at all, and no thread but the other process's */
	rwlock_of(w, NULL, 0, run);
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		pthread_rwlock_wrlock(shared_rwlock);
		stay();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	snprintf(w->waits_on, sizeof(w->waits_on), "rwlock %#lx held by %d " OTHER,
		 (long)shared_rwlock, w->pid);
}

static void rwlock_shared_reader(struct waiting *w)
{
	rwlock_of_process(w, shared_rwlock_read);
}

static void rwlock_shared_writer(struct waiting *w)
{
	rwlock_of_process(w, shared_rwlock_write);
}

static void stream_take(void *unused)
{
	(void)unused;
	fputs("x", stderr);
}

static void stream_hold(void *unused)
{
	(void)unused;
	flockfile(stderr);
	stay();
}

/* Writes to a stream (FILE) that another thread has locked. */
static void stream(struct waiting *w)
{
	static struct subject holder;
	int minor;

	if (sscanf(gnu_get_libc_version(), "2.%d", &minor) != 1 || minor > 41)
		unready("descriptors of threads are not known to be as in glibc 2.41");
	subject_start(&holder, "holder", stream_hold, NULL);
	await_state(getpid(), holder.tid, "S", NR_ANY);
	w->nr = SYS_futex;
	w->run = stream_take;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "stdio lock 0x* held by %d holder", holder.tid);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void condition_wait(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
}

/* Waits for a condition variable: no thread holds it. */
static void condition_variable(struct waiting *w)
{
	w->nr = SYS_futex;
	w->run = condition_wait;
	strcpy(w->waits_on, "futex 0x*");
}

static struct subject joined;

static void join(void *unused)
{
	(void)unused;
	pthread_join(joined.thread, NULL);
}

static void pause_forever(void *unused)
{
	(void)unused;
	stay();
}

static void thread_join(struct waiting *w)
{
	int minor;

	subject_start(&joined, "joined", pause_forever, NULL);
	w->nr = SYS_futex;
	w->run = join;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "end of thread %d joined", joined.tid);
	/* the futex word of the wait has no id (src/waits/futex.c) */
	if (sscanf(gnu_get_libc_version(), "2.%d", &minor) == 1 && minor > 41) {
		w->pid = 0;
		strcpy(w->waits_on, "futex 0x*");
	}
}

/* Waits for a word whose neighbours look like the owner of a mutex that does not exist: process
 * 1. */
static void futex_hostile(struct waiting *w)
{
	static int words[5] = {2, 0, 1, 1, 0};

	w->nr = SYS_futex;
	w->arg[0] = (long)words;
	w->arg[1] = 128;
	w->arg[2] = 2;
	snprintf(w->waits_on, sizeof(w->waits_on), "futex %#lx", (long)words);
}

/* Waits for a semaphore that another process has taken. */
static void semaphore(struct waiting *w)
{
	static struct sembuf take = {.sem_op = -1}, give = {.sem_op = 1};
	int set = semget(IPC_PRIVATE, 1, 0600);
	pid_t other;

	if (set < 0 || semop(set, &give, 1))
		unready("no semaphores here");
	other = child_fork();
	if (!other) {
		prctl(PR_SET_NAME, OTHER);
		if (semop(set, &take, 1))
			_exit(1);
		stay();
	}
	await_state(other, other, "S", NR_ANY);
	w->nr = SYS_semtimedop;
	w->arg[0] = set;
	w->arg[1] = (long)&take;
	w->arg[2] = 1;
	w->semaphores = set;
	snprintf(w->waits_on, sizeof(w->waits_on), "semaphores %d, last changed by %d " OTHER, set,
		 other);
}

const struct wait_row lock_waits[] = {
	{"mutex", mutex_plain},
	{"mutex_recursive", mutex_recursive},
	{"mutex_pi", mutex_pi},
	{"mutex_robust", mutex_robust},
	{"mutex_own", mutex_own},
	{"mutex_lost", mutex_lost},
	{"mutex_shared", mutex_shared},
	{"mutex_shared_robust", mutex_shared_robust},
	{"rwlock_reader", rwlock_reader},
	{"rwlock_writer", rwlock_writer},
	{"rwlock_shared_reader", rwlock_shared_reader},
	{"rwlock_shared_writer", rwlock_shared_writer},
	{"rwlock_of_readers", rwlock_of_readers},
	{"stream", stream},
	{"condition", condition_variable},
	{"join", thread_join},
	{"futex_hostile", futex_hostile},
	{"semaphore", semaphore},
	{0},
};
