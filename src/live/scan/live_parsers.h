/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsers of the live source (src/parser): for all of src/unwind, for files in which runtimes of
 * containers keep names, and for files that --probe names.
 */
#ifndef TSNAP_LIVE_LIVE_PARSERS_H
#define TSNAP_LIVE_LIVE_PARSERS_H

#include "live/context/live_context.h"
#include "proc/containers.h"

/* Forks the spawner if the context's needs, or --probe, want parsers; context->parsers stays NULL
 * otherwise. */
void live_parsers_begin(struct live_context *context);
/* Starts the parsers of stacks, if the needs want any: after what tsnap can't run without, where
 * processes are few (pids.max). */
void live_parsers_start(struct live_context *context);
void live_parsers_end(struct live_context *context);

container_file_reader live_container_read; /* `of` is a struct live_context */

#endif
