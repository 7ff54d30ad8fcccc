/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads beside the main one, which alone takes signals.
 */
#ifndef TSNAP_BASE_THREAD_H
#define TSNAP_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked, to be joined. 0 or -errno. */
int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of);

#endif
