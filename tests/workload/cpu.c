/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that use CPUs, and the switches between them. */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

static void spin(void *cpu)
{
	pin_thread(0, *(long *)cpu);
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static void spin_run(void)
{
	long cpu = option_number("cpu", -1);
	struct subject subject;

	subject_start(&subject, "spin", spin, &cpu);
	await_state(getpid(), subject.tid, "R", NR_ANY);
	ready_begin(subject.tid, getpid());
	line_end();
	hold();
}

static void spin2_run(void)
{
	long cpu = option_number("cpu", last_cpu());
	struct subject one, two;

	subject_start(&one, "spin_one", spin, &cpu);
	subject_start(&two, "spin_two", spin, &cpu);
	await_state(getpid(), one.tid, "R", NR_ANY);
	await_state(getpid(), two.tid, "R", NR_ANY);
	ready_begin(one.tid, getpid());
	line_add("tid2", "%d", two.tid);
	line_add("cpu", "%ld", cpu);
	line_end();
	hold();
}

/* Spends nearly all of its time in the kernel, in read. */
static void spin_kernel(void *cpu)
{
	static char buffer[4 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("/dev/zero");
	pin_thread(0, *(long *)cpu);
	for (;;)
		if (read(fd, buffer, sizeof(buffer)) < 0)
			die("read");
}

static void spin_kernel_run(void)
{
	long cpu = option_number("cpu", -1);
	struct subject subject;

	subject_start(&subject, "spin_kernel", spin_kernel, &cpu);
	await_state(getpid(), subject.tid, "R", NR_ANY);
	ready_begin(subject.tid, getpid());
	ready_call('R', "read", SYS_read);
	line_add("file", "%s", "/dev/zero");
	line_end();
	hold();
}

struct player {
	int from, to;
	long cpu;
	long rounds;
	bool serves;
};

static void play(void *data)
{
	struct player *player = data;
	char ball = 0;

	pin_thread(0, player->cpu);
	if (player->serves && write(player->to, &ball, 1) != 1)
		die("write");
	while (read(player->from, &ball, 1) == 1 && write(player->to, &ball, 1) == 1)
		__atomic_fetch_add(&player->rounds, 1, __ATOMIC_RELAXED);
}

static void pingpong_run(void)
{
	long cpu = option_number("cpu", last_cpu());
	struct player ping, pong;
	struct subject one, two;
	int there[2], back[2];
	int64_t start_ns;

	make_pipe(there);
	make_pipe(back);
	ping = (struct player){back[0], there[1], cpu, 0, true};
	pong = (struct player){there[0], back[1], option_number("cpu2", cpu), 0, false};
	subject_start(&two, "pong", play, &pong);
	await_state(getpid(), two.tid, "S", SYS_read);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	subject_start(&one, "ping", play, &ping);
	ready_begin(one.tid, getpid());
	line_add("tid2", "%d", two.tid);
	line_end();
	hold();
	line_begin("done");
	line_add("rounds", "%ld", __atomic_load_n(&ping.rounds, __ATOMIC_RELAXED));
	line_add("ns", "%lld", (long long)(clock_ns(CLOCK_MONOTONIC) - start_ns));
	line_end();
}

/* Known amounts of everything that is accounted: CPU time, waiting in a run queue for a rival on
 * the same CPU, both kinds of switches, D (parent of vfork) and S. */
struct burst {
	long cpu, cpu_ms, naps, nap_ms, waits, disk_ms, sleep_ms;
	struct worker rival;
	volatile bool rival_stop;
	int64_t cpu_ns, disk_ns, sleep_ns;
};

static void rival(void *data)
{
	struct burst *burst = data;

	while (!burst->rival_stop)
		;
}

/* Waits for a word that never changes. */
static void futex_wait_ns(int64_t ns)
{
	const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	static int word;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
}

static void burst_disk(struct burst *burst)
{
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	int64_t ns = burst->disk_ms * NS_PER_MS;
	pid_t pid = vfork();

	if (!pid) {
		sleep_ns(ns);
		_exit(0);
	}
	burst->disk_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	waitpid(pid, NULL, 0);
}

static void burst_work(void *data)
{
	int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), nap_ns;
	struct burst *burst = data;

	worker_go(&burst->rival);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < burst->cpu_ms * NS_PER_MS)
		;
	burst->rival_stop = true;
	nap_ns = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < burst->naps; i++)
		sleep_ns(burst->nap_ms * NS_PER_MS);
	for (long i = 0; i < burst->waits; i++)
		futex_wait_ns(burst->nap_ms * NS_PER_MS);
	sleep_ns(burst->sleep_ms * NS_PER_MS);
	burst->sleep_ns = clock_ns(CLOCK_MONOTONIC) - nap_ns;
	burst_disk(burst);
	burst->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

static void burst_run(void)
{
	struct burst burst = {
		.cpu = option_number("cpu", last_cpu()),
		.cpu_ms = option_number("cpu_ms", 300),
		.naps = option_number("naps", 50),
		.nap_ms = option_number("nap_ms", 1),
		.waits = option_number("waits", 0),
		.disk_ms = option_number("disk_ms", 150),
		.sleep_ms = option_number("sleep_ms", 100),
	};
	struct worker one;
	char text[64];

	worker_start(&one, "burst", burst_work, &burst);
	worker_start(&burst.rival, "rival", rival, &burst);
	pin_thread(one.subject.tid, burst.cpu);
	pin_thread(burst.rival.subject.tid, burst.cpu);
	ready_begin(one.subject.tid, getpid());
	line_add("tid2", "%d", burst.rival.subject.tid);
	line_end();
	while (hold_line(text, sizeof(text))) {
		burst.rival_stop = false;
		worker_go(&one);
		worker_await(&one);
		worker_await(&burst.rival);
		line_begin("done");
		line_add("cpu_ns", "%lld", (long long)burst.cpu_ns);
		line_add("disk_ns", "%lld", (long long)burst.disk_ns);
		line_add("sleep_ns", "%lld", (long long)burst.sleep_ns);
		line_end();
	}
}

const struct workload cpu_workloads[] = {
	{"spin", "cpu=N", "a thread spins in user mode", spin_run},
	{"spin2", "cpu=N", "two threads spin on one CPU", spin2_run},
	{"spin_kernel", "cpu=N", "a thread spins in the kernel, in read", spin_kernel_run},
	{"pingpong", "cpu=N cpu2=N", "two threads wake each other through pipes", pingpong_run},
	{"burst", "cpu=N cpu_ms=N naps=N nap_ms=N waits=N disk_ms=N sleep_ms=N",
	 "for each line read: known amounts of CPU, run queue, D and S", burst_run},
	{0},
};
