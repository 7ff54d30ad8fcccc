/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known calls of known functions, with known arguments and results, and known USDT probes, for
 * --probe. */
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

struct probed {
	long calls, nap_ms, spin_ms, depth, hot;
	int64_t took_ns, kept;
	char name[301];
	jmp_buf back;
};

#ifdef __clang__
#define PROBED __attribute__((noinline))
#else /* gcc makes copies with other names for arguments that are always the same */
#define PROBED __attribute__((noinline, noclone))
#endif

/* Functions that are not static keep their names and their arguments in registers; no call is the
 * last thing that they do. */
int64_t probed_nap(int64_t nap_ns, int signed_number, uint64_t bytes);
int probed_nested(int depth);
void probed_left(struct probed *probed);
void probed_hot(void);
void probed_name(const char *name);
void probed_both(int64_t nap_ns, int64_t spin_ns);
void probed_begin(const char *text, long number);
void probed_end(void);

/* Returns bytes, or -1 if they are 0. */
PROBED int64_t probed_nap(int64_t nap_ns, int signed_number, uint64_t bytes)
{
	sleep_ns(nap_ns);
	__asm__ volatile("" : : "r"(signed_number));
	return bytes ? (int64_t)bytes : -1;
}

PROBED int probed_nested(int depth)
{
	int below = 0;

	sleep_ns(NS_PER_MS);
	if (depth)
		below = probed_nested(depth - 1);
	__asm__ volatile("");
	return below + 1;
}

/* Is left by longjmp(3). */
PROBED void probed_left(struct probed *probed)
{
	__asm__ volatile("");
	longjmp(probed->back, 1);
}

PROBED void probed_hot(void)
{
	__asm__ volatile("");
}

/* A USDT probe, as <sys/sdt.h> makes one; semaphore: its name, or 0. */
#define USDT(name, semaphore, arguments, ...)                                               \
	__asm__ volatile(                                                                   \
		"990: nop\n"                                                                \
		".pushsection .note.stapsdt, \"\", \"note\"\n"                              \
		".balign 4\n"                                                               \
		".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
		"991: .asciz \"stapsdt\"\n"                                                 \
		"992: .balign 4\n"                                                          \
		"993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                         \
		".asciz \"probed\"\n"                                                       \
		".asciz \"" name "\"\n"                                                     \
		".asciz \"" arguments "\"\n"                                                \
		"994: .balign 4\n"                                                          \
		".popsection\n"                                                             \
		".ifndef _.stapsdt.base\n"                                                  \
		".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
		".weak _.stapsdt.base\n"                                                    \
		".hidden _.stapsdt.base\n"                                                  \
		"_.stapsdt.base: .space 1\n"                                                \
		".size _.stapsdt.base, 1\n"                                                 \
		".popsection\n"                                                             \
		".endif\n"                                                                  \
		:                                                                           \
		: __VA_ARGS__)

/* How many want the probe `step`: the kernel counts them, and a program without any saves the
 * trouble. */
volatile unsigned short probed_step_semaphore __attribute__((section(".probes")));
static volatile int64_t probed_squares[8];
static volatile short probed_last;

/* The number, its square, -7 and a text: at one place in registers, at the other in memory. */
static void probed_step(int number, const char *name)
{
	int64_t square = (int64_t)number * number;
	volatile int kept = number;
	long at = number & 7;

	probed_squares[at] = square;
	probed_last = (short)number;
	if (number & 1 && probed_step_semaphore)
		USDT("step", "probed_step_semaphore", "-4@%0 8@%1 -8@%2 8@%3", "r"(number),
		     "r"(square), "n"(-7), "r"(name));
	else if (probed_step_semaphore)
		USDT("step", "probed_step_semaphore", "-4@%0 8@%1 -8@%2 8@%3", "m"(kept),
		     "m"(probed_squares[at]), "n"(-7), "m"(name));
	USDT("last", "0", "-2@%0 4@%1", "m"(probed_last), "n"(0xfffffffe));
}

PROBED void probed_name(const char *name)
{
	__asm__ volatile("" : : "r"(name));
}

/* Sleeps, and then takes that much CPU time. */
PROBED void probed_both(int64_t nap_ns, int64_t spin_ns)
{
	int64_t until_ns;

	sleep_ns(nap_ns);
	until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + spin_ns;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

static void probed_work(void *data)
{
	static const char *const names[] = {"alpha", "beta", ""};

	struct probed *probed = data;
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	/* volatile: longjmp(3) comes back here */
	for (volatile long i = 0; i < probed->calls; i++) {
		if (!setjmp(probed->back))
			probed_left(probed);
		probed->kept += probed_nap(probed->nap_ms * NS_PER_MS, (int)i - 5,
					   i % 10 ? 1ull << i % 10 : 0);
		probed_name(probed->name);
		probed_step((int)i - 5, names[i % 3]);
	}
	for (long i = 0; i < probed->calls && probed->spin_ms; i++)
		probed_both(probed->nap_ms * NS_PER_MS, probed->spin_ms * NS_PER_MS);
	probed->took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	if (probed->depth)
		probed_nested((int)probed->depth - 1);
	for (long i = 0; i < probed->hot; i++)
		probed_hot();
}

static void probed_run(void)
{
	struct probed probed = {
		.calls = option_number("calls", 100),
		.nap_ms = option_number("nap_ms", 2),
		.spin_ms = option_number("spin_ms", 0),
		.depth = option_number("depth", 0),
		.hot = option_number("hot", 0),
	};
	struct worker one;
	char text[64];

	memset(probed.name, 'x', sizeof(probed.name) - 1);
	worker_start(&one, "probed", probed_work, &probed);
	ready_begin(one.subject.tid, getpid());
	line_end();
	while (hold_line(text, sizeof(text))) {
		worker_go(&one);
		worker_await(&one);
		line_begin("done");
		line_add("took_ns", "%lld", (long long)probed.took_ns);
		line_add("wanted", "%u", probed_step_semaphore);
		line_end();
	}
}

PROBED void probed_begin(const char *text, long number)
{
	__asm__ volatile("" : : "r"(text), "r"(number));
}

PROBED void probed_end(void)
{
	__asm__ volatile("");
}

/* Sleeps in a call whose third argument is that number. */
static void number_sleep(unsigned int number, int64_t ns)
{
	struct timespec timeout = {ns / (1000 * NS_PER_MS), ns % (1000 * NS_PER_MS)};
	unsigned int word = number;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, number, ns ? &timeout : NULL, NULL, 0);
}

/* Its sleeps have a number, and the context of that number but for 0, which has none. */
static void held_sleeps(void *unused)
{
	(void)unused;
	for (unsigned int number = 1;; number++) {
		char text[64];

		snprintf(text, sizeof(text), "thread %d, job %u", (int)gettid_now(), number);
		probed_begin(text, number);
		number_sleep(number, 7 * NS_PER_MS);
		probed_end();
		number_sleep(0, 5 * NS_PER_MS);
	}
}

static void spin(int64_t ns)
{
	int64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

static void held_spins(void *unused)
{
	(void)unused;
	probed_begin("spins", 1);
	for (;;)
		spin(NS_PER_MS);
}

static void held_halves(void *unused)
{
	(void)unused;
	for (;;) {
		probed_begin("half", 1);
		spin(50000);
		probed_end();
		spin(50000);
	}
}

static void held_lost(void *unused)
{
	(void)unused;
	probed_begin("lost", 1);
}

static void held_fresh(void *unused)
{
	(void)unused;
	number_sleep(0, 0);
}

/* Has the next thread that is made get a tid. */
static void tid_next(pid_t tid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);

	if (fd < 0)
		return;
	dprintf(fd, "%d", (int)tid - 1);
	close(fd);
}

/* Threads whose context is never ended by a probe: threads that end, of whose ids others take some,
 * and one that executes another program. */
static void held_lose(struct subject *fresh, long count, long *reused)
{
	for (long i = 0; i < count; i++) {
		struct subject lost;

		subject_start(&lost, "held_lost", held_lost, NULL);
		pthread_join(lost.thread, NULL);
		tid_next(lost.tid);
		subject_start(&fresh[i], "held_fresh", held_fresh, NULL);
		*reused += fresh[i].tid == lost.tid;
	}
	if (child_fork())
		return;
	probed_begin("executed", 1);
	execlp("sleep", "held_executed", "1000", (char *)NULL);
	_exit(1);
}

static void held_run(void)
{
	static const struct {
		const char *name;
		void (*fn)(void *unused);
	} rows[] = {{"held_sleeps", held_sleeps},
		    {"held_sleeps", held_sleeps},
		    {"held_spins", held_spins},
		    {"held_halves", held_halves}};
	enum { FRESH = 20 };
	static struct subject subjects[sizeof(rows) / sizeof(rows[0])], fresh[FRESH];
	long reused = 0;
	char text[64];

	ready_begin(gettid_now(), getpid());
	line_end();
	while (hold_line(text, sizeof(text))) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			subject_start(&subjects[i], rows[i].name, rows[i].fn, NULL);
		held_lose(fresh, FRESH, &reused);
		line_begin("done");
		line_add("reused", "%ld", reused);
		line_end();
	}
}

const struct workload probed_workloads[] = {
	{"held", "",
	 "at a line read: threads between probed_begin and probed_end, whose sleeps in futex have "
	 "the number of their context as third argument, 0 for none; and some that never end one",
	 held_run},
	{"probed", "calls=N nap_ms=N spin_ms=N depth=N hot=N",
	 "for each line read: so many calls of probed_nap and probed_left and USDT probes, a call "
	 "of "
	 "probed_nested of that depth, and calls of probed_hot",
	 probed_run},
	{0},
};
