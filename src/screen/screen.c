/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/screen.h"
#include "screen/draw.h"
#include "screen/key.h"
#include "screen/list.h"
#include "screen/terminal.h"
#include "keeper/terminal_rescue.h"
#include "screen/view.h"
#include "screen/view_event.h"
#include "screen/write.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define FRONT_POLL_NS NS_PER_SECOND /* longest time until a change to the background is noticed */
#define CLOSE_SECONDS 1 /* timeout for the thread to end, before the terminal is taken from it */

struct screen {
	pthread_t thread;
	struct history *history;
	struct view *view;
	struct cells cells;
	struct shown shown;
	struct question answered; /* the question that `shown` answers */
	int64_t answered_ns;
	bool redraw;
	int signal_fd, wake_fd;
	atomic_bool ended, stop, of_threads;
	pthread_mutex_t lock;
	struct shown_source reported; /* guarded by the lock */
	struct screen_wish wish;      /* guarded by the lock */
	bool wants;		      /* wish was set since the last screen_wants() */
};

int screen_check(struct error *e)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return 0;
	return error_set(e, ENOTTY, EXIT_USAGE,
			 "--top needs a terminal: --top --text -n 1 prints one screen, and tsnap "
			 "-i 5 a report every 5 s");
}

/* Takes over what is reported of the source. A new error is shown as a message, too: the header has
 * only one line for it. */
static void reported_take(struct screen *screen)
{
	struct shown_source *source = &screen->shown.source;
	bool failed;

	pthread_mutex_lock(&screen->lock);
	failed = screen->reported.error[0] && strcmp(source->error, screen->reported.error) != 0;
	*source = screen->reported;
	pthread_mutex_unlock(&screen->lock);
	if (failed)
		view_say(screen->view, true, "%s", source->error);
}

/* Answers the question if it is a new one, or if it is due. */
static void screen_fill(struct screen *screen, bool due)
{
	struct view *view = screen->view;

	if (!due && !question_differs(&screen->answered, &view->now))
		return;
	reported_take(screen);
	screen->of_threads = question_is_of_threads(&view->now);
	screen->answered = view->now;
	screen->answered_ns = clock_monotonic_ns();
	shown_fill(&screen->shown, screen->history, &view->now,
		   draw_band_steps(screen->cells.columns));
	finding_lines_fill(&screen->shown, &view->now, screen->cells.columns);
}

static void screen_show(struct screen *screen, bool due)
{
	size_t rows, columns;

	terminal_size(&rows, &columns);
	due |= columns != screen->cells.columns; /* the band has another number of steps */
	cells_clear(&screen->cells, rows, columns);
	screen_fill(screen, due);
	list_fill(&screen->shown, screen->view);
	draw(&screen->cells, screen->view, &screen->shown);
	terminal_show(&screen->cells, screen->redraw);
	screen->redraw = false;
}

/* Does what the view requests. */
static void request_do(struct screen *screen)
{
	enum view_request request = screen->view->request;

	screen->view->request = REQUEST_NONE;
	if (request == REQUEST_QUIT)
		screen->ended = true;
	if (request == REQUEST_WRITE)
		write_view(screen->view, &screen->shown, &screen->cells);
	if (request == REQUEST_STOP && !terminal_stop())
		screen->ended = true;
	if (request == REQUEST_LOAD) {
		pthread_mutex_lock(&screen->lock);
		screen->wish.needs |= screen->view->load_needs;
		screen->wish.all_states |= screen->view->load_all_states;
		screen->wish.traces |= screen->view->load_traces;
		screen->wants = true;
		pthread_mutex_unlock(&screen->lock);
	}
	screen->redraw |= request == REQUEST_STOP || request == REQUEST_REDRAW;
}

static void mouse_take(struct screen *screen)
{
	struct mouse mouse;

	if (terminal_mouse(&mouse.row, &mouse.column, &mouse.wheel))
		view_mouse(screen->view, &screen->shown, &mouse);
}

/* Takes the keys that were typed; a question that a key makes is answered before the next key.
 * False: no key was typed. */
static bool keys_take(struct screen *screen)
{
	bool any = false;
	int32_t key;

	while (!screen->ended && (key = terminal_key()) != -1) {
		if (key == -2) {
			screen->ended = true;
			break;
		}
		any = true;
		if (!key)
			continue;
		if (key == KEY_CODE_MOUSE)
			mouse_take(screen);
		else
			view_key(screen->view, &screen->shown, key);
		request_do(screen);
		if (!screen->ended)
			screen_fill(screen, false);
		if (!screen->ended)
			list_fill(&screen->shown, screen->view);
	}
	return any;
}

/* Handles the terminal's signals, which arrive by signal_fd, and leaves the terminal to a shell
 * that has come to the foreground. */
static void signals_take(struct screen *screen)
{
	struct signalfd_siginfo info;

	while (read(screen->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTSTP) {
			screen->ended |= !terminal_stop();
			screen->redraw = true;
		}
	if (!screen->ended && !terminal_in_front()) {
		screen->ended |= !terminal_wait_front();
		screen->redraw = true;
	}
}

static void *screen_run(void *of)
{
	struct screen *screen = of;
	struct pollfd waits[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = screen->signal_fd, .events = POLLIN},
		{.fd = screen->wake_fd, .events = POLLIN},
	};

	screen_show(screen, true);
	while (!screen->ended && !screen->stop) {
		int64_t due_ns = screen->answered_ns + screen->view->refresh_us * NS_PER_US;
		int64_t left_ns = due_ns - clock_monotonic_ns();
		bool keys;

		if (left_ns > FRONT_POLL_NS)
			left_ns = FRONT_POLL_NS;
		poll(waits, 3, left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0);
		signals_take(screen);
		keys = keys_take(screen);
		if (!keys && waits[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			screen->ended = true;
		if (!screen->ended && !screen->stop)
			screen_show(screen, clock_monotonic_ns() >= due_ns);
	}
	terminal_close();
	shown_done(&screen->shown);
	cells_done(&screen->cells);
	names_clear();
	screen->ended = true;
	return NULL;
}

int screen_open(struct screen **opened, struct history *history, struct view *view, bool ascii,
		struct error *e)
{
	struct screen *screen = memory_get(sizeof(*screen));
	sigset_t mask;
	int err = terminal_open(e);

	if (err) {
		free(screen);
		return err;
	}
	screen->history = history;
	screen->view = view;
	screen->cells.ascii = ascii;
	screen->reported.status.cpus = ABSENT;
	pthread_mutex_init(&screen->lock, NULL);
	/* no thread has these signals delivered */
	sigemptyset(&mask);
	sigaddset(&mask, SIGWINCH);
	sigaddset(&mask, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	screen->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	screen->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	err = screen->signal_fd < 0 || screen->wake_fd < 0
		      ? -errno
		      : thread_begin(&screen->thread, screen_run, screen);
	*opened = screen;
	if (!err)
		return 0;
	terminal_close();
	free(screen);
	return error_set(e, -err, EXIT_FAILED, "--top: %s", strerror(-err));
}

void screen_describe(struct screen *screen, const struct shown_source *reported)
{
	pthread_mutex_lock(&screen->lock);
	screen->reported = *reported;
	pthread_mutex_unlock(&screen->lock);
}

bool screen_wants(struct screen *screen, struct screen_wish *wish)
{
	bool wants;

	pthread_mutex_lock(&screen->lock);
	wants = screen->wants;
	screen->wants = false;
	*wish = screen->wish;
	pthread_mutex_unlock(&screen->lock);
	return wants;
}

bool screen_is_of_threads(const struct screen *screen)
{
	return screen->of_threads;
}

bool screen_ended(const struct screen *screen)
{
	return screen->ended;
}

/* Waits for the thread to end; false: it has not within CLOSE_SECONDS. */
static bool thread_ends(struct screen *screen)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CLOSE_SECONDS;
	return !pthread_timedjoin_np(screen->thread, NULL, &end);
}

void screen_close(struct screen *screen)
{
	uint64_t one = 1;
	bool ended;

	screen->stop = true;
	if (write(screen->wake_fd, &one, sizeof(one)) < 0) {
		/* the thread is awake already */
	}
	ended = thread_ends(screen);
	if (!ended) {
		/* the thread waits for a terminal that accepts no output */
		tcflush(STDOUT_FILENO, TCOFLUSH);
		ended = thread_ends(screen);
	}
	if (!ended) {
		terminal_rescue();
		_exit(EXIT_DONE); /* the thread may still use everything */
	}
	close(screen->signal_fd);
	close(screen->wake_fd);
	pthread_mutex_destroy(&screen->lock);
	free(screen);
}
