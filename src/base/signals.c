/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/signals.h"
#include "base/clock.h"

#include <stddef.h>

#define REPEATED_NS (200 * NS_PER_MS)

static volatile sig_atomic_t stop_signal;
static volatile int64_t stop_ns;
static void (*volatile before_end)(void);

void signals_before_end(void (*function)(void))
{
	before_end = function;
}

/* True if one signal arrives twice: from the terminal and from the keeper, or from timeout(1) to
 * the process and to its group. No user types so fast. */
static bool is_repeated(void)
{
	int64_t now_ns = clock_monotonic_ns();

	if (stop_signal && now_ns - stop_ns < REPEATED_NS)
		return true;
	stop_ns = now_ns;
	return false;
}

static void on_signal(int number)
{
	if (is_repeated())
		return;
	if (stop_signal) {
		if (before_end)
			before_end();
		signal(number, SIG_DFL);
		raise(number);
	}
	stop_signal = number;
}

void signals_stop_set(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT); /* also in a script's background job, which ignores it */
	sigaddset(set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN) /* nohup */
		sigaddset(set, SIGHUP);
}

void signals_set(void)
{
	/* without SA_RESTART: a wait for the next tick or row ends with EINTR */
	const struct sigaction action = {.sa_handler = on_signal};
	sigset_t set;

	signals_stop_set(&set);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&set, number) == 1)
			sigaction(number, &action, NULL);
}

bool signals_stop(void)
{
	return stop_signal != 0;
}

int64_t signals_terminated_ns(void)
{
	return stop_signal == SIGTERM ? stop_ns : 0;
}
