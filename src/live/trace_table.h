/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds that --trace can measure: a row for each, at its LATENCY_x of bpf_text/latency.h.
 *
 * A new kind is a LATENCY_x and its row here: name, help, own columns, what its events report, the
 * probe groups it needs, and how its words fill a sample. Its probe, in a fragment of its own or a
 * present one, is switched by LATENCY_HAS(LATENCY_x), fills the key (latency_key_fill, then what)
 * and calls latency_add(); one that measures calls slow_event() beside it. A probe that has other
 * data to report calls event_begin() and event_end() around writing it, and event_at() for the
 * event's address after each call of a helper.
 */
#ifndef TSNAP_LIVE_TRACE_TABLE_H
#define TSNAP_LIVE_TRACE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/record.h"
#include "sample/sample.h"
#include "sample/trace_kind.h"

struct trace_row {
	struct trace_kind kind;
	bool single;	     /* reported as single events, not as distributions */
	unsigned int groups; /* probe groups, 1 << GROUP_x, without which it can't be measured */
	/* Fills the kind's own fields of sample from key->what; *compat: syscall_nr is that of a
	 * 32-bit caller. NULL: it has none. */
	void (*report)(const struct latency_key *key, struct sample *sample, bool *compat);
};

extern const struct trace_row trace_rows[LATENCY_KIND_COUNT];

/* Parses names with commas between. *kinds becomes bits 1 << LATENCY_x. 0, or -EINVAL with a usage
 * error that suggests the nearest name. */
int trace_kinds_parse(const char *names, uint32_t *kinds, struct error *e);
/* Returns the kinds that are reported as single events. */
uint32_t trace_singles_of(uint32_t kinds);
/* Returns all probe groups that these kinds need. */
unsigned int trace_groups_of(uint32_t kinds);
/* Adds what --list prints of the kinds. */
void trace_kinds_describe(struct text *text);

#endif
