/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fake_go THREADS NAP_MS: looks like a program of Go 1.24 whose threads sleep, wake up and sleep
 * again, and lies in all that tsnap reads of one. Prints "ready TID" of its first thread and runs
 * until standard input ends. x86-64 only.
 *
 * Each thread has a goroutine at its place. Its labels are lists without an end, of a size that is
 * not there, of texts that are not there, of memory without access, of themselves; the struct m
 * leads to other goroutines, which lead back. A thread changes all of it as fast as it can, with
 * the number of goroutines, and with stops of the collector at a place that moves. If started by
 * root, it gives up its rights.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define STACK_BYTES (128 << 10)
#define TEXT_BYTES (1 << 20)
#define LIES 8
#define WORDS 64
#define LABELS 45 /* word of a g, as the code below says: 0x168 */
#define MEMSTATS 8000
#define PAUSES 256

__attribute__((section(".go.buildinfo"), used)) static const char build[64] =
	"\xff Go buildinf:\x08\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08go1.24.0";

/* the one thread-local variable of the file: at -8 from the thread pointer */
static __thread volatile uint64_t own;

static uint64_t *volatile list __asm__("runtime.allgptr");
static volatile uint64_t count __asm__("runtime.allglen");
static volatile uint64_t memstats[MEMSTATS] __asm__("runtime.memstats");
static volatile uint64_t reasons[64] __asm__("runtime.waitReasonStrings");

__asm__(".text\n"
	".globl \"runtime/pprof.runtime_setProfLabel\"\n"
	".type \"runtime/pprof.runtime_setProfLabel\", @function\n"
	"\"runtime/pprof.runtime_setProfLabel\":\n"
	"	movq %rax, 0x168(%r14)\n"
	"	ret\n"
	".size \"runtime/pprof.runtime_setProfLabel\", . - "
	"\"runtime/pprof.runtime_setProfLabel\"\n");

static char *text;	       /* without a NUL */
static uint64_t *labels[LIES]; /* a list each, with its pairs behind it */
static uint64_t (*routines)[WORDS], (*machines)[WORDS];
static size_t threads;
static long nap_ns;

static void *pages(size_t bytes, int protection)
{
	void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

/* Makes lists of up to three pairs: {pairs, length, capacity}, then {key, bytes, value, bytes}. */
static void lies_make(void)
{
	const uint64_t absent = 0x7f0000001000, closed = (uint64_t)pages(1 << 16, PROT_NONE);

	text = pages(TEXT_BYTES, PROT_READ | PROT_WRITE);
	memset(text, 'x', TEXT_BYTES);
	for (uint64_t i = 0; i < LIES; i++) {
		uint64_t *of = labels[i] = pages(4096, PROT_READ | PROT_WRITE);

		of[0] = (uint64_t)&of[3];
		of[1] = of[2] = 1;
		of[3] = of[5] = (uint64_t)text;
		of[4] = of[6] = 4;
		switch (i) {
		case 1:
			of[1] = INT64_MAX;
			break;
		case 2:
			of[4] = of[6] = UINT64_MAX;
			break;
		case 3:
			of[3] = absent;
			break;
		case 4:
			of[5] = closed;
			of[6] = 1 << 15;
			break;
		case 5:
			of[0] = (uint64_t)of;
			of[1] = 64;
			break;
		case 6:
			of[5] = (uint64_t)text + TEXT_BYTES - 2;
			of[6] = 100;
			break;
		default:
			break;
		}
	}
}

static void routine_make(size_t i)
{
	uint64_t *g = routines[i], *m = machines[i];

	g[0] = (uint64_t)text;
	g[1] = (uint64_t)text + TEXT_BYTES;
	g[6] = (uint64_t)m;
	g[9] = (uint64_t)g;
	g[LABELS] = (uint64_t)labels[i % LIES];
	/* every second thread is on its own stack: the goroutine is another one */
	m[0] = i % 2 ? (uint64_t)g : (uint64_t)text;
	for (size_t word = 20; word < 28; word++)
		m[word] = (uint64_t)(word % 3 ? routines[(i + word) % threads] : g);
}

/* Writes what looks like that many stops of the collector. */
static void stops_make(size_t at, uint64_t number)
{
	volatile uint64_t *stops = memstats + at;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < PAUSES; i++) {
		sum += stops[2 + i] = i < number ? 1000000 * number : 0;
		stops[2 + PAUSES + i] = i < number ? 1800000000000000000 + i : 0;
	}
	stops[0] = number ? stops[2 + PAUSES + (number - 1) % PAUSES] : 0;
	stops[1] = sum;
	stops[2 + 2 * PAUSES] = number;
}

static void *change(void *data)
{
	for (uint64_t round = 0;; round++) {
		size_t i = round % threads;

		routines[i][LABELS] = (uint64_t)labels[round / 7 % LIES];
		routines[i][9] = (uint64_t)routines[round % 5 ? i : 0];
		machines[i][20 + round % 8] = (uint64_t)routines[round / 3 % threads];
		labels[5][1] = round;
		count = round % 1000 ? count + 1 : round % 3000 ? UINT64_MAX : round % 100000;
		if (round % 50 == 0)
			stops_make(round / 50 % 100 * 64, round / 5000 % 250);
		if (round % 1000 == 0)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	return data;
}

static void *nap(void *data)
{
	own = (uint64_t)data;
	for (;;)
		nanosleep(&(struct timespec){0, nap_ns}, NULL);
	return data;
}

static void start(void *(*run)(void *), void *data)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&thread, &attributes, run, data))
		exit(1);
}

int main(int argc, char **argv)
{
	char byte;

	if (argc != 3 || build[0] != '\xff')
		return 2;
	rights_drop();
	threads = (size_t)atol(argv[1]);
	nap_ns = atol(argv[2]) * 1000000;
	routines = pages(threads * sizeof(*routines), PROT_READ | PROT_WRITE);
	machines = pages(threads * sizeof(*machines), PROT_READ | PROT_WRITE);
	list = (uint64_t *)routines;
	reasons[0] = (uint64_t)list;
	lies_make();
	for (size_t i = 0; i < threads; i++) {
		routine_make(i);
		start(nap, routines[i]);
	}
	start(change, NULL);
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
