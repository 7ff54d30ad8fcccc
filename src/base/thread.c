/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#include <signal.h>

int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, run, of);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}
