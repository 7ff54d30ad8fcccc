/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter of samples: the ids and the state of a thread, and an expression over all columns.
 * -u, -c and --cgroup become parts of that expression. Sources evaluate it as early as they can:
 * what ids, the record or a cheap lookup refuse needs no other lookup. A field that a recording
 * does not hold refuses every filter on it, except the state: without it every sample counts as
 * active.
 *
 * An expression that names the state, or a rule of why (sample/wait_rule.h) for idle threads,
 * decides about states itself; otherwise threads in all states are wanted, or active ones and of
 * the sleeping ones (S) those that work.
 *
 * Processes are selected by a list of ids and of names (process_name.h); one of them must match.
 * The live source resolves the list against /proc and adds ids, once or whenever it looks again; a
 * replay has only the samples, and compares a name with that of the sample's thread.
 */
#ifndef TSNAP_SAMPLE_FILTER_FILTER_H
#define TSNAP_SAMPLE_FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "base/text.h"
#include "sample/filter/expression.h"
#include "sample/sample.h"

/* A filter. A zeroed struct accepts every active sample, and sleepers that work. Strings are the
 * caller's and must outlive the filter. */
struct filter {
	struct text names; /* processes, each with its NUL; empty once they are resolved */
	struct index pids, tids;
	bool by_pid, by_tid;
	unsigned int changes; /* number of changes of pids and tids since the filter was made */
	bool all_states;
	bool no_samples;      /* accepts no sample: only threads that --trace reports */
	bool on_cpu, off_cpu; /* if one of them is set: only threads on a CPU, or only others */
	unsigned int states;  /* states the expression may accept, a bit each; 0: names none */
	bool idle_classes;    /* the expression names why, and may accept idle classes */
	struct expression expression;
};

/* Functions that take an option's text and return 0, or -EINVAL with a usage error. */
int filter_set_process(struct filter *filter, const char *text, struct error *e);
int filter_set_threads(struct filter *filter, const char *text, struct error *e);
/* Filters by user. anywhere: allows a name that this host does not know (for a recording of another
 * host). */
int filter_set_user(struct filter *filter, const char *text, bool anywhere, struct error *e);

/* Adds the expression of --filter, or a part of it. */
int filter_set_expression(struct filter *filter, const char *text, struct error *e);
/* Adds a shell pattern that a column must match; it must outlive the filter. */
void filter_set_pattern(struct filter *filter, const char *column, const char *pattern);

/* Adds a process, for the live source. From then on only ids decide, names do not. */
void filter_add_pid(struct filter *filter, int64_t pid);
/* Removes an id, which may be another process' by now. Without any process, none is accepted. */
void filter_remove_pid(struct filter *filter, int64_t pid);
void filter_remove_tid(struct filter *filter, int64_t tid);

/* Needs of the filter, NEED_*. */
uint64_t filter_needs(const struct filter *filter);

/* True if the filter reads that column, of sample_columns. */
bool filter_reads_column(const struct filter *filter, const struct column *column);

/* True if the filter can accept threads in that state (enum thread_state_kind);
 * filter_wants_idle(): in any state that is not active. */
bool filter_wants_state(const struct filter *filter, int64_t state);
bool filter_wants_idle(const struct filter *filter);
/* True if the expression reads only ids and facts that threads keep (NEEDS_OF_THREADS). */
bool filter_keeps_threads(const struct filter *filter);
/* True if the filter accepts threads in S only if they work. */
bool filter_wants_work(const struct filter *filter);

static inline bool filter_looks_at_ids(const struct filter *filter)
{
	return filter->by_pid || filter->by_tid || filter->expression.needs & KNOWN_IDS;
}

/* True if the ids alone refuse a thread: evaluated before there is a sample. */
bool filter_excludes(const struct filter *filter, int64_t pid, int64_t tid);
/* Verdict from what is known of the sample so far: KNOWN_* and NEED_*, and what needs nothing. */
enum verdict filter_eval(const struct filter *filter, const struct sample *sample, uint64_t known);
/* Verdict from ids and expression only: if these name no state, every state is wanted. */
enum verdict filter_eval_thread(const struct filter *filter, const struct sample *sample,
				uint64_t known);
/* True if the filter accepts a sample that is complete. */
bool filter_accepts(const struct filter *filter, const struct sample *sample);
void filter_done(struct filter *filter);

#endif
