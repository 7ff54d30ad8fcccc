/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of waits of which a later scan knows more (who has the other end of a socket, for
 * instance): held back until the interval ends, so that what is found out is filled in for all of
 * them, and a report has one line of such a wait. In bounded memory: what does not fit is not held.
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
	struct late_sample *samples;
	size_t count, capacity;
	struct late_fact *facts; /* of each wait that a sample is held of */
	size_t fact_count, fact_capacity;
	struct index places; /* key of a wait to place in facts, plus one */
};

/* Takes note of what the sample knows. True: it was copied, and is to be added later. */
bool late_waits_hold(struct late_waits *waits, const struct sample *sample, struct exact_note note);

typedef void late_taker(void *to, const struct sample *sample, struct exact_note note);
/* Hands over all that was held, with what is known of their waits by now, and forgets it. */
void late_waits_end(struct late_waits *waits, late_taker *take, void *to);
void late_waits_done(struct late_waits *waits);

#endif
