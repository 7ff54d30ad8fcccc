/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads beside the main thread, which alone takes signals, except THREAD_LET_GO_SIGNAL and
 * SIGSYS. */
#ifndef TSNAP_BASE_THREAD_H
#define TSNAP_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Signal that ends the process through any thread that still runs (keeper/keeper.h). */
#define THREAD_LET_GO_SIGNAL SIGUSR1
/* Signal that a thread of its own waits for: what was sampled is to be saved (keeper/keeper.h). */
#define THREAD_SAVE_SIGNAL SIGUSR2
/* Signal that a thread of its own waits for: the keeper was killed (keeper/keeper.h). */
#define THREAD_LOST_SIGNAL SIGALRM

/* Starts a thread with all signals blocked except THREAD_LET_GO_SIGNAL and SIGSYS; the caller joins
 * it. 0 or -errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of);

/* Counts in *count the threads of this process that are not at rest, at first the caller: a process
 * that watches this one need not look at threads that only wait for each other, or for time. A
 * child of fork(2) has a count of its own. */
void thread_busy_count(_Atomic int64_t *count);

/* Marks the begin or the end of a wait for other threads, or for time. */
void thread_rest(bool begins);

#endif
