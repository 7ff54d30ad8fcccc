/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads beside the main one, which alone takes signals, but for two.
 */
#ifndef TSNAP_BASE_THREAD_H
#define TSNAP_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Ends the process by any thread that still runs (cli/keeper.h). */
#define THREAD_LET_GO_SIGNAL SIGUSR1

/* Starts a thread with all signals blocked but that one and SIGSYS, to be joined. 0 or -errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of);

/* Counts in *count the threads of this process that are not at rest, the caller at first: whoever
 * watches over the process need not look at threads that only wait for each other, or for time. A
 * child of fork(2) counts for itself. */
void thread_busy_count(_Atomic int64_t *count);

/* Around such a wait. */
void thread_rest(bool begins);

#endif
