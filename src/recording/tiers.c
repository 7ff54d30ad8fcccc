/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/tiers.h"
#include "base/memory.h"
#include "report/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A tier, with the scan that was read ahead. */
struct tier {
	struct source *source;
	struct scan scan;
	bool ahead, ended;
	struct sample *refused; /* samples of the scan that the filter refused, if wanted */
	size_t refused_count, refused_capacity;
};

struct tiers {
	struct source source; /* first member, so that a source is a tiers */
	struct tier fine, archive;
	int64_t fine_us; /* weight of the fine scans since the last scan of the archive */
};

static void refused_take(void *take_to, const struct scan *scan, const struct sample *sample)
{
	struct tier *tier = take_to;

	(void)scan;
	tier->refused = memory_grow(tier->refused, &tier->refused_capacity, tier->refused_count + 1,
				    sizeof(*tier->refused));
	tier->refused[tier->refused_count++] = *sample;
}

/* Reads a scan ahead, if there is none yet. 0, or below 0 as next() of a source. */
static int tier_peek(struct tier *tier, bool refused, struct error *e)
{
	int more;

	if (tier->ahead || tier->ended)
		return 0;
	tier->source->pass = refused ? refused_take : NULL;
	tier->source->take_to = tier;
	more = tier->source->next(tier->source, &tier->scan, e);
	tier->ahead = more > 0;
	tier->ended = !more;
	return more < 0 ? more : 0;
}

/* Takes the scan that was read ahead; wanted: it is the next one, else it is dropped. */
static void tier_take(struct tiers *tiers, struct tier *tier, bool wanted)
{
	for (size_t i = 0; wanted && i < tier->refused_count; i++)
		tiers->source.pass(tiers->source.take_to, &tier->scan, &tier->refused[i]);
	tier->refused_count = 0;
	tier->ahead = false;
}

static int tiers_next(struct source *source, struct scan *scan, struct error *e)
{
	struct tiers *tiers = (struct tiers *)source;
	struct tier *fine = &tiers->fine, *archive = &tiers->archive;

	for (;;) {
		int err = tier_peek(fine, source->pass, e);
		bool lacking;

		if (!err)
			err = tier_peek(archive, source->pass, e);
		if (err)
			return err;
		if (!fine->ahead && !archive->ahead)
			return 0;
		if (fine->ahead &&
		    (!archive->ahead || fine->scan.time_us <= archive->scan.time_us)) {
			tiers->fine_us += fine->scan.weight_us;
			tier_take(tiers, fine, true);
			*scan = fine->scan;
			return 1;
		}
		/* a scan of the archive is also a fine scan, if those are still there */
		lacking = tiers->fine_us < archive->scan.weight_us / 2;
		tiers->fine_us = 0;
		tier_take(tiers, archive, lacking);
		if (!lacking)
			continue;
		*scan = archive->scan;
		return 1;
	}
}

static void missed_add(struct source_status *status, const struct source_missed *missed)
{
	for (size_t i = 0; i < status->missed_count; i++) {
		if (strcmp(status->missed[i].what, missed->what))
			continue;
		status->missed[i].count =
			(uint64_t)sum((int64_t)status->missed[i].count, (int64_t)missed->count);
		return;
	}
	*source_status_miss(status, missed->what, missed->count) = *missed;
}

static void tiers_describe(struct source *source, struct source_status *status)
{
	struct tiers *tiers = (struct tiers *)source;
	struct source_status *of_archive = memory_get(sizeof(*of_archive));

	tiers->fine.source->describe(tiers->fine.source, status);
	tiers->archive.source->describe(tiers->archive.source, of_archive);
	for (size_t i = 0; i < of_archive->missed_count; i++)
		missed_add(status, &of_archive->missed[i]);
	free(of_archive);
}

static void tier_close(struct tier *tier)
{
	tier->source->close(tier->source);
	free(tier->refused);
}

static void tiers_close(struct source *source)
{
	struct tiers *tiers = (struct tiers *)source;

	tier_close(&tiers->fine);
	tier_close(&tiers->archive);
	free(tiers);
}

struct source *tiers_new(struct source *fine, struct source *archive)
{
	struct tiers *tiers = memory_get(sizeof(*tiers));

	tiers->source = (struct source){
		.next = tiers_next, .describe = tiers_describe, .close = tiers_close};
	tiers->fine.source = fine;
	tiers->archive.source = archive;
	return &tiers->source;
}

bool tiers_of(const struct source *source, struct source **fine, struct source **archive)
{
	const struct tiers *tiers = (const struct tiers *)source;

	if (source->next != tiers_next)
		return false;
	*fine = tiers->fine.source;
	*archive = tiers->archive.source;
	return true;
}
