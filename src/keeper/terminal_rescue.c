/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper/terminal_rescue.h"
#include "base/memory.h"
#include "base/signals.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <term.h>
#include <unistd.h>

#define RESCUE_TRIES 25
#define RESCUE_PAUSE_US 20000
#define MOUSE_OFF "\033[?1006;1000l" /* ncurses writes it, too, if the terminal has kmous */

static struct terminal_rescue own, *rescue = &own;

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static void forked(void)
{
	rescue = &own;
	own.taken = false; /* the terminal is the parent's to restore */
}

void terminal_rescue_use(struct terminal_rescue *shared)
{
	if (rescue == &own)
		pthread_atfork(NULL, NULL, forked);
	rescue = shared;
}

int terminal_rescue_save(void)
{
	if (!rescue->saved && tcgetattr(STDIN_FILENO, &rescue->before))
		return -errno;
	rescue->saved = true;
	return 0;
}

/* Writes to the terminal without blocking: it accepts nothing until it has shown earlier output, as
 * over a slow connection, or while another thread writes. If that lasts, what is left of the screen
 * makes room: nobody needs it any more. Output that stops and starts wakes the other thread. */
static void bytes_write(void)
{
	size_t written = 0;

	for (int i = 0; i < RESCUE_TRIES && written < rescue->length; i++) {
		struct timeval pause = {0, RESCUE_PAUSE_US};
		ssize_t count =
			write(STDOUT_FILENO, rescue->bytes + written, rescue->length - written);

		if (count > 0) {
			written += (size_t)count;
			continue;
		}
		if (i >= RESCUE_TRIES / 2) {
			tcflush(STDOUT_FILENO, TCOFLUSH);
			tcflow(STDOUT_FILENO, TCOOFF);
			tcflow(STDOUT_FILENO, TCOON);
		}
		select(0, NULL, NULL, NULL, &pause);
	}
}

bool terminal_in_front(void)
{
	pid_t front = tcgetpgrp(STDIN_FILENO);

	return front < 0 || front == getpgrp();
}

/* True if the terminal still has the modes of the screen. */
static bool modes_are_own(void)
{
	const struct termios *screen = &rescue->screen;
	struct termios now;

	return !tcgetattr(STDIN_FILENO, &now) && now.c_iflag == screen->c_iflag &&
	       now.c_oflag == screen->c_oflag && now.c_cflag == screen->c_cflag &&
	       now.c_lflag == screen->c_lflag;
}

void terminal_rescue(void)
{
	sigset_t output, before;
	int flags;

	if (!atomic_exchange(&rescue->taken, false))
		return;
	/* a process in the background would be stopped */
	sigemptyset(&output);
	sigaddset(&output, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &output, &before);
	/* a terminal that is stopped must not keep the process */
	flags = fcntl(STDOUT_FILENO, F_GETFL);
	fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
	bytes_write();
	fcntl(STDOUT_FILENO, F_SETFL, flags);
	/* a shell that has come to the front may have set the modes that it edits lines in */
	if (terminal_in_front() || modes_are_own())
		tcsetattr(STDIN_FILENO, TCSANOW, &rescue->before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void on_crash(int number)
{
	terminal_rescue();
	signal(number, SIG_DFL);
	raise(number);
}

static void bytes_add(const char *bytes, size_t length)
{
	if (rescue->length + length > RESCUE_BYTES)
		return;
	memcpy(rescue->bytes + rescue->length, bytes, length);
	rescue->length += length;
}

/* Returns the bytes of a capability; NULL: the terminal lacks it. */
static const char *capability_bytes(const char *capability)
{
	const char *bytes = tigetstr(capability);

	return bytes == (const char *)-1 ? NULL : bytes;
}

void terminal_rescue_begin(void)
{
	static const char *const capabilities[] = {"sgr0", "rmcup", "rmkx", "cnorm"};

	rescue->length = 0;
	if (capability_bytes("kmous"))
		bytes_add(MOUSE_OFF, strlen(MOUSE_OFF));
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		const char *bytes = capability_bytes(capabilities[i]);

		if (bytes)
			bytes_add(bytes, strlen(bytes));
	}
	terminal_rescue_take(true);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], on_crash);
	memory_before_end(terminal_rescue);
	signals_before_end(terminal_rescue);
}

void terminal_rescue_end(void)
{
	rescue->taken = false;
	memory_before_end(NULL);
	signals_before_end(NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], SIG_DFL);
}

void terminal_rescue_take(bool taken)
{
	if (taken)
		tcgetattr(STDIN_FILENO, &rescue->screen);
	rescue->taken = taken;
}

bool terminal_rescue_taken(void)
{
	return rescue->taken;
}
