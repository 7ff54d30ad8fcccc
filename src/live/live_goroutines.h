/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines: the goroutines of one process, as text. It loads no BPF programs, and has a parser
 * and a sandbox of its own. */
#ifndef TSNAP_LIVE_LIVE_GOROUTINES_H
#define TSNAP_LIVE_LIVE_GOROUTINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* A group of goroutines with the same state, reason, stack and, if they are asked for, labels; or
 * of asyncio tasks (live_tasks.h). NULL, or ABSENT: it has none. */
struct routine_row {
	int64_t time_us, pid; /* time: UTC, when they were read */
	const char *version;  /* of Go, of Python */
	int64_t count;
	const char *state;
	const char *stack; /* folded */
	/* goroutines only: */
	const char *reason;
	int64_t waited_ns;   /* longest wait of the group; ABSENT: not dated */
	int64_t runtime;     /* 1: of Go's runtime itself */
	const char *context; /* labels: "a=1, b=2" */
	/* tasks only: */
	int64_t tid; /* of the thread of their event loop */
	const char *names, *awaited_by;
};

/* Receives a row; its texts are transient (base/names.h). */
typedef void routine_callback(void *to, const struct routine_row *row);

/* Reads the goroutines of a process. all: also those of the runtime. labels: with those of
 * runtime/pprof. free: no sandbox. take: NULL,
 * or receives the groups; then out has only what was missed, if anything. 0, or -errno with e. */
int live_goroutines(int64_t pid, bool all, bool labels, bool free, routine_callback *take, void *to,
		    struct text *out, struct error *e);

#endif
