/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads beside the main thread, which alone takes signals, except SIGSYS. */
#ifndef TSNAP_BASE_THREAD_H
#define TSNAP_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Signals between the keeper, the worker's guard and its main thread (keeper/keeper.h): */
#define THREAD_HOLD_SIGNAL SIGUSR1 /* the main thread must not go on */
#define THREAD_SAVE_SIGNAL SIGUSR2 /* the worker is given up: the guard saves what was sampled */
#define THREAD_LOST_SIGNAL SIGALRM /* the keeper was killed */

/* Starts a thread with all signals blocked except SIGSYS; the caller joins it. 0 or -errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of);

#endif
