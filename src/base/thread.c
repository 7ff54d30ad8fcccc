/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"

#define STACK_BYTES (1u << 20)

int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	/* a fixed size: ulimit -s may be anything */
	pthread_attr_setstacksize(&attributes, STACK_BYTES);

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the sandbox's signal: if blocked it would end the process */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, &attributes, run, of);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}
