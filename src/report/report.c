/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"
#include "base/memory.h"

#include <stdlib.h>

int report_begin(struct report *report, const struct report_part *const *parts)
{
	int used = 0;

	for (; *parts && used >= 0; parts++) {
		void *state = memory_get((*parts)->bytes);

		used = (*parts)->begin(state, report);
		if (used)
			report->uses[report->use_count++] = (struct report_use){*parts, state};
		else
			free(state);
	}
	return used < 0 ? used : 0;
}

void *report_state(const struct report *report, const struct report_part *part)
{
	for (size_t i = 0; i < report->use_count; i++)
		if (report->uses[i].part == part)
			return report->uses[i].state;
	return NULL;
}

uint64_t report_needs(const struct report *report)
{
	uint64_t needs = 0;

	REPORT_EACH (use, report, needs)
		needs |= use->part->needs(use->state);
	return needs;
}

int report_open(struct report *report)
{
	int err = 0;

	REPORT_EACH (use, report, open)
		err = err ? err : use->part->open(use->state, report);
	return err;
}

void report_take(struct report *report, const struct scan *batch)
{
	REPORT_EACH (use, report, take)
		if (use->part->take(use->state, report, batch))
			return;
}

void report_add(struct report *report, const struct sample *sample, struct exact_note note)
{
	REPORT_EACH (use, report, add)
		use->part->add(use->state, sample, note);
}

void report_add_account(void *to, const struct sample *account)
{
	struct report *report = to;

	tally_add_account(&report->tally, account);
	REPORT_EACH (use, report, add_account)
		use->part->add_account(use->state, account);
}

int report_collect(struct report *report, bool all)
{
	int err = 0;

	REPORT_EACH (use, report, collect)
		err = err ? err : use->part->collect(use->state, report, all);
	return err;
}

void report_end(struct report *report)
{
	REPORT_EACH (use, report, end)
		use->part->end(use->state, report);
}

void report_clear(struct report *report)
{
	REPORT_EACH (use, report, clear)
		use->part->clear(use->state);
	report->tally = (struct tally){0};
	for (size_t i = 0; i < report->missed_count; i++)
		report->missed[i].count = 0;
}

void report_miss(struct report *report, const char *what, int64_t count)
{
	struct report_missed *missed = report->missed;

	if (!count)
		return;
	while (missed < report->missed + report->missed_count && missed->what != what)
		missed++;
	report->missed_count = (size_t)(missed - report->missed) == report->missed_count
				       ? report->missed_count + 1
				       : report->missed_count;
	missed->what = what;
	missed->count += (uint64_t)count;
	missed->ever += (uint64_t)count;
}

void report_add_missed(const struct report *report, bool ever, struct source_status *status)
{
	for (size_t i = 0; i < report->missed_count; i++)
		source_status_miss_any(status, report->missed[i].what,
				       ever ? report->missed[i].ever : report->missed[i].count);
}

void report_release(struct report *report)
{
	REPORT_EACH (use, report, release)
		use->part->release(use->state);
}

bool report_holds(const struct report *report)
{
	bool holds = false;

	REPORT_EACH (use, report, holds)
		holds |= use->part->holds(use->state);
	return holds;
}

void report_save(struct report *report)
{
	REPORT_EACH (use, report, save)
		use->part->save(use->state, report);
}

void report_done(struct report *report)
{
	for (size_t i = 0; i < report->use_count; i++) {
		if (report->uses[i].part->done)
			report->uses[i].part->done(report->uses[i].state);
		free(report->uses[i].state);
	}
	exact_times_done(&report->times);
	grid_done(&report->grid);
	text_done(&report->out);
	filter_done(&report->filter);
}

void report_lacks(const struct report *report, const struct column_list *of,
		  struct column_list *lacking)
{
	lacking->count = 0;
	for (size_t i = 0; report->source->lacks && i < sample_column_count; i++)
		if (column_list_has(of, &sample_columns[i]) &&
		    report->source->lacks(report->source, &sample_columns[i]))
			lacking->items[lacking->count++] = &sample_columns[i];
}
