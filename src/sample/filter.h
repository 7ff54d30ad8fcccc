/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which samples are wanted. Used by sources only, on what is known of a thread before any lookup:
 * tid, pid, uid, comm and state (and, replayed, user and exe). A field that a recording does not
 * hold refuses every filter on it, except the state: without it every sample counts as active.
 *
 * A process is asked for by ids, or by a pattern. The live source resolves either against /proc and
 * adds ids, once or whenever it looks again; a replay has only the samples, so ids match the
 * process id, and a pattern the thread's name or the base name of its program.
 */
#ifndef TSNAP_SAMPLE_FILTER_H
#define TSNAP_SAMPLE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "sample/sample.h"

/* Zeroed accepts every active sample. Strings are the caller's and must outlive the filter. */
struct filter {
	const char *pattern; /* of a process; NULL: none, or resolved into pids */
	struct index pids, tids;
	bool by_pid, by_tid, by_user;
	const char *user; /* as typed; of a number, the name that this host has for it */
	int64_t uid;	  /* meant with by_user; ABSENT: this host does not know the user */
	bool uid_typed;	  /* a number was typed, so a known uid decides, else a known name */
	const char *comm; /* pattern of the thread's name; NULL: any */
	bool all_states;
	bool on_cpu, off_cpu; /* one of them: only threads on a CPU, or only others */
};

/* Each takes the option's text and gives 0, or -EINVAL with a usage error. */
int filter_set_process(struct filter *filter, const char *text, struct error *e);
int filter_set_threads(struct filter *filter, const char *text, struct error *e);
/* anywhere: a name that this host does not know is fine (a recording of another host). */
int filter_set_user(struct filter *filter, const char *text, bool anywhere, struct error *e);

/* For the live source: adds a process. From then on ids alone decide, and no pattern. */
void filter_add_pid(struct filter *filter, int64_t pid);

/* What it looks at, enum sample_needs. */
unsigned int filter_needs(const struct filter *filter);

/* Whether the ids alone refuse a thread: asked before there is a sample. */
bool filter_excludes(const struct filter *filter, int64_t pid, int64_t tid);
bool filter_accepts(const struct filter *filter, const struct sample *sample);
/* The same, whatever the state. */
bool filter_accepts_thread(const struct filter *filter, const struct sample *sample);
void filter_done(struct filter *filter);

/* Shell pattern, fnmatch(3); without * ? [ it matches anywhere in text. */
bool pattern_matches(const char *pattern, const char *text);

#endif
