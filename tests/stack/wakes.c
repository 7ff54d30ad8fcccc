/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that sleeps in a known chain of calls, and one that wakes it from another chain, and
 * then sleeps there for most of the time. "ready SLEEPER WAKER": their tids. */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chains.h"

#define PERIOD_US 50000

static int ends[2];
static long sleeper_tid;

LINK static void sleep_inner(void)
{
	char byte;

	while (read(ends[0], &byte, 1) > 0)
		LINK_END();
}

LINK static void *sleep_outer(void *nothing)
{
	__atomic_store_n(&sleeper_tid, (long)syscall(SYS_gettid), __ATOMIC_RELEASE);
	sleep_inner();
	LINK_END();
	return nothing;
}

LINK static void wake_inner(void)
{
	while (write(ends[1], "", 1) == 1)
		usleep(PERIOD_US);
}

LINK static void *wake_outer(void *nothing)
{
	while (!__atomic_load_n(&sleeper_tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	printf("ready %ld %ld\n", sleeper_tid, (long)syscall(SYS_gettid));
	fflush(stdout);
	wake_inner();
	LINK_END();
	return nothing;
}

int main(void)
{
	pthread_t sleeper, waker;
	char byte;

	if (pipe(ends) || pthread_create(&sleeper, NULL, sleep_outer, NULL) ||
	    pthread_create(&waker, NULL, wake_outer, NULL))
		return 1;
	return read(STDIN_FILENO, &byte, 1) != 0;
}
