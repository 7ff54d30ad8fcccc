/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines: the goroutines of one process, as text. It loads no BPF programs, and has a parser
 * and a sandbox of its own. */
#ifndef TSNAP_LIVE_LIVE_GOROUTINES_H
#define TSNAP_LIVE_LIVE_GOROUTINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A group of goroutines with the same state, reason, stack and, if they are asked for, labels. */
struct goroutine_row {
	int64_t time_us, pid; /* time: UTC, when the goroutines were read */
	const char *go;	      /* version */
	int64_t count;
	const char *state, *reason; /* NULL: it has none */
	int64_t waited_ns;	    /* longest wait of the group; ABSENT: not dated */
	int64_t runtime;	    /* 1: of Go's runtime itself */
	const char *stack;	    /* folded; NULL: it has none */
	const char *context;	    /* labels: "a=1, b=2"; NULL: it has none */
};

/* Receives a row; its texts are transient (base/names.h). */
typedef void goroutine_callback(void *to, const struct goroutine_row *row);

/* Reads the goroutines of a process. all: also those of the runtime. labels: with those of
 * runtime/pprof. free: no sandbox. take: NULL,
 * or receives the groups; then out has only what was missed, if anything. 0, or -errno with e. */
int live_goroutines(int64_t pid, bool all, bool labels, bool free, goroutine_callback *take,
		    void *to, struct text *out, struct error *e);

#endif
