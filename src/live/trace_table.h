/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds that --trace can measure: a row for each, at its LATENCY_x of bpf_text/latency.h.
 *
 * A new kind is a LATENCY_x and its row here: name, help, own columns, what its events report, the
 * probe groups it needs, and how its words fill a sample. Its probe, in a fragment of its own or a
 * present one, is switched by LATENCY_HAS(LATENCY_x), fills the key (identity_read if the thread's
 * is not full, latency_key_fill, then what) and calls latency_add(); one that measures calls
 * slow_event() beside it. A probe that has other data to report calls event_begin() and event_end()
 * around writing it, and event_at() for the event's address after each call of a helper. Some
 * system calls need no kind of their own: --trace syscalls --filter syscall=fsync.
 */
#ifndef TSNAP_LIVE_TRACE_TABLE_H
#define TSNAP_LIVE_TRACE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "sample/sample.h"
#include "sample/trace_kind.h"

struct latency_key;
struct own_probes;
struct trace_event;

struct trace_row {
	struct trace_kind kind;
	uint64_t groups;      /* probe groups, GROUP_BIT()s, without which it can't be measured */
	uint64_t more_groups; /* those that add to it where the host has them */
	uint64_t needs;	      /* facts of samples, NEED_*, without which it can't be measured */
	/* Fills the kind's own fields of sample from key->what; *compat: syscall_nr is that of a
	 * 32-bit caller. NULL: it has none. */
	void (*report)(const struct latency_key *key, struct sample *sample, bool *compat);
	/* Fills what a single event has beside its key. registers_marked: see registers_decode().
	 */
	void (*event)(const struct trace_event *event, bool registers_marked, struct sample *who,
		      bool *compat);
	bool of_call; /* an event is of a call, whose facts can be looked up */
	bool joined;  /* several events are one: live/scan/live_dns.h */
	bool own;     /* a probe of the user's own */
	bool texts;   /* events are counted by a text, whose key the key has (latency_key_each()) */
};

/* Returns the value of an event of a probe of the user's own, or the key of its text. */
uint64_t latency_key_each(const struct latency_key *key);

extern const struct trace_row trace_rows[]; /* at their LATENCY_x */

/* Returns the row of a kind, or of a probe of the user's own; NULL: there is none. */
const struct trace_row *trace_row_of(uint32_t kind);
/* Makes kinds of the user's own probes, in place of earlier ones. *kinds gets their bits. 0, or
 * -EINVAL with a usage error: a name is taken. */
int trace_own_set(const struct own_probes *own, uint32_t *kinds, struct error *e);

/* Parses names with commas between. *kinds becomes bits 1 << LATENCY_x. 0, or -EINVAL with a usage
 * error that suggests the nearest name. */
int trace_kinds_parse(const char *names, uint32_t *kinds, struct error *e);
/* Lists these kinds; ~0u: all. Returns their number, TRACE_KINDS_MAX at most. */
size_t trace_kinds_list(uint32_t kinds, const struct trace_kind **list);
/* Returns the kinds that are reported as single events; those of them that a report sums up as
 * distributions; and those that a screen of durations needs. */
uint32_t trace_singles_of(uint32_t kinds);
uint32_t trace_sums_of(uint32_t kinds);
uint32_t trace_kinds_of_screen(void);
/* Returns the kinds that a recorder has even if nobody asked for them. */
uint32_t trace_kinds_recorded(void);
/* Returns all probe groups that these kinds need. */
uint64_t trace_groups_of(uint32_t kinds);
uint64_t trace_more_groups_of(uint32_t kinds);
/* Returns all facts that samples must have for these kinds. */
uint64_t trace_needs_of(uint32_t kinds);
/* Adds what --list prints of the kinds. */
void trace_kinds_describe(struct text *text);

#endif
