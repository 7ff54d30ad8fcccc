/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/progress.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define SILENT_NS NS_PER_SECOND /* time before the first line */
#define ERASE "\r\033[K"
#define WATCHED_US (2 * US_PER_SECOND) /* a shorter interval shows no progress */

static struct {
	bool running;
	bool silent; /* no line is begun any more */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended_now;
	bool ended; /* under lock */
	bool shown; /* under lock */
	int64_t begun_ns;
	_Atomic(const char *) doing;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Writes to the terminal, but never waits for one that was stopped (Ctrl-S): a lost line is no
 * error. */
static bool terminal_write(const char *bytes, size_t length)
{
	struct pollfd terminal = {STDERR_FILENO, POLLOUT, 0};

	return poll(&terminal, 1, 0) == 1 && terminal.revents & POLLOUT &&
	       write(STDERR_FILENO, bytes, length) > 0;
}

/* True if this process is in the terminal's foreground: one in the background must not write over
 * the terminal's text. */
static bool in_foreground(void)
{
	return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static bool line_write(const char *doing)
{
	int64_t seconds = (clock_monotonic_ns() - progress.begun_ns) / NS_PER_SECOND;
	struct text line = {0};
	bool written;

	text_add_format(&line, ERASE "tsnap: starting, %lld s: %s", (long long)seconds, doing);
	written = terminal_write(line.bytes, line.length);
	text_done(&line);
	return written;
}

/* Writes a line a second after the beginning, and again each second. */
static void *progress_run(void *of)
{
	struct timespec until;

	(void)of;
	pthread_mutex_lock(&progress.lock);
	for (int64_t at_ns = progress.begun_ns + SILENT_NS; !progress.ended;
	     at_ns += NS_PER_SECOND) {
		until = (struct timespec){at_ns / NS_PER_SECOND, at_ns % NS_PER_SECOND};
		while (!progress.ended &&
		       !pthread_cond_timedwait(&progress.ended_now, &progress.lock, &until))
			;
		if (progress.ended || !in_foreground())
			continue;
		progress.shown |= line_write(atomic_load(&progress.doing));
	}
	pthread_mutex_unlock(&progress.lock);
	return NULL;
}

void progress_begin(void)
{
	pthread_condattr_t monotonic;

	if (progress.running || progress.silent || !isatty(STDERR_FILENO))
		return;
	progress.begun_ns = clock_monotonic_ns();
	progress.ended = progress.shown = false;
	progress_step("finding out what this host offers");
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&progress.ended_now, &monotonic);
	pthread_condattr_destroy(&monotonic);
	progress.running = !thread_begin(&progress.thread, progress_run, NULL);
}

void progress_silence(void)
{
	progress_end();
	progress.silent = true;
}

void progress_step(const char *doing)
{
	atomic_store(&progress.doing, doing);
}

void progress_end(void)
{
	if (!progress.running)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.ended = true;
	pthread_cond_signal(&progress.ended_now);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.thread, NULL);
	progress.running = false;
	pthread_cond_destroy(&progress.ended_now);
	if (progress.shown)
		terminal_write(ERASE, sizeof(ERASE) - 1);
}

static struct {
	int64_t second; /* second that the last line showed; used by the main thread only */
	bool shown;
} sampling = {.second = -1};

void progress_sampling(int64_t elapsed_us, int64_t total_us, int64_t samples)
{
	int64_t second = elapsed_us / US_PER_SECOND;
	struct text line = {0};

	if (second == sampling.second || (total_us && total_us < WATCHED_US))
		return;
	sampling.second = second;
	if (!isatty(STDERR_FILENO) || !in_foreground())
		return;
	text_add_format(&line, ERASE "tsnap: sampling, %lld ", (long long)second);
	if (total_us)
		text_add_format(&line, "of %lld ", (long long)(total_us / US_PER_SECOND));
	text_add_format(&line, "s, %lld sample%s", (long long)samples, samples == 1 ? "" : "s");
	sampling.shown |= terminal_write(line.bytes, line.length);
	text_done(&line);
}

void progress_sampling_end(void)
{
	if (sampling.shown)
		terminal_write(ERASE, sizeof(ERASE) - 1);
	sampling.second = -1;
	sampling.shown = false;
}
