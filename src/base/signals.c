/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop_signal;
static void (*volatile before_end)(void);

void signals_before_end(void (*function)(void))
{
	before_end = function;
}

static void on_signal(int number)
{
	if (stop_signal) {
		if (before_end)
			before_end();
		signal(number, SIG_DFL);
		raise(number);
	}
	stop_signal = number;
}

void signals_set(void)
{
	/* without SA_RESTART: a wait for the next tick or row ends with EINTR */
	struct sigaction action = {.sa_handler = on_signal}, before;

	sigaction(SIGINT, &action, NULL); /* in a script's background job, too, which ignores it */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, NULL, &before);
	if (before.sa_handler != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &action, NULL);
}

bool signals_stop(void)
{
	return stop_signal != 0;
}
