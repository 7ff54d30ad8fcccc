/* SPDX-License-Identifier: GPL-2.0-or-later */
/* deep THREADS CALLS PERIOD_US: starts THREADS threads that sleep in deep_sleep(), called by CALLS
 * nested deeper(), called by deep_thread(): for ever (0), or PERIOD_US again and again. Prints
 * "ready" when all are on their way there; ends when standard input does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../stack/chains.h"

static long calls;
static useconds_t period_us;

LINK static void deep_sleep(void)
{
	if (!period_us)
		pause();
	usleep(period_us);
	LINK_END();
}

LINK static void deeper(long left)
{
	if (left > 1)
		deeper(left - 1);
	else
		deep_sleep();
	LINK_END();
}

LINK static void *deep_thread(void *unused)
{
	for (;;)
		deeper(calls);
	return unused;
}

int main(int argc, char **argv)
{
	long threads = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
	pthread_attr_t small;
	pthread_t thread;
	char c;

	calls = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
	period_us = argc == 4 ? (useconds_t)strtoul(argv[3], NULL, 10) : 0;
	if (threads < 1 || calls < 1) {
		fprintf(stderr, "usage: deep THREADS CALLS PERIOD_US\n");
		return 2;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	while (threads--)
		if (pthread_create(&thread, &small, deep_thread, NULL)) {
			fprintf(stderr, "deep: a thread can't be made\n");
			return 1;
		}
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) > 0;
}
