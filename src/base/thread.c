/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/thread.h"
#include "base/memory.h"

#include <stdlib.h>

#define STACK_BYTES (1u << 20)

struct begun {
	void *(*run)(void *of);
	void *of;
};

static _Atomic int64_t own_busy = 1, *busy = &own_busy;

static void forked(void)
{
	busy = &own_busy;
}

void thread_busy_count(_Atomic int64_t *count)
{
	*count = *busy;
	busy = count;
	pthread_atfork(NULL, NULL, forked);
}

void thread_rest(bool begins)
{
	*busy += begins ? -1 : 1;
}

static void *thread_run(void *of)
{
	const struct begun begun = *(struct begun *)of;
	void *result;

	free(of);
	result = begun.run(begun.of);
	--*busy;
	return result;
}

int thread_begin(pthread_t *thread, void *(*run)(void *of), void *of)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	struct begun *begun;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	/* a fixed size: ulimit -s may be anything */
	pthread_attr_setstacksize(&attributes, STACK_BYTES);

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the sandbox's signal: if blocked it would end the process */
	sigdelset(&all, THREAD_LET_GO_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	begun = memory_get(sizeof(*begun));
	*begun = (struct begun){run, of};
	++*busy;
	err = pthread_create(thread, &attributes, thread_run, begun);
	if (err) {
		--*busy;
		free(begun);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}
