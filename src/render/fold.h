/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks: a line per stack, frames outermost first and separated by ';', then a space and
 * its weight. flamegraph.pl, inferno and speedscope read this format.
 *
 * A sample's `stack` is one text of that form with a mark of each frame's kind at its end
 * (frame_kinds). A dictionary (recording/stack_dict.h) has its halves for the hashes `ustack` and
 * `kstack`: live_dictionary hands stacks over when all their names are known, sample_file fills a
 * row's words from it. This module makes the columns of a row a path of frames (the chosen columns,
 * user frames, system call, kernel frames), merged into a frame_tree, which is written as lines or
 * drawn: flame_svg decides widths, colours and what is left out, and writes it, with flame.css
 * and flame.js embedded. cli/diff.c reads folded stacks into both parts of one tree.
 */
#ifndef TSNAP_RENDER_FOLD_H
#define TSNAP_RENDER_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "render/renderer.h"

/* Kinds of frames, shown by an annotation at the end of a frame's name. The annotations _[k] _[j]
 * _[i] _[w] are those of flamegraph.pl; the others stay inside tsnap.
 */
#define FRAME_KERNEL "_[k]"
#define FRAME_SYSCALL "_[s]"
#define FRAME_JIT "_[j]"
#define FRAME_PYTHON "_[p]"
#define FRAME_WAKER "_[w]"
#define FRAME_ROOT "_[r]"
/* Frame between the frames of a sleeper and of its waker, as in bcc's offwaketime. */
#define FRAME_SEPARATOR "--"

struct frame_kind {
	const char *mark;    /* end of a name of this kind */
	bool whole;	     /* mark is the whole name */
	bool known;	     /* flamegraph.pl knows the mark, so that folded stacks keep it */
	const char *title;   /* name in a legend */
	uint32_t colours[2]; /* 0xrrggbb; functions of a kind have colours between the two */
};

extern const struct frame_kind frame_kinds[];
extern const size_t frame_kind_count;

/* Finds the kind of a frame; never NULL: a name without an annotation is of the program. */
const struct frame_kind *frame_kind_of(const char *name, size_t length);

/* Bytes of name without its annotation. */
size_t frame_kind_plain(const struct frame_kind *kind, size_t length);

/* Stacks merged into a tree of frames, in bounded memory; folded stacks and flame graphs are
 * written from it. Names are transient (base/names.h).
 *
 * A weight has two parts: time on a CPU and off it, or before and after.
 */
#define FRAMES_MAX (1u << 18)
#define FRAME_DEPTH_MAX 512
/* Names of frames for stacks that did not fit or have no frame. */
#define FRAMES_FULL "[more frames than tsnap keeps]"
#define FRAMES_NONE "-"
#define FRAMES_DEEPER "[deeper frames]"

enum frame_part {
	PART_ON = 0,
	PART_OFF = 1,
	PART_BEFORE = 0,
	PART_AFTER = 1,
	PART_COUNT = 2,
};

struct frame_node {
	const char *name; /* name with its annotation */
	const struct frame_kind *kind;
	uint32_t parent, child, sibling; /* child and sibling: after frame_tree_sort(); 0: none */
	uint32_t depth;
	int64_t own[PART_COUNT]; /* weight of stacks that end here */
	int64_t all[PART_COUNT]; /* weight of these and of all frames above */
};

/* A zeroed tree is empty. Node 0 is below all stacks; it exists once one was added. */
struct frame_tree {
	struct frame_node *nodes;
	size_t count, capacity;
	struct index names;    /* name to its number */
	struct index children; /* node and a name's number to a child */
};

/* frames: outermost first, separated by ';'; empty ones are skipped. Returns the number of the node
 * that got the weight as its own. */
uint32_t frame_tree_add(struct frame_tree *tree, const char *frames, enum frame_part part,
			int64_t weight);
/* Orders each node's children by name. */
void frame_tree_sort(struct frame_tree *tree);
/* The node after this one, parents first; 0: it was the last. past: skip the nodes above this
 * one. */
uint32_t frame_tree_next(const struct frame_tree *tree, uint32_t at, bool past);
void frame_tree_done(struct frame_tree *tree);

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

/* Adds all rows; time on a CPU and time off it are separate. nodes: gets the number of each row's
 * node; NULL: not wanted. */
void fold_interval(struct frame_tree *tree, const struct interval *interval, uint32_t *nodes);

/* Adds a line per stack, by name. The tree must be sorted. */
void fold_write(struct text *out, const struct frame_tree *tree);

/* Reads lines until the end of text; name is for errors. Frames become printable if they are not.
 * 0, or -EINVAL with e. */
int fold_read(struct frame_tree *tree, const char *name, const char *text, enum frame_part part,
	      struct error *e);

#endif
