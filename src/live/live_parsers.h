/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsers of the live source (src/parser): for all of src/unwind, and for files in which runtimes
 * of containers keep names.
 */
#ifndef TSNAP_LIVE_LIVE_PARSERS_H
#define TSNAP_LIVE_LIVE_PARSERS_H

#include "live/context/live_context.h"
#include "proc/container_file.h"

/* Starts the parsers that the context's needs want; context->parsers stays NULL where there are
 * none. */
void live_parsers_begin(struct live_context *context);
void live_parsers_end(struct live_context *context);

container_file_reader live_container_read; /* `of` is a struct live_context */

#endif
