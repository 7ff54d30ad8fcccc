/* SPDX-License-Identifier: GPL-2.0-or-later */
/* many_files THREADS CALLS NAP_MS FILE...: threads that call through a function of CALLS of these
 * files, chosen at random, sleep, return, and do so again for ever. Prints "ready TID" of its first
 * thread and stays until standard input ends.
 *
 * If started by root, it gives up its rights first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define CALLS_MAX 400
#define STACK_BYTES (256 << 10)

typedef void hop_function(void *const *next);

static void **hops;
static long hop_count, calls, nap_ms;

static void nap(void *const *next)
{
	const struct timespec time = {nap_ms / 1000, nap_ms % 1000 * 1000000};

	(void)next;
	nanosleep(&time, NULL);
}

static void *wander(void *of)
{
	unsigned int dice = (unsigned int)(long)of;
	void *chain[CALLS_MAX + 1];

	for (;;) {
		for (long i = 0; i < calls; i++)
			chain[i] = hops[rand_r(&dice) % hop_count];
		chain[calls] = (void *)nap;
		((hop_function *)chain[0])(chain + 1);
	}
	return NULL;
}

static void files_open(char *const *paths, long count)
{
	hops = calloc((size_t)count, sizeof(*hops));
	for (long i = 0; hops && i < count; i++) {
		void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			exit(EXIT_FAILURE);
		}
		hops[hop_count++] = dlsym(library, "hop");
	}
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;
	char byte;

	if (argc < 5)
		return 2;
	calls = atol(argv[2]);
	nap_ms = atol(argv[3]);
	if (calls < 1 || calls > CALLS_MAX)
		return 2;
	rights_drop();
	files_open(argv + 4, argc - 4);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (long i = 0; i < atol(argv[1]); i++)
		if (pthread_create(&thread, &small, wander, (void *)(i + 1)))
			return EXIT_FAILURE;
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
