/* SPDX-License-Identifier: GPL-2.0-or-later */
#define NCURSES_WIDECHAR 1
#include "screen/terminal.h"
#include "screen/key.h"
#include "keeper/terminal_rescue.h"
#include "base/clock.h"
#include "base/signals.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#undef columns /* macros of term.h */
#undef lines

#define BACKGROUND_POLL_NS (100 * NS_PER_MS)

static struct cells written; /* cells that the terminal shows */
static bool coloured;
static SCREEN *own; /* screen of ncurses */

/* Attributes of the styles: with colours, and without. */
static const struct style_row {
	short colour; /* -1: default colour of the terminal */
	attr_t with, without;
} styles[STYLE_COUNT] = {
	[STYLE_PLAIN] = {-1, A_NORMAL, A_NORMAL},
	[STYLE_TITLE] = {-1, A_BOLD, A_BOLD},
	[STYLE_FAINT] = {COLOR_CYAN, A_NORMAL, A_NORMAL},
	[STYLE_CURSOR] = {-1, A_REVERSE, A_REVERSE},
	[STYLE_CELL] = {COLOR_YELLOW, A_REVERSE | A_BOLD, A_REVERSE | A_BOLD | A_UNDERLINE},
	[STYLE_ALERT] = {COLOR_RED, A_BOLD, A_BOLD},
	[STYLE_KEY] = {COLOR_YELLOW, A_NORMAL, A_BOLD},
	[STYLE_ON] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
	[STYLE_RQ] = {COLOR_YELLOW, A_NORMAL, A_NORMAL},
	[STYLE_DISK] = {COLOR_RED, A_NORMAL, A_NORMAL},
	[STYLE_WORK] = {COLOR_BLUE, A_BOLD, A_NORMAL},
	[STYLE_MORE] = {COLOR_RED, A_NORMAL, A_BOLD},
	[STYLE_LESS] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
};

static void modes_set(void)
{
	raw(); /* delivers Ctrl-C and Ctrl-Z as keys */
	noecho();
	nonl();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
	terminal_rescue_take(true);
}

static void colours_set(void)
{
	const char *no_color = getenv("NO_COLOR");

	coloured = has_colors() && (!no_color || !*no_color);
	if (!coloured)
		return;
	start_color();
	use_default_colors();
	for (int style = 0; style < STYLE_COUNT; style++)
		if (styles[style].colour >= 0)
			init_pair((short)(style + 1), styles[style].colour, -1);
}

int terminal_open(struct error *e)
{
	const char *name = getenv("TERM");
	int known, err = terminal_rescue_save();

	if (err)
		return error_set(e, -err, EXIT_FAILED, "the terminal: %s", strerror(-err));
	/* newterm() would end the process */
	if (!name || !*name || setupterm(name, STDOUT_FILENO, &known) == ERR || known != 1)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--top: TERM is '%s', which this host does not know: set TERM "
				 "(xterm, linux, vt100), or use tsnap -i 5",
				 name ? name : "");
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--top: the terminal '%s' can't place its cursor: use tsnap -i 5, "
				 "or another TERM",
				 name);
	set_escdelay(50);
	terminal_rescue_begin();
	del_curterm(cur_term); /* newterm() allocates its own */
	own = newterm(NULL, stdout, stdin);
	if (!own) {
		terminal_rescue();
		return error_set(e, EINVAL, EXIT_FAILED, "--top: no screen on this terminal (%s)",
				 name);
	}
	signal(SIGTSTP, SIG_DFL); /* replaces the handler of ncurses: see terminal_stop() */
	colours_set();
	modes_set();
	return 0;
}

/* Gives the terminal back. A shell may have it already, if tsnap was stopped or its keeper was
 * killed. */
static void terminal_leave(void)
{
	if (terminal_rescue_taken() && terminal_in_front())
		endwin();
	else
		terminal_rescue();
	terminal_rescue_take(false);
}

void terminal_close(void)
{
	terminal_leave();
	delscreen(own);
	terminal_rescue_end();
	cells_done(&written);
}

void terminal_size(size_t *rows, size_t *columns)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col) {
		size.ws_row = (unsigned short)LINES;
		size.ws_col = (unsigned short)COLS;
	}
	*rows = size.ws_row < CELLS_ROWS_MAX ? size.ws_row : CELLS_ROWS_MAX;
	*columns = size.ws_col < CELLS_COLUMNS_MAX ? size.ws_col : CELLS_COLUMNS_MAX;
	if ((int)*rows != LINES || (int)*columns != COLS)
		resizeterm((int)*rows, (int)*columns);
}

static void cell_write(size_t row, size_t column, const struct cell *cell)
{
	const struct style_row *style = &styles[cell->style];
	attr_t attributes = coloured ? style->with : style->without;
	short pair = coloured && style->colour >= 0 ? (short)(cell->style + 1) : 0;
	wchar_t characters[CELL_BYTES];
	cchar_t character;

	if (!cell->bytes[0]) /* the second half of a wide character */
		return;
	if (mbstowcs(characters, cell->bytes, CELL_BYTES) == (size_t)-1)
		wcscpy(characters, L"?");
	characters[CCHARW_MAX - 1 < CELL_BYTES - 1 ? CCHARW_MAX - 1 : CELL_BYTES - 1] = L'\0';
	if (setcchar(&character, characters, attributes, pair, NULL) == OK)
		mvadd_wch((int)row, (int)column, &character);
}

static void written_copy(const struct cells *cells)
{
	cells_clear(&written, cells->rows, cells->columns);
	memcpy(written.cells, cells->cells, cells->rows * cells->columns * sizeof(*cells->cells));
}

void terminal_show(const struct cells *cells, bool all)
{
	all |= written.rows != cells->rows || written.columns != cells->columns;
	if (all)
		clear();
	for (size_t row = 0; row < cells->rows; row++)
		for (size_t column = 0; column < cells->columns; column++) {
			const struct cell *cell = cells_at(cells, row, column);

			if (all || memcmp(cell, cells_at(&written, row, column), sizeof(*cell)))
				cell_write(row, column, cell);
		}
	written_copy(cells);
	refresh();
}

/* Translates a key number of ncurses; 0: a key that is not used. */
static int32_t key_of(wint_t key)
{
	static const struct {
		wint_t theirs;
		int32_t ours;
	} rows[] = {
		{KEY_UP, KEY_CODE_UP},	       {KEY_DOWN, KEY_CODE_DOWN},
		{KEY_LEFT, KEY_CODE_LEFT},     {KEY_RIGHT, KEY_CODE_RIGHT},
		{KEY_PPAGE, KEY_CODE_PAGE_UP}, {KEY_NPAGE, KEY_CODE_PAGE_DOWN},
		{KEY_HOME, KEY_CODE_HOME},     {KEY_END, KEY_CODE_END},
		{KEY_DC, KEY_CODE_DELETE},     {KEY_BACKSPACE, KEY_CODE_BACKSPACE},
		{KEY_ENTER, KEY_CODE_ENTER},   {KEY_MOUSE, KEY_CODE_MOUSE},
	};

	if (key >= KEY_F(1) && key <= KEY_F(12))
		return KEY_CODE_F1 + (int32_t)(key - KEY_F(1));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].theirs == key)
			return rows[i].ours;
	return 0;
}

int32_t terminal_key(void)
{
	wint_t key;
	int kind;

	errno = 0;
	kind = get_wch(&key);
	if (kind == ERR)
		return errno == EIO || errno == ENXIO || errno == EBADF ? -2 : -1;
	if (kind == KEY_CODE_YES)
		return key_of(key);
	if (key == 8)
		return KEY_CODE_BACKSPACE;
	return key == '\n' ? KEY_CODE_ENTER : (int32_t)key;
}

bool terminal_mouse(size_t *row, size_t *column, int *wheel)
{
	MEVENT event;

	if (getmouse(&event) != OK || event.x < 0 || event.y < 0)
		return false;
	*row = (size_t)event.y;
	*column = (size_t)event.x;
	*wheel = event.bstate & BUTTON4_PRESSED ? -1 : event.bstate & BUTTON5_PRESSED ? 1 : 0;
	return true;
}

bool terminal_wait_front(void)
{
	const struct timespec pause = {0, BACKGROUND_POLL_NS};

	terminal_leave();
	while (!terminal_in_front() && !signals_stop())
		nanosleep(&pause, NULL);
	if (signals_stop())
		return false;
	if (!isendwin())
		endwin(); /* for ncurses to know that the terminal was left */
	modes_set();
	clearok(curscr, TRUE);
	return true;
}

bool terminal_stop(void)
{
	sigset_t stop, before;

	terminal_leave();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	/* all processes of the job, as a terminal does it: the shell waits for the keeper */
	kill(0, SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &stop, &before); /* stops here */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return terminal_wait_front();
}
