/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds samples of which a later scan will know more: the process at the other end of a socket, or
 * the names of a stack's functions. For a report, they are held until the interval ends. Then the
 * facts are filled in for all of them, so that such a wait has one line. Rows (--patience) are held
 * until the facts are found, at most for that long. Memory is bounded: a report does not hold
 * samples that do not fit, and rows wait for a shorter time.
 */
#ifndef TSNAP_REPORT_LATE_WAITS_H
#define TSNAP_REPORT_LATE_WAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/index.h"
#include "report/exact_times.h"
#include "sample/sample.h"

#define LATE_WAITS_MAX 8192 /* limit of samples, some 7 MB */

struct late_sample;
struct late_fact;

/* A zeroed struct is empty. */
struct late_waits {
	struct late_sample *samples; /* count samples; the oldest is samples[first] */
	size_t first, count, capacity;
	int64_t now_us; /* set by the owner: time that passed until rows are queued or passed */
	struct late_fact *facts; /* facts of waits and stacks of samples that are held */
	size_t fact_count, fact_capacity;
	struct index slots; /* key of a wait to index in facts, plus one */
};

/* Notes the sample's facts. True: the sample was copied, and is handed over later. */
bool late_waits_hold(struct late_waits *waits, const struct sample *sample, struct exact_note note);

typedef void late_callback(void *to, const struct sample *sample, struct exact_note note);
/* Hands over all held samples, with what is known of their waits by now, and forgets them. */
void late_waits_end(struct late_waits *waits, late_callback *take, void *to);
/* Holds a row's sample, open or not, and hands over, in order, the samples up to the first for
 * which facts are still looked for. Not to be mixed with late_waits_hold(). */
void late_waits_queue(struct late_waits *waits, const struct sample *sample, late_callback *take,
		      void *to);
/* Hands over rows without a new sample; those queued until until_us (now_us) wait no longer. */
void late_waits_pass(struct late_waits *waits, int64_t until_us, late_callback *take, void *to);
void late_waits_done(struct late_waits *waits);

#endif
