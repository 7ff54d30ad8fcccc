/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/archive.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_US (60 * US_PER_SECOND)

/* Sums of a thread since its last row in the archive. */
struct archive_sums {
	int64_t tid, seen_us;
	struct sample_sums sums;
};

static struct archive_sums *sums_of(struct archive *archive, int64_t tid)
{
	uint64_t *number = index_put(&archive->threads, (uint64_t)tid, NULL);

	if (!*number) {
		archive->sums = memory_grow(archive->sums, &archive->sum_capacity,
					    archive->sum_count + 1, sizeof(*archive->sums));
		archive->sums[archive->sum_count++] =
			(struct archive_sums){.tid = tid, .sums = sample_absent()->sums};
		*number = archive->sum_count;
	}
	return &archive->sums[*number - 1];
}

/* Drops the sums of threads that were not seen for long: these have exited, or are idle. */
static void sums_sweep(struct archive *archive, int64_t now_us)
{
	size_t kept = 0;

	if (now_us - archive->swept_us < SWEEP_US)
		return;
	archive->swept_us = now_us;
	index_empty(&archive->threads);
	for (size_t i = 0; i < archive->sum_count; i++) {
		const struct archive_sums *sums = &archive->sums[i];

		if (sums->seen_us < now_us - SWEEP_US)
			continue;
		archive->sums[kept++] = *sums;
		*index_put(&archive->threads, (uint64_t)archive->sums[kept - 1].tid, NULL) = kept;
	}
	archive->sum_count = kept;
}

/* Adds the thread's sums to the sample of an archived scan, or the sample's to the sums. */
static void sums_move(struct archive *archive, struct sample *sample)
{
	struct archive_sums *sums = sums_of(archive, sample->thread.tid);

	sums->seen_us = archive->elapsed_us;
	if (!archive->now) {
		sample_sums_add(&sums->sums, &sample->sums);
		return;
	}
	sample_sums_add(&sample->sums, &sums->sums);
	sums->sums = sample_absent()->sums;
}

/* True if a scan is archived: it is the first since one was due. The next one is due after half a
 * period to one and a half, by chance: see sampler.h. */
static bool scan_is_due(struct archive *archive, int64_t elapsed_us)
{
	int64_t every_us = archive->every_us;

	/* first scan, or first after a pause */
	if (archive->due_us < elapsed_us - every_us)
		archive->due_us = elapsed_us;
	if (elapsed_us < archive->due_us)
		return false;
	archive->due_us +=
		every_us / 2 + (int64_t)(hash_u64((uint64_t)elapsed_us) % (uint64_t)every_us);
	return true;
}

/* Begins a scan: call for its first row, or at its end if it has none. */
static void scan_begin(struct archive *archive, const struct scan *scan)
{
	if (archive->begun)
		return;
	archive->begun = true;
	archive->rows = 0;
	archive->now = scan_is_due(archive, archive->elapsed_us + scan->weight_us);
}

struct scan archive_take(struct archive *archive, const struct scan *batch)
{
	struct scan archived = {.samples = archive->samples};

	if (!archive->every_us || !batch->count)
		return archived;
	scan_begin(archive, batch);
	archive->samples = memory_grow(archive->samples, &archive->capacity, batch->count,
				       sizeof(*archive->samples));
	for (size_t i = 0; i < batch->count; i++) {
		struct sample *sample = &archive->samples[i];

		*sample = batch->samples[i];
		sums_move(archive, sample);
		if (sample->scan.weight_us != ABSENT)
			sample->scan.weight_us += archive->weight_us;
	}
	archived.samples = archive->samples;
	archived.count = archive->now ? batch->count : 0;
	archive->rows += (int64_t)archived.count;
	return archived;
}

bool archive_scan_end(struct archive *archive, const struct scan *scan, struct scan_row *row)
{
	if (!archive->every_us)
		return false;
	scan_begin(archive, scan);
	archive->begun = false;
	archive->weight_us += scan->weight_us;
	archive->elapsed_us += scan->weight_us;
	archive->clock_step_us += scan->clock_step_us;
	if (!archive->now)
		return false;
	*row = (struct scan_row){
		.time_us = scan->time_us,
		.weight_us = archive->weight_us,
		.samples = archive->rows,
		.threads = (int64_t)scan->threads,
		.clock_step_us = archive->clock_step_us,
	};
	archive->weight_us = archive->clock_step_us = 0;
	sums_sweep(archive, archive->elapsed_us);
	return true;
}

void archive_done(struct archive *archive)
{
	index_clear(&archive->threads);
	free(archive->sums);
	free(archive->samples);
	*archive = (struct archive){0};
}
