/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper/keeper_loss.h"
#include "keeper/keeper.h"
#include "base/thread.h"
#include "keeper/terminal_rescue.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define END_S 5 /* time in which the main thread must have ended the process */

static atomic_bool lost;

static void *loss_watch(void *of)
{
	const struct timespec end = {END_S, 0};
	sigset_t wanted;
	int number;

	(void)of;
	/* also in this thread: a change of its user takes the signal from the main thread */
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	sigemptyset(&wanted);
	sigaddset(&wanted, THREAD_LOST_SIGNAL);
	thread_rest(true);
	sigwait(&wanted, &number);
	thread_rest(false);
	lost = true;
	kill(getpid(), SIGTERM);
	nanosleep(&end, NULL);
	terminal_rescue();
	raise(THREAD_LET_GO_SIGNAL);
	return NULL;
}

void keeper_loss_watch(void)
{
	pthread_t thread;
	sigset_t wanted;

	if (!keeper_progress()->worker_pid)
		return;
	sigemptyset(&wanted);
	sigaddset(&wanted, THREAD_LOST_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &wanted, NULL);
	prctl(PR_SET_PDEATHSIG, THREAD_LOST_SIGNAL);
	if (thread_begin(&thread, loss_watch, NULL))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		pthread_detach(thread);
}

bool keeper_is_lost(void)
{
	return lost;
}
