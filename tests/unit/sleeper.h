/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread of the test itself that sleeps in read(2) on a pipe. */
#ifndef TSNAP_TESTS_SLEEPER_H
#define TSNAP_TESTS_SLEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct sleeper {
	pthread_t thread;
	int ends[2];	    /* ends of the pipe; the thread reads from ends[0] */
	uid_t euid;	    /* effective uid of this thread alone; (uid_t)-1: unchanged */
	volatile pid_t tid; /* 0 until it runs */
};

/* Returns when the thread sleeps. */
void sleeper_start(struct sleeper *sleeper, uid_t euid);
void sleeper_stop(struct sleeper *sleeper);

/* True if the tests run under qemu-user (TSNAP_TEST_EMULATED): /proc then shows the program and the
 * system calls of the emulator. */
bool sleeper_is_emulated(void);

#endif
