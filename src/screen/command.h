/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the full screen: a table row each, from which keys, help and palette follow. Each
 * command makes a new view from the old one and from what is shown, and touches nothing else. */
#ifndef TSNAP_SCREEN_COMMAND_H
#define TSNAP_SCREEN_COMMAND_H

#include "screen/shown.h"
#include "screen/view.h"

typedef void command_run(struct view *view, const struct shown *shown, int64_t by);

struct command {
	const char *name; /* name in the palette */
	const char *keys; /* names of keys, with a space between */
	const char *help;
	command_run *run;
	int64_t by; /* argument of run: how far, and which way */
};

extern const struct command commands[];
extern const size_t command_count;

/* Adds the name of the first key that runs the command. */
void add_key_of(struct text *text, const struct view *view, command_run *run);
/* Shows a message in which "%s" stands for such a key. */
void view_say_key(struct view *view, bool failed, command_run *run, const char *format);

/* Sets the keys of the command table. */
void bindings_begin(struct bindings *bindings);
/* Changes keys as the user's file says; a file that does not exist changes nothing:
 *
 *   peek = p F2
 *   quit = Q
 *
 * A command gets the keys of its line in place of its own. A key that another command had is taken
 * from that one. Keys inside of lists and lines that are typed can't be changed. 0, or -errno with
 * e. */
int bindings_read(struct bindings *bindings, const char *path, struct error *e);

/* command_move.c: the cursor, and the search for words. */
void command_row(struct view *view, const struct shown *shown, int64_t by);
void command_page(struct view *view, const struct shown *shown, int64_t by);
void command_end(struct view *view, const struct shown *shown, int64_t by);
void command_left(struct view *view, const struct shown *shown, int64_t by);
void command_right(struct view *view, const struct shown *shown, int64_t by);
void command_find(struct view *view, const struct shown *shown, int64_t by);
void command_find_again(struct view *view, const struct shown *shown, int64_t by);

/* command_question.c: changes of the question. */
void command_keep(struct view *view, const struct shown *shown, int64_t by);
void command_exclude(struct view *view, const struct shown *shown, int64_t by);
void command_undo(struct view *view, const struct shown *shown, int64_t by);
void command_filter(struct view *view, const struct shown *shown, int64_t by);
void command_columns(struct view *view, const struct shown *shown, int64_t by);
void command_sort(struct view *view, const struct shown *shown, int64_t by);
void command_sort_here(struct view *view, const struct shown *shown, int64_t by);
void command_column_move(struct view *view, const struct shown *shown, int64_t by);
void command_column_drop(struct view *view, const struct shown *shown, int64_t by);
void command_all_states(struct view *view, const struct shown *shown, int64_t by);
void command_follow(struct view *view, const struct shown *shown, int64_t by);
/* Keeps only the samples that the filter `base` accepts and that the condition is true of, as a
 * step. False: the filter gets too long. */
bool question_keep(struct view *view, const char *base, bool widens, const char *condition);
/* Adds "column=value", or "!column=value" if wanted is false. */
void add_condition(struct text *text, const struct column *column, union value value, bool wanted);
/* True if the condition would let idle threads in: it names states, so the rule for what is active
 * has no effect any more. */
bool condition_widens(const struct column *column, union value value, bool wanted);
/* Adds the question's filter with one more condition. widens: condition_widens(). */
void add_filter(struct text *text, const struct question *question, bool widens,
		const char *condition);
/* Sorts by the column; in reverse if it is already the sort column. */
void question_sort_by(struct view *view, const struct column *column);
/* Has the source sample these needs, too. all_states: idle threads, too. */
void view_load(struct view *view, const struct shown *shown, uint64_t needs, bool all_states);
/* True if the column's values are sampled. If not, *why says why; "" if that can be changed. */
bool column_is_there(const struct shown *shown, const struct column *column, const char **why);

/* saved.c: views with a name. */
void command_views(struct view *view, const struct shown *shown, int64_t by);
/* command_value.c: the whole of a value. */
void command_value(struct view *view, const struct shown *shown, int64_t by);
/* peek.c: the parts of a row. */
void command_peek(struct view *view, const struct shown *shown, int64_t by);

/* process_tree.c, heat.c: the window in other forms than a table. */
void command_tree(struct view *view, const struct shown *shown, int64_t by);
void command_heat(struct view *view, const struct shown *shown, int64_t by);
/* command_time.c: position and length of the window. */
void command_move(struct view *view, const struct shown *shown, int64_t by);
void command_now(struct view *view, const struct shown *shown, int64_t by);
void command_freeze(struct view *view, const struct shown *shown, int64_t by);
void command_mark(struct view *view, const struct shown *shown, int64_t by);
void command_jump(struct view *view, const struct shown *shown, int64_t by);
void command_window(struct view *view, const struct shown *shown, int64_t by);
void command_refresh(struct view *view, const struct shown *shown, int64_t by);

/* write.c: output to files and other programs. */
void command_write(struct view *view, const struct shown *shown, int64_t by);
void command_line(struct view *view, const struct shown *shown, int64_t by);
/* Adds the command line that makes this view. */
void command_line_add(struct text *text, const struct view *view, const struct shown *shown);

/* command_table.c: the commands themselves, and what is left to the owner of the view. */
void command_help(struct view *view, const struct shown *shown, int64_t by);
void command_palette(struct view *view, const struct shown *shown, int64_t by);
void command_redraw(struct view *view, const struct shown *shown, int64_t by);
void command_stop(struct view *view, const struct shown *shown, int64_t by);
void command_quit(struct view *view, const struct shown *shown, int64_t by);

#endif
