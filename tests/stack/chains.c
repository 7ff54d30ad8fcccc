/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "chains.h"

#define DEEP 200
#define SHALLOW 3
#define PAGE 4096

static const char *chain_text;
static volatile long sink;
static volatile int spins;

static void tell_ready(void)
{
	printf("ready %ld %s\n", (long)syscall(SYS_gettid), chain_text);
	fflush(stdout);
}

LINK void sleep_here(void)
{
	char end;

	tell_ready();
	while (spins)
		sink++;
	while (read(STDIN_FILENO, &end, 1) > 0)
		LINK_END();
	_exit(0);
}

LINK static long recurse(long depth)
{
	long below;

	if (!depth) {
		sleep_here();
		return 1;
	}
	below = recurse(depth - 1);
	LINK_END();
	return below + depth;
}

LINK static void recursion(void)
{
	sink = recurse(DEEP - 1);
}

/* Deeper than a walk keeps frames. */
LINK static void deep(void)
{
	sink = recurse(2000);
}

#if defined(__GLIBC__) && defined(__LP64__)
/* Runs on a stack of its own, as coroutines do: it returns to a function that never called it. */
LINK static void in_context(void)
{
	sleep_here();
	LINK_END();
}

LINK static void context(void)
{
	static ucontext_t before, own;

	getcontext(&own);
	own.uc_stack.ss_sp = malloc(65536);
	own.uc_stack.ss_size = 65536;
	own.uc_link = &before;
	makecontext(&own, in_context, 0);
	swapcontext(&before, &own);
	LINK_END();
}
#endif

/* Has a frame whose size is known only at run time: the unwind table must find it by the frame
 * pointer. */
LINK static void frame_grown(long bytes)
{
	char *room = alloca((size_t)bytes);

	memset(room, 1, (size_t)bytes);
	sleep_here();
	sink = room[bytes / 2];
}

LINK static void grown(void)
{
	frame_grown(sink + 5000);
	LINK_END();
}

/* Has a frame larger than the copy of the stack's top. */
LINK static void frame_large(void)
{
	char room[200000];

	memset(room, 1, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
	sleep_here();
	__asm__ volatile("" ::"r"(room) : "memory");
}

LINK static void large(void)
{
	frame_large();
	LINK_END();
}

/* Has pages in its frame that are not in memory, as those that were never used; the frame is
 * smaller than the copy of the stack's top. */
LINK static void frame_unused(void)
{
	char room[50000];

	memset(room, 1, sizeof(room));
	madvise(room + 2 * PAGE - (uintptr_t)room % PAGE, 8 * PAGE, MADV_DONTNEED);
	__asm__ volatile("" ::"r"(room) : "memory");
	sleep_here();
	__asm__ volatile("" ::"r"(room) : "memory");
}

LINK static void unused(void)
{
	frame_unused();
	LINK_END();
}

LINK static long jumps(long number)
{
	return recurse(number); /* a tail call: this function has no frame then */
}

LINK static void jumped(void)
{
	sink = jumps(SHALLOW - 1);
}

LINK static void handler(int number)
{
	sink = number;
	sleep_here();
	LINK_END();
}

LINK static void interrupted(void)
{
	/* no call: the address of the interrupt is not a return address */
	__asm__ volatile("1: cmpl $0, %0\n\tje 1b" : : "m"(sink) : "memory", "cc");
}

static void *interrupts(void *thread)
{
	usleep(100000);
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

LINK static void signalled(void)
{
	struct sigaction action = {.sa_handler = handler};
	pthread_t self = pthread_self(), other;

	sink = 0;
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, interrupts, &self);
	interrupted();
	LINK_END();
}

/* Sends itself a signal whose handler has a stack of its own, below or above the thread's. */
LINK static void signalled_aside(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	stack_t aside = {.ss_sp = malloc(65536), .ss_size = 65536};

	sink = 0;
	sigaltstack(&aside, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	LINK_END();
}

#if defined(__x86_64__)
#define INTERRUPTED_AT REG_RIP
#define HAS_FRAME(registers) 1
#else
#define INTERRUPTED_AT REG_EIP
/* The vdso of some kernels has no unwind tables for 32 bits, but frame pointers, which are lost
 * before a function has made its frame; its caller's are further away than that. */
#define HAS_FRAME(registers) ((unsigned long)((registers)[REG_EBP] - (registers)[REG_ESP]) < 128)
#endif
#define VDSO_BYTES 8192 /* greater than all of its code */

/* Sleeps as soon as the interrupted code is the kernel's in this process. */
LINK static void handler_in_vdso(int number, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);

	(void)number;
	(void)info;
	if ((unsigned long)at->uc_mcontext.gregs[INTERRUPTED_AT] - vdso < VDSO_BYTES &&
	    HAS_FRAME(at->uc_mcontext.gregs))
		sleep_here();
	LINK_END();
}

static void *interrupts_always(void *thread)
{
	for (;;) {
		usleep(1000);
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	}
	return NULL;
}

LINK static void timed(void)
{
	struct sigaction action = {.sa_sigaction = handler_in_vdso, .sa_flags = SA_SIGINFO};
	pthread_t self = pthread_self(), other;
	struct timespec now;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, interrupts_always, &self);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		LINK_END();
	}
}

LINK static int order(const void *a, const void *b)
{
	sleep_here();
	return *(const int *)a - *(const int *)b;
}

LINK static void sorted(void)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof(numbers[0]), order);
	sink = numbers[0];
}

/* Sleeps in vfork(2) with the return address in a register, because the child takes that of the
 * stack. */
LINK static void vforked(void)
{
	pid_t child = vfork();
	char end;

	if (!child) {
		printf("ready %ld %s\n", (long)getppid(), chain_text);
		fflush(stdout);
		while (read(STDIN_FILENO, &end, 1) > 0)
			LINK_END();
		_exit(0);
	}
	sink = child;
}

/* The last instruction of a caller may be its call: the return address is then in another
 * function. */
LINK __attribute__((noreturn)) static void ends(void)
{
	sleep_here();
	_exit(1);
}

LINK __attribute__((noreturn)) static void ended(void)
{
	ends();
}

LINK static long registers_all(long a, long b, long c, long d)
{
	long e = a * b, f = b * c, g = c * d, h = d * a;

	sleep_here();
	return a + b * c - d + e * f - g * h;
}

LINK static void registers_kept(void)
{
	long a = sink + 1, b = sink + 2, c = sink + 3, d = sink + 4, e = sink + 5;
	long got = registers_all(a, b, c, d);

	sink = got + a * b * c * d * e;
}

LINK static void *thread_begin(void *nothing)
{
	recurse(SHALLOW - 1);
	LINK_END();
	return nothing;
}

LINK static void threaded(void)
{
	pthread_t other;

	pthread_create(&other, NULL, thread_begin, NULL);
	pthread_join(other, NULL);
}

LINK static void called_back(void)
{
	sleep_here();
	LINK_END();
}

LINK static void library(void)
{
	void *opened = dlopen(getenv("CHAINS_LIBRARY"), RTLD_NOW);
	void (*library_call)(void (*)(void)) = NULL;

	if (opened)
		*(void **)&library_call = dlsym(opened, "library_call");
	if (!library_call) {
		fprintf(stderr, "chains: %s\n", dlerror());
		_exit(1);
	}
	library_call(called_back);
	LINK_END();
}

LINK static void left_inner(void)
{
	usleep(50);
	LINK_END();
}

LINK static void left(void)
{
	left_inner();
	LINK_END();
}

/* Sleeps in another call, so that the kernel's frames show the function. */
LINK static void right_inner(void)
{
	const struct timespec moment = {.tv_nsec = 50000};

	ppoll(NULL, 0, &moment, NULL);
	LINK_END();
}

LINK static void right(void)
{
	right_inner();
	LINK_END();
}

/* Sleeps in two functions alternately, each time for a moment. */
LINK static void alternates(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};

	tell_ready();
	while (!poll(&input, 1, 0)) {
		left();
		right();
	}
}

/* A leaf without a frame: where it faults, the return address is at the stack pointer, as in the C
 * library's read(). */
LINK static void touch(volatile char *page)
{
	*page = 1;
}

LINK static void touch_below(volatile char *page)
{
	touch(page);
	LINK_END();
}

/* Sleeps above frames of functions that have returned, which are still in memory. x86-64 before 4.0
 * does not save the stack pointer of a system call: the saved one is that of the page fault before.
 * The first read() goes through the dynamic linker, whose frames overwrite those of the functions.
 */
LINK static void returned(void)
{
	const size_t bytes[] = {0, 0, 1};
	char end, *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

	tell_ready();
	for (int i = 0; i < 3; i++) {
		madvise(page, PAGE, MADV_DONTNEED);
		touch_below(page);
		if (read(STDIN_FILENO, &end, bytes[i]) > 0)
			LINK_END();
	}
	_exit(0);
}

LINK static void burn(long count)
{
	for (long i = 0; i < count; i++)
		sink += i;
}

LINK static void three_parts(void)
{
	burn(30000);
	LINK_END();
}

LINK static void one_part(void)
{
	burn(10000);
	LINK_END();
}

/* Runs three quarters of its time in one function, a quarter in another. */
LINK static void shares(void)
{
	tell_ready();
	for (;;) {
		three_parts();
		one_part();
	}
}

LINK static long small(long number)
{
	return number ^ sink;
}

LINK static long smaller(long number)
{
	long got = small(number + 1);

	LINK_END();
	return got;
}

/* Runs most of its time at the beginning and end of functions, and on its way into a library. */
LINK static void calls(void)
{
	unsigned int seed = 1;

	tell_ready();
	for (;;) {
		sink = smaller(sink);
		sink += rand_r(&seed);
	}
}

#define REPEAT_5(text) text text text text text
#define REPEAT_200(text) REPEAT_5(REPEAT_5(REPEAT_5(text))) REPEAT_5(REPEAT_5(text text text))

static const struct {
	const char *name, *chain;
	void (*run)(void);
} chains[] = {
	{"recursion", "sleep_here " REPEAT_200("recurse ") "recursion main", recursion},
	{"deep", "sleep_here recurse recurse * [...] recurse * recurse deep main", deep},
#if defined(__GLIBC__) && defined(__LP64__)
	{"context", "sleep_here in_context", context},
#endif
	{"grown", "sleep_here frame_grown grown main", grown},
	{"large", "sleep_here frame_large large main", large},
	{"unused", "sleep_here frame_unused unused main", unused},
	{"jumped", "sleep_here recurse recurse recurse jumped main", jumped},
	{"signalled", "sleep_here handler <signal> interrupted signalled main", signalled},
	{"signalled_aside", "sleep_here handler <signal> * signalled_aside main", signalled_aside},
	{"timed", "sleep_here handler_in_vdso <signal> * timed main", timed},
	{"vforked", "vforked main", vforked},
	{"sorted", "sleep_here order * sorted main", sorted},
	{"ended", "sleep_here ends ended main", ended},
	{"registers_kept", "sleep_here registers_all registers_kept main", registers_kept},
	{"alternates", "alternates main", alternates},
	{"returned", "returned main", returned},
	{"threaded", "sleep_here recurse recurse recurse thread_begin", threaded},
	{"library", "sleep_here called_back library_inner library_call library main", library},
};

/* Chains that never sleep. */
static const struct {
	const char *name, *chain;
	void (*run)(void);
} runners[] = {
	{"shares", "shares main", shares},
	{"calls", "calls main", calls},
};

#define RUNNER_COUNT (sizeof(runners) / sizeof(runners[0]))
#define CHAIN_COUNT (sizeof(chains) / sizeof(chains[0]))

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < RUNNER_COUNT; i++)
		if (!strcmp(argv[1], runners[i].name)) {
			chain_text = runners[i].chain;
			runners[i].run();
			LINK_END();
		}
	spins = argc > 2 && !strcmp(argv[2], "spin");
	for (size_t i = 0; i < CHAIN_COUNT; i++) {
		if (argc < 2) {
			puts(chains[i].name);
		} else if (!strcmp(argv[1], chains[i].name)) {
			chain_text = chains[i].chain;
			chains[i].run();
			LINK_END();
		}
	}
	return argc > 1;
}
