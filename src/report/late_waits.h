/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of which a later scan knows more (who has the other end of a socket that is waited for,
 * the names of a stack's functions): held back until the interval ends, so that what is found out
 * is filled in for all of them, and a report has one line of such a wait; rows (--patience) until
 * it is found out, for so long. In bounded memory: a report does not hold what does not fit, rows
 * wait for less long.
 */
#ifndef TSNAP_REPORT_LATE_WAITS_H
#define TSNAP_REPORT_LATE_WAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/index.h"
#include "report/exact_times.h"
#include "sample/sample.h"

#define LATE_WAITS_MAX 8192 /* samples, some 7 MB */

struct late_sample;
struct late_fact;

/* Zeroed is empty. */
struct late_waits {
	struct late_sample *samples; /* count of them, the oldest at first */
	size_t first, count, capacity;
	struct late_fact *facts; /* facts of waits and stacks of samples that are held */
	size_t fact_count, fact_capacity;
	struct index slots; /* key of a wait to place in facts, plus one */
};

/* Takes note of what the sample knows. True: it was copied, and is to be added later. */
bool late_waits_hold(struct late_waits *waits, const struct sample *sample, struct exact_note note);

typedef void late_callback(void *to, const struct sample *sample, struct exact_note note);
/* Hands over all that was held, with what is known of their waits by now, and forgets it. */
void late_waits_end(struct late_waits *waits, late_callback *take, void *to);
/* For rows, which stay in order: holds the sample, open or not, and hands over those before it and
 * itself as far as nothing is looked for any more. Not to be mixed with late_waits_hold(). */
void late_waits_queue(struct late_waits *waits, const struct sample *sample, late_callback *take,
		      void *to);
/* Passes on without a new sample; those that were seen until until_us (UTC) wait no longer. */
void late_waits_pass(struct late_waits *waits, int64_t until_us, late_callback *take, void *to);
void late_waits_done(struct late_waits *waits);

#endif
