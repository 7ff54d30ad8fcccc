/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's requests at the full screen, and the position of the cursor.
 *
 * A view is plain data. Events make a new view of an old one (view_event.h), and drawing
 * reads it; neither knows a terminal. What must be done outside (write a file, end) is left in
 * `request`.
 */
#ifndef TSNAP_SCREEN_VIEW_H
#define TSNAP_SCREEN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/column_list.h"
#include "sample/filter/expression.h"
#include "screen/key.h"

#define VIEW_UNDO_MAX 64
#define VIEW_FOLDS_MAX 256
#define VIEW_LABEL_SIZE 96
#define VIEW_INPUT_SIZE (EXPRESSION_BYTES_MAX + 1)
#define VIEW_MESSAGE_SIZE 1152 /* a line of an error, with some words */
#define VIEW_WINDOW_DEFAULT_US (5 * 1000000ll)
#define VIEW_REFRESH_DEFAULT_US (2 * 1000000ll)
#define VIEW_REFRESH_LEAST_US 100000

/* A question that one report answers. Copied whole for each step, so that any step can be
 * undone. */
struct question {
	struct column_list list; /* measures and keys, in the order of the table */
	char filter[VIEW_INPUT_SIZE];
	bool all_states;
	const struct column *sort; /* NULL: most samples first */
	bool reversed;
	int64_t window_us;
	int64_t mark_us;	     /* end of a second window, which is subtracted; ABSENT: none */
	int64_t until_us;	     /* end of the window; ABSENT: it moves with time */
	char label[VIEW_LABEL_SIZE]; /* name of this step in the line of steps */
};

struct list_kind;
struct saved_views;

/* The one widget for lists. */
struct list {
	const struct list_kind *kind; /* NULL: no list is open */
	size_t at, top; /* item under the cursor, first item shown; of those that match */
	char words[VIEW_LABEL_SIZE]; /* typed words: only items that have them are shown */
	bool typing;		     /* letters are added to the words, of a kind with keys */
};

/* Nodes of trees that are folded, by the hashes of their paths. */
struct folds {
	uint64_t paths[VIEW_FOLDS_MAX];
	size_t count;
};

struct prompt_kind;

/* A line that is being typed. */
struct prompt {
	const struct prompt_kind *kind; /* kind of the prompt; NULL: none is open */
	char text[VIEW_INPUT_SIZE];
	size_t at;		     /* byte that the cursor is before */
	size_t wrong;		     /* byte that an error points to; SIZE_MAX: none */
	char why[VIEW_MESSAGE_SIZE]; /* message of the error; "": none */
};

/* Positions of what was drawn: rows and columns of the screen, for the mouse. */
struct positions {
	size_t columns; /* width of the screen */
	size_t findings_top, findings_rows;
	size_t title_row, table_top, table_rows;
	size_t first, count;	       /* columns of the table that are drawn: from the first */
	size_t lefts[COLUMN_LIST_MAX]; /* column of the screen where each of these begins */
	size_t list_top, list_rows;    /* items of the open list */
	size_t band_top, band_rows, band_left; /* position of the band; 0 rows: no band */
	size_t steps_row, step_count;
	size_t steps[VIEW_UNDO_MAX + 1]; /* column where each step's words end */
};

/* Requests of the view to its owner. */
enum view_request {
	REQUEST_NONE,
	REQUEST_QUIT,
	REQUEST_STOP,	/* stop the process as a background job: Ctrl-Z */
	REQUEST_REDRAW, /* draw the whole screen anew, whatever the terminal shows */
	REQUEST_WRITE,	/* write a file: view.write, view.path */
	REQUEST_LOAD,	/* sample also what load_needs and the other load_* members say */
};

enum write_format {
	WRITE_TEXT,
	WRITE_CSV,
	WRITE_FOLDED,
	WRITE_FLAME,
	WRITE_VIEW,
	WRITE_COUNT,
};

struct view {
	struct question now;
	struct question undo[VIEW_UNDO_MAX]; /* earlier steps, oldest first */
	size_t undo_count;
	size_t row, column; /* position of the cursor: a row by its order, a column of now.list */
	size_t top, left;   /* first row and column that are drawn */
	size_t page_rows;   /* rows of the table, as it was drawn last */
	struct list list;
	struct prompt prompt;
	struct positions positions;
	char peek[VIEW_INPUT_SIZE];	    /* filter of the row that is peeked at */
	char peek_title[VIEW_MESSAGE_SIZE]; /* keys of the row, for the title */
	struct folds folds;
	bool tree_of_parents; /* T: processes below their parents, else below units */
	bool heat_of_threads; /* h: by the threads of a scan, else by state_us */
	int64_t heat_us;      /* time under the heat map's cursor */
	char find[VIEW_LABEL_SIZE];
	char message[VIEW_MESSAGE_SIZE]; /* message that is shown until the next key */
	bool failed;			 /* the message is an error */
	int64_t refresh_us;
	enum view_request request;
	uint64_t load_needs; /* needs to be sampled, NEED_* */
	bool load_all_states;
	bool load_traces; /* trace durations of waits for a CPU and of sleeps */
	enum write_format write;
	char path[VIEW_LABEL_SIZE * 4];	 /* path of the file to write */
	const struct saved_views *views; /* ready-made views; NULL: none */
	struct bindings bindings;
	const char *views_path; /* the user's own file of views; NULL: not possible */
};

/* Makes the view of the command line: query's columns after the measures of a report, and its
 * filter. 0, or -EINVAL with a usage error. */
int view_init(struct view *view, const struct query *query, struct error *e);

/* Saves the present question for undo, and returns it to be changed. */
struct question *view_step(struct view *view, const char *label_format, ...)
	__attribute__((format(printf, 2, 3)));
/* Goes back one step; false: there is none. */
bool view_undo(struct view *view);
/* Shows a message until the next key. */
void view_say(struct view *view, bool failed, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The filter of the question; to be ended with filter_done(). 0, or -EINVAL with e. */
int question_filter(const struct question *question, struct filter *filter, struct error *e);

/* True if the question tells threads of a process apart, by a column or by its filter. */
bool question_is_of_threads(const struct question *question);

/* True if the questions of the two differ, so that shown_fill() is due. */
bool question_differs(const struct question *a, const struct question *b);

#endif
