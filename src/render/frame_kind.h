/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of frames, shown by an annotation at the end of a frame's name. The annotations _[k] _[j]
 * _[i] _[w] are those of flamegraph.pl; the others stay inside tsnap.
 */
#ifndef TSNAP_RENDER_FRAME_KIND_H
#define TSNAP_RENDER_FRAME_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_KERNEL "_[k]"
#define FRAME_SYSCALL "_[s]"
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

#endif
