/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of the live source on itself: the facts and misses below a report, and with -v what was
 * chosen at the start. For src/live only.
 */
#ifndef TSNAP_LIVE_LIVE_DESCRIBE_H
#define TSNAP_LIVE_LIVE_DESCRIBE_H

#include <stdint.h>

struct kernel;
struct live_config;
struct source;
struct source_status;
struct text;

/* Implements describe of struct source. */
void live_describe(struct source *source, struct source_status *status);

/* Adds which kernel types and probes were chosen. groups: GROUP_BIT()s of the probe groups
 * that were requested. */
void live_chosen_describe(const struct live_config *config, const struct kernel *kernel,
			  uint64_t groups, struct text *to);

#endif
