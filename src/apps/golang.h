/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels of goroutines (runtime/pprof: Do, SetGoroutineLabels): those of the goroutine that a
 * thread runs. x86-64 only.
 *
 * A thread has its goroutine, a struct g (src/runtime/runtime2.go), in thread-local storage; or,
 * while it runs code of C or the runtime's own, the one of its own stack, whose struct m leads to
 * it. Where a g has its labels the code says that sets them (unwind/elf/go_program.h).
 */
#ifndef TSNAP_APPS_GOLANG_H
#define TSNAP_APPS_GOLANG_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/app_modules.h"
#include "base/cache.h"

struct app_reader;

/* What is known of a program's file. */
struct golang {
	bool labelled; /* labels of its goroutines can be found */
	bool listed;   /* they are lists: unwind/go_labels.h */
	int64_t g_at;  /* from the thread pointer */
	uint32_t labels_at;
};

#define GOLANG_FILES_MAX 1024
void golang_init(struct cache *files);
/* Finds what the process' program is. Returns it, valid until the next call, or NULL: it has no
 * labels, or they can't be found. */
const struct golang *golang_find(struct app_reader *reader, const struct app_modules *modules,
				 struct cache *files);
/* The labels of the goroutine that the thread with that pointer runs, by their keys: "a=1, b=2".
 * NULL: it runs none, or that one has none. */
const char *golang_labels(struct app_reader *reader, const struct golang *golang, uint64_t pointer);

#endif
