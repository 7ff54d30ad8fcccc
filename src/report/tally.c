/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/tally.h"
#include "report/value.h"

static int64_t scan_active(const struct scan *scan)
{
	int64_t active = 0;

	for (size_t i = 0; i < scan->count; i++) {
		const struct state_row *state = state_row(scan->samples[i].now.state);

		active += !state || state->active;
	}
	return active;
}

int64_t tally_avg_thr(const struct tally *tally, int64_t weight)
{
	return ratio(weight, 100, tally->shared_us ? tally->elapsed_us : tally->scans);
}

int64_t tally_share(const struct tally *tally, int64_t weight)
{
	return ratio(weight, 1000, tally->shared_us ? tally->shared_us : tally->samples);
}

void tally_add_batch(struct tally *tally, const struct scan *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		tally->samples += sample_scans(&batch->samples[i]);
	tally->active_sum += scan_active(batch);
}

void tally_add(struct tally *tally, const struct scan *scan)
{
	int64_t active, threads = (int64_t)scan->threads;

	tally_add_batch(tally, scan);
	active = tally->active_sum;
	tally->active_sum = 0;
	/* threads were counted at the last look at all of them: many may have come since then */
	if (threads && threads < active)
		threads = active;
	if (!tally->scans)
		tally->from_us = scan->time_us - scan->weight_us;
	else
		tally->from_us = sum(tally->from_us, scan->clock_step_us);
	if (scan->clock_step_us) {
		tally->clock_steps++;
		tally->clock_step_us = scan->clock_step_us;
		tally->clock_stepped_us = scan->time_us;
	}
	tally->until_us = scan->time_us;
	tally->scans++;
	tally->elapsed_us = sum(tally->elapsed_us, scan->weight_us);
	tally->active += active;
	if (active > tally->active_max)
		tally->active_max = active;
	tally->threads += threads;
	if (threads > tally->threads_max)
		tally->threads_max = threads;
}

void tally_add_silence(struct tally *tally, int64_t from_us, int64_t silent_us, int64_t scans)
{
	if (!scans)
		return;
	if (!tally->scans)
		tally->from_us = from_us;
	tally->until_us = sum(from_us, silent_us);
	tally->scans = sum(tally->scans, scans);
	tally->elapsed_us = sum(tally->elapsed_us, silent_us);
}

void tally_add_account(struct tally *tally, const struct sample *account)
{
	tally->forks = sum(tally->forks, account->sums.forks);
	tally->execs = sum(tally->execs, account->sums.execs);
	tally->exits = sum(tally->exits, account->sums.exits);
	tally->dead_cpu_us = sum(tally->dead_cpu_us, account->sums.dead_cpu_us);
	if (account->sums.dead_cpu_us <= tally->most_cpu_us)
		return;
	tally->most_cpu_us = account->sums.dead_cpu_us;
	tally->most_comm = account->thread.comm;
	tally->most_user = account->thread.user;
}
