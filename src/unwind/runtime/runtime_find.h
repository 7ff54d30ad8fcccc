/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a language's runtime in a process, for modules that read its locks in its memory: by the
 * name of the file that it is mapped from, and by what the file exports, which a parser reads.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_FIND_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/process_maps.h"
#include "unwind/runtime/runtime_reader.h"

struct runtime_kind {
	/* Beginnings of the names of its files, with "/" before them; NULL at the end */
	const char *names[3];
	/* True if a file with these exports is such a runtime. */
	bool (*is)(const struct runtime_exports *exports);
};

/* A runtime in a process. */
struct runtime_location {
	uint64_t distance; /* addresses in the process, less those that are exported */
	struct runtime_exports exports;
};

/* Has a parser read the process' files with such names, until one is such a runtime. */
bool runtime_find(const struct runtime_reader *reader, const struct stack_thread *thread,
		  const struct runtime_kind *kind, struct runtime_location *location);

/* Makes a runtime_request() about a thread and the runtime at a location, both of which are put
 * into request. Fills that many bytes of answer and returns 0; or returns -errno, and answer is
 * unchanged. */
int runtime_location_request(struct runtime_reader *reader, struct runtime_standing *standing,
			     const struct stack_thread *thread,
			     const struct runtime_location *location,
			     struct runtime_request *request, bool faults, void *answer,
			     size_t bytes);

/* Time that looking for runtimes took in a scan, of all processes. */
struct runtime_looks {
	int64_t scan_ns, spent_ns;
};

/* True if a look that is due at due_ns may begin now; *began_ns is for runtime_look_end(). */
bool runtime_look_begin(struct runtime_looks *looks, int64_t now_ns, int64_t due_ns,
			int64_t *began_ns);
/* Returns when the next look is due: after rest_ns, or later if this one took long. */
int64_t runtime_look_end(struct runtime_looks *looks, int64_t now_ns, int64_t began_ns,
			 int64_t rest_ns);

#endif
