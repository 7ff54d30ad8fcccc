/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known numbers of known system calls. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

struct calls {
	long trivial, opens, bad, naps, nap_ms, shorts, reads, read_ms;
	struct worker answers;
	int64_t nap_ns, read_ns;
};

/* Answers each message some time later. */
static void calls_answer(void *data)
{
	sleep_ns(((struct calls *)data)->read_ms * NS_PER_MS);
}

/* Functions that sleep, two of them, distinguished by their stacks: no call is the last thing they
 * do. */
__attribute__((noinline)) static void nap_long(const struct calls *calls)
{
	sleep_ns(calls->nap_ms * NS_PER_MS);
	__asm__ volatile("");
}

__attribute__((noinline)) static void nap_short(void)
{
	sleep_ns(50000);
	__asm__ volatile("");
}

static void calls_work(void *data)
{
	struct calls *calls = data;
	int64_t start_ns;
	char c;

	for (long i = 0; i < calls->trivial; i++)
		syscall(SYS_getppid);
	for (long i = 0; i < calls->opens; i++)
		syscall(SYS_openat, AT_FDCWD, "/no such directory/file", O_RDONLY);
	for (long i = 0; i < calls->bad; i++)
		syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < calls->naps; i++) {
		nap_long(calls);
		for (long j = 0; j < calls->shorts; j++)
			nap_short();
	}
	calls->nap_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	calls->read_ns = 0;
	for (long i = 0; i < calls->reads; i++) {
		worker_go(&calls->answers);
		start_ns = clock_ns(CLOCK_MONOTONIC);
		if (read(calls->answers.end[0], &c, 1) != 1)
			die("read");
		calls->read_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
	}
}

static void calls_run(void)
{
	struct calls calls = {
		.trivial = option_number("trivial", 1000),
		.opens = option_number("opens", 50),
		.bad = option_number("bad", 7),
		.naps = option_number("naps", 10),
		.nap_ms = option_number("nap_ms", 20),
		.shorts = option_number("shorts", 0),
		.reads = option_number("reads", 10),
		.read_ms = option_number("read_ms", 10),
	};
	struct worker one;
	char text[64];

	worker_start(&one, "calls", calls_work, &calls);
	worker_start(&calls.answers, "answers", calls_answer, &calls);
	ready_begin(one.subject.tid, getpid());
	line_add("tid2", "%d", calls.answers.subject.tid);
	line_add("fd", "%d", calls.answers.end[0]);
	line_end();
	while (hold_line(text, sizeof(text))) {
		worker_go(&one);
		worker_await(&one);
		line_begin("done");
		line_add("nap_ns", "%lld", (long long)calls.nap_ns);
		line_add("read_ns", "%lld", (long long)calls.read_ns);
		line_end();
	}
}

const struct workload call_workloads[] = {
	{"calls", "trivial=N opens=N bad=N naps=N nap_ms=N shorts=N reads=N read_ms=N",
	 "for each line read: so many getppid, openat that fail (ENOENT, EFAULT), naps (behind "
	 "each short ones), "
	 "pipe reads",
	 calls_run},
	{0},
};
