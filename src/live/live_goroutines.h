/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines: those of one process, as text. Without BPF programs, and with a parser and a
 * sandbox of its own. */
#ifndef TSNAP_LIVE_LIVE_GOROUTINES_H
#define TSNAP_LIVE_LIVE_GOROUTINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A group of them: with one state, reason and stack. */
struct goroutine_row {
	int64_t time_us, pid; /* UTC, when they were read */
	const char *go;	      /* version */
	int64_t count;
	const char *state, *reason; /* NULL: it has none */
	int64_t waited_ns;	    /* longest wait of the group; ABSENT: not dated */
	int64_t runtime;	    /* 1: of Go's runtime itself */
	const char *stack;	    /* folded; NULL: it has none */
};

/* Takes a row, whose texts are transient (base/names.h). */
typedef void goroutine_callback(void *to, const struct goroutine_row *row);

/* all: also those of the runtime. free: no sandbox. take: NULL, or gets the groups; then out has
 * only what was missed, if anything. 0, or -errno with e. */
int live_goroutines(int64_t pid, bool all, bool free, goroutine_callback *take, void *to,
		    struct text *out, struct error *e);

#endif
