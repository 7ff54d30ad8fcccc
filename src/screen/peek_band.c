/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Number of threads that a row had in each step of the band. Counting visits all samples of the
 * history, and ten minutes of a busy host are millions of them: counts are kept, and older samples
 * are counted from the newest on, for a part of a second, then with the next answers. */
#include "screen/shown.h"
#include "report/value.h"

#include <string.h>

struct counting {
	struct peek_band *counts;
	size_t steps;
	const struct filter *filter;
	bool remembers; /* the filter reads nothing that changes while a thread goes on */
	size_t step;	/* step that the scan is in; equal to the number of steps: none */
};

static void count_scan(void *to, const struct history_scan *scan)
{
	struct counting *counting = to;
	struct peek_band *counts = counting->counts;
	int64_t step = (scan->time_us - counts->from_us) / counts->step_us;

	counting->step = scan->time_us < counts->from_us || step >= (int64_t)counting->steps
				 ? counting->steps
				 : (size_t)step;
	if (counting->step < counting->steps)
		counts->scans[step] +=
			scan->silent_us ? 1 + ratio(scan->silent_us, 1, scan->weight_us) : 1;
}

/* Counts a sample. *memo: 1 if the filter refuses it, 2 if it accepts it. */
static void count_sample(void *to, const struct sample *sample, uint64_t *memo)
{
	struct counting *counting = to;

	if (counting->step == counting->steps)
		return;
	if (!*memo || !counting->remembers)
		*memo = filter_accepts(counting->filter, sample) ? 2 : 1;
	counting->counts->samples[counting->step] += *memo == 2;
}

/* Keeps the counts if the same filter and steps are counted again, moved by the steps that have
 * passed. */
static void counts_move(struct peek_band *counts, const struct shown *shown,
			const struct question *question)
{
	const struct band *band = &shown->band;
	int64_t until_us = shown->history.last_us + 1, steps;

	steps = counts->step_us ? (band->from_us - counts->from_us) / counts->step_us : -1;
	if (counts->step_us != band->step_us || steps < 0 || steps >= BAND_STEPS_MAX ||
	    counts->all_states != question->all_states ||
	    strcmp(counts->filter, question->filter) != 0 ||
	    counts->seen.until_us + SEEN_GAP_US < until_us) {
		*counts = (struct peek_band){.step_us = band->step_us,
					     .all_states = question->all_states};
		text_into(counts->filter, sizeof(counts->filter), question->filter);
		counts->seen = history_seen_none(&shown->history);
		steps = 0;
	}
	memmove(counts->samples, counts->samples + steps,
		(BAND_STEPS_MAX - (size_t)steps) * sizeof(counts->samples[0]));
	memmove(counts->scans, counts->scans + steps,
		(BAND_STEPS_MAX - (size_t)steps) * sizeof(counts->scans[0]));
	memset(counts->samples + BAND_STEPS_MAX - steps, 0,
	       (size_t)steps * sizeof(counts->samples[0]));
	memset(counts->scans + BAND_STEPS_MAX - steps, 0, (size_t)steps * sizeof(counts->scans[0]));
	counts->from_us = band->from_us;
}

void peek_band_fill(struct peek_band *counts, const struct shown *shown,
		    const struct question *question, const struct filter *filter)
{
	const struct history_view *history = &shown->history;
	struct counting counting = {.counts = counts,
				    .steps = shown->band.count,
				    .filter = filter,
				    .remembers =
					    !expression_reads(&filter->expression, history_varies)};
	struct history_visitor visitor = {
		.scan = count_scan, .to = &counting, .sample_memo = count_sample};

	if (!shown->band.count)
		return;
	counts_move(counts, shown, question);
	history_visit_part(history, &counts->seen, counts->from_us, &visitor);
}
