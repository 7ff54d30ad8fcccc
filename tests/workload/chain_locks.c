/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains of threads that wait for mutexes, and the activity of the holders. */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain.h"

#define WAITERS 50
#define NESTED 8
#define NOBODY 65534

static pthread_mutex_t mutexes[NESTED]; /* zeroed mutexes are unlocked */
static struct subject waiters[WAITERS];
static int held; /* number of mutexes that are held */

static void mutex_wait(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutexes[0]);
}

static void mutex_take(size_t which)
{
	pthread_mutex_lock(&mutexes[which]);
	__atomic_add_fetch(&held, 1, __ATOMIC_RELEASE);
}

static void held_await(int count)
{
	while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) < count)
		sleep_ns(NS_PER_MS);
}

static void spin(void)
{
	for (volatile unsigned long turns = 0;; turns++)
		;
}

static void hold_napping(void *unused)
{
	(void)unused;
	mutex_take(0);
	for (;;)
		sleep_ns(20 * NAP_NS); /* seldom runnable, also on a full host */
}

static void hold_spinning(void *unused)
{
	(void)unused;
	mutex_take(0);
	spin();
}

static void spin_pinned(void *unused)
{
	(void)unused;
	pin_thread(0, last_cpu());
	spin();
}

static void hold_pinned(void *unused)
{
	(void)unused;
	pin_thread(0, last_cpu());
	mutex_take(0);
	spin();
}

static void hold_syncing(void *unused)
{
	char block[65536] = {0};
	int fd;

	(void)unused;
	lock_file("chain-sync", locked_path[0]);
	fd = open(locked_path[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	mutex_take(0);
	for (;;)
		if (pwrite(fd, block, sizeof(block), 0) < 0 || fsync(fd))
			die("fsync");
}

static void crowd(void (*holding)(void *), const char *chain)
{
	static struct subject holder;

	subject_start(&holder, "chain_holder", holding, NULL);
	held_await(1);
	for (int i = 0; i < WAITERS; i++)
		subject_start(&waiters[i], "chain_waiter", mutex_wait, NULL);
	for (int i = 0; i < WAITERS; i++) {
		await_state(getpid(), waiters[i].tid, "S", SYS_futex);
		victim_add(waiters[i].tid, holder.tid, "%s", chain);
	}
	pid_add(getpid());
}

static void mutex_nap(void)
{
	crowd(hold_napping, "chain_waiter mutex> chain_holder");
}

static void mutex_spin(void)
{
	crowd(hold_spinning, "chain_waiter mutex> chain_holder*");
}

static void mutex_sync(void)
{
	crowd(hold_syncing, "chain_waiter mutex> chain_holder*");
}

/* A holder that shares its CPU with another thread. */
static void mutex_queue(void)
{
	static struct subject spinner;

	subject_start(&spinner, "chain_spinner", spin_pinned, NULL);
	crowd(hold_pinned, "chain_waiter mutex> chain_holder*");
}

/* Holds one mutex and waits for that of the next thread; the last thread naps. */
static void nest(void *which)
{
	size_t own = (size_t)which;

	mutex_take(own);
	held_await(NESTED);
	if (own + 1 < NESTED)
		pthread_mutex_lock(&mutexes[own + 1]);
	for (;;)
		sleep_ns(5 * NAP_NS); /* seldom on a CPU while its wait is looked up */
}

static void nested(void)
{
	static struct subject threads[NESTED];
	static const char *const names[NESTED] = {"chain_0", "chain_1", "chain_2", "chain_3",
						  "chain_4", "chain_5", "chain_6", "chain_7"};
	char chain[512] = "chain_7", longer[512];

	for (size_t i = 0; i < NESTED; i++)
		subject_start(&threads[i], names[i], nest, (void *)i);
	for (size_t i = NESTED - 1; i--;) {
		await_state(getpid(), threads[i].tid, "S", SYS_futex);
		snprintf(longer, sizeof(longer), "%s mutex> %.400s", names[i], chain);
		memcpy(chain, longer, sizeof(chain));
		victim_add(threads[i].tid, threads[i + 1].tid, "%s", chain);
	}
	pid_add(getpid());
}

/* Number of threads of a chain that is so long that only the last of them have a root. */
#define LONG 10000
#define LONG_STACK 32768

static pthread_mutex_t long_mutexes[LONG + 1];
static pid_t long_tids[LONG];

static void *long_wait(void *which)
{
	size_t own = (size_t)which;

	prctl(PR_SET_NAME, "chain_long");
	pthread_mutex_lock(&long_mutexes[own]);
	__atomic_store_n(&long_tids[own], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	pthread_mutex_lock(&long_mutexes[own + 1]);
	return NULL;
}

static void long_hold(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&long_mutexes[LONG]);
	stay();
}

/* Starts at the end of the chain, so that each thread finds the next one's mutex taken. */
static void ten_thousand(void)
{
	static struct subject holder;
	pthread_attr_t attributes;
	pthread_t thread;

	limits_raise();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, LONG_STACK);
	subject_start(&holder, "chain_holder", long_hold, NULL);
	await_state(getpid(), holder.tid, "S", NR_ANY);
	for (size_t i = LONG; i--;) {
		if (pthread_create(&thread, &attributes, long_wait, (void *)i))
			unready("no 10000 threads here");
		while (!__atomic_load_n(&long_tids[i], __ATOMIC_ACQUIRE))
			sched_yield();
	}
	await_state(getpid(), long_tids[0], "S", SYS_futex);
	victim_add(long_tids[0], long_tids[1], "chain_long mutex> * mutex> chain_long...");
	victim_add(long_tids[LONG - 2], long_tids[LONG - 1],
		   "chain_long mutex> chain_long mutex> chain_holder");
	pid_add(getpid());
}

static void take_both(void *which)
{
	size_t own = (size_t)which;

	mutex_take(own);
	held_await(2);
	pthread_mutex_lock(&mutexes[1 - own]);
}

static void deadlock(void)
{
	static struct subject a, b;

	subject_start(&a, "chain_dead_a", take_both, (void *)0);
	subject_start(&b, "chain_dead_b", take_both, (void *)1);
	await_state(getpid(), a.tid, "S", SYS_futex);
	await_state(getpid(), b.tid, "S", SYS_futex);
	victim_add(a.tid, b.tid, "chain_dead_a mutex> chain_dead_b mutex> chain_dead_a DEADLOCK");
	victim_add(b.tid, a.tid, "chain_dead_b mutex> chain_dead_a mutex> chain_dead_b DEADLOCK");
	pid_add(getpid());
}

static void mutexes_make_pi(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	if (pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT))
		unready("no priority inheritance here");
	for (size_t i = 0; i < NESTED; i++)
		pthread_mutex_init(&mutexes[i], &attributes);
}

static void nested_pi(void)
{
	mutexes_make_pi();
	nested();
}

/* Waits as a process without rights for a PI futex in shared memory, with the id of a thread of
 * root's in the futex word that has nothing to do with it: this one. */
static void lie(const struct part *part)
{
	uint32_t *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)part;
	if (word == MAP_FAILED || setgid(NOBODY) || setuid(NOBODY))
		die("setuid");
	*word = (uint32_t)getppid();
	syscall(SYS_futex, word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void hostile(void)
{
	pid_t liar = part_start(&(struct part){"chain_liar", lie, -1, -1});

	await_state(liar, liar, "S", SYS_futex);
	victim_add(liar, getpid(), "*");
}

/* Takes turns: the mutex changes hands every few ms, and waiters wait for a thread in a nap. */
static void take_turns(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&mutexes[0]);
		sleep_ns(2 * NS_PER_MS);
		pthread_mutex_unlock(&mutexes[0]);
	}
}

static void turns(void)
{
	for (int i = 0; i < 8; i++) {
		subject_start(&waiters[i], "chain_turn", take_turns, NULL);
		victim_add(waiters[i].tid, 0, "chain_turn mutex> chain_turn*");
	}
	pid_add(getpid());
}

/* Workers with a queue each: no thread holds what they wait for. */
#define WORKERS 4

static struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	int jobs;
} queues[WORKERS];

static void queue_work(void *of)
{
	struct queue *queue = of;

	pthread_mutex_lock(&queue->mutex);
	for (;;) {
		while (!queue->jobs)
			pthread_cond_wait(&queue->filled, &queue->mutex);
		queue->jobs = 0;
	}
}

static void queues_fill(void *unused)
{
	(void)unused;
	for (;;) {
		sleep_ns(NAP_NS);
		for (int i = 0; i < WORKERS; i++) {
			pthread_mutex_lock(&queues[i].mutex);
			queues[i].jobs++;
			pthread_mutex_unlock(&queues[i].mutex);
			pthread_cond_signal(&queues[i].filled);
		}
	}
}

static void queues_make(int fillers, const char *chain)
{
	static struct subject filling[2];

	for (int i = 0; i < fillers; i++)
		subject_start(&filling[i], "chain_filler", queues_fill, NULL);
	for (int i = 0; i < WORKERS; i++) {
		subject_start(&waiters[i], "chain_worker", queue_work, &queues[i]);
		victim_add(waiters[i].tid, fillers == 1 ? filling[0].tid : 0, "%s", chain);
	}
	pid_add(getpid());
	sleep_ns(10 * NAP_NS);
}

static void queue(void)
{
	queues_make(1, "chain_worker waker> chain_filler*");
}

static void queue_of_two(void)
{
	queues_make(2, "chain_worker");
}

const struct chain_row lock_chains[] = {
	{"mutex_nap", mutex_nap},
	{"mutex_spin", mutex_spin},
	{"mutex_sync", mutex_sync},
	{"mutex_queue", mutex_queue},
	{"nested", nested},
	{"nested_pi", nested_pi},
	{"ten_thousand", ten_thousand},
	{"deadlock", deadlock},
	{"turns", turns},
	{"hostile", hostile},
	{"queue", queue},
	{"queue_of_two", queue_of_two},
	{0},
};
