/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/required_calls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3 /* a stop of the process can interrupt a call */

static int try_poll(void)
{
	return poll(NULL, 0, 0);
}

static int try_sigtimedwait(void)
{
	const struct timespec none = {0};
	sigset_t set;

	sigemptyset(&set);
	return sigtimedwait(&set, NULL, &none);
}

static int try_nanosleep(void)
{
	return nanosleep(&(struct timespec){0}, NULL);
}

/* clock_nanosleep() returns its error. */
static int try_clock_nanosleep(void)
{
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){0}, NULL);
	return errno ? -1 : 0;
}

static int try_wait4(void)
{
	return waitpid(getpid(), NULL, WNOHANG);
}

static int try_getppid(void)
{
	return (int)syscall(SYS_getppid); /* getppid() reports no error */
}

/* Without futex(2): where that is refused, the C library ends the program itself, with a line, in
 * constructors of libraries. */
/* clang-format off */
static const struct required_call {
	const char *name;
	int (*call)(void);
	int expected; /* errno of the call where it is not refused */
} required_calls[] = {
	{"wait4",           try_wait4,             ECHILD},
	{"getppid",         try_getppid,           0},
	{"poll",            try_poll,              0},
	{"rt_sigtimedwait", try_sigtimedwait,      EAGAIN},
	{"nanosleep",       try_nanosleep,         0},
	{"clock_nanosleep", try_clock_nanosleep,   0},
};
/* clang-format on */

int required_calls_try(struct error *e)
{
	for (size_t i = 0; i < sizeof(required_calls) / sizeof(required_calls[0]); i++) {
		const struct required_call *row = &required_calls[i];
		int err = EINTR;

		for (int tries = 0; tries < TRIES && err == EINTR; tries++)
			err = row->call() < 0 ? errno : 0;
		if (err != row->expected)
			return error_set(e, err, EXIT_FAILED,
					 "a system call that tsnap needs is refused (%s: %s)",
					 row->name, err ? strerror(err) : "it does nothing");
	}
	return 0;
}
