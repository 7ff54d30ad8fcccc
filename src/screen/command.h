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
	int64_t by;   /* argument of run: how far, and which way */
	bool of_cell; /* about the table's row or column under the cursor */
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
command_run command_row, command_page, command_end, command_left, command_right, command_find,
	command_find_again;

/* command_question.c: changes of the question. */
command_run command_keep, command_exclude, command_undo, command_filter, command_columns,
	command_sort, command_sort_here, command_column_move, command_column_drop,
	command_all_states, command_follow;
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
command_run command_views;
/* finding_lines.c: what is wrong. */
command_run command_findings;
/* Shows the threads of a finding. */
void finding_choose(struct view *view, const struct shown *shown, size_t item);
/* command_value.c: the whole of a value. */
command_run command_value;
/* peek.c: the parts of a row. */
command_run command_peek;

/* process_tree.c, heat.c: the window in other forms than a table. */
command_run command_tree, command_heat;
/* command_time.c: position and length of the window. */
command_run command_move, command_now, command_freeze, command_mark, command_jump, command_window,
	command_refresh;

/* write.c: output to files and other programs. */
command_run command_write, command_line;
/* Adds the command line that makes this view. */
void command_line_add(struct text *text, const struct view *view, const struct shown *shown);

/* command_table.c: the commands themselves, and what is left to the owner of the view. */
command_run command_help, command_palette, command_redraw, command_stop, command_quit;

#endif
