/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks: a line per stack, frames outermost first and separated by ';', then a space and
 * its weight. flamegraph.pl, inferno and speedscope read this format.
 *
 * A sample's `stack` is one text of that form with a mark of each frame's kind at its end
 * (frame_kind.c). A dictionary (recording/stack_dict.h) has its halves for the hashes `ustack` and
 * `kstack`: live_dictionary hands stacks over when all their names are known, sample_file fills a
 * row's words from it. This module makes the columns of a row a path of frames (the chosen columns,
 * user frames, system call, kernel frames), merged into a frame_tree, which is written as lines or
 * drawn: flame_layout decides widths, colours and what is left out, flame_svg writes it, with
 * flame.css and flame.js embedded. cli/diff.c reads folded stacks into both parts of one tree.
 */
#ifndef TSNAP_RENDER_FOLD_H
#define TSNAP_RENDER_FOLD_H

#include "base/error.h"
#include "render/frame_tree.h"
#include "render/renderer.h"

/* Columns that stacks are made of, after those of the root frames. */
#define FOLD_COLUMNS "state,syscall,stack,weight_us"
#define FOLD_ROOTS_DEFAULT "comm"
/* root frame of chains, which replace stacks */
#define FOLD_CHAIN_ROOT "chain"
#define FOLD_CHAIN_COLUMNS "state,weight_us"

/* Adds the frames of a waker above those of a thread. waker_stack and waker_comm: values of these
 * columns, NULL: absent. */
void fold_add_waker(struct text *frames, const char *waker_stack, const char *waker_comm);

/* Returns the time that a row stands for in us, not below 0. Sets *state, if state is not NULL and
 * the interval has that column. */
int64_t fold_weight_us(const struct interval *interval, size_t row, int64_t *state);
/* Adds the frames of a row's stack: user frames, the system call, kernel frames; printable, each
 * with its annotation. */
void fold_add_stack(struct text *frames, const struct interval *interval, size_t row);

/* Adds a row's column ufiles: files of the first of the frames that fold_add_stack() adds. */
void fold_add_files(struct text *files, const struct interval *interval, size_t row);

/* Adds all rows; time on a CPU and time off it are separate. */
void fold_interval(struct frame_tree *tree, const struct interval *interval);

/* Adds a line per stack, by name. The tree must be sorted. */
void fold_write(struct text *out, const struct frame_tree *tree);

/* Reads lines until the end of text; name is for errors. Frames become printable if they are not.
 * 0, or -EINVAL with e. */
int fold_read(struct frame_tree *tree, const char *name, const char *text, enum frame_part part,
	      struct error *e);

#endif
