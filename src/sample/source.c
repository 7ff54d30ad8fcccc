/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/source.h"
#include "base/clock.h"

#include <string.h>

#define REFAULTED_LEAST 1000 /* bytes a millisecond */
#define REFAULTED_PERCENT 10

struct source_missed *source_status_miss(struct source_status *status, const char *what,
					 uint64_t count)
{
	struct source_missed missed = {.what = what, .count = count};

	if (status->missed_count < SOURCE_MISSED_MAX)
		status->missed_count++;
	else
		missed = (struct source_missed){.what = SOURCE_MISSED_MORE, .count = 1};
	status->missed[status->missed_count - 1] = missed;
	return &status->missed[status->missed_count - 1];
}

void source_status_lack(struct source_status *status, const char *what)
{
	source_status_miss(status, what, 1)->standing = true;
}

struct source_missed *source_status_miss_any(struct source_status *status, const char *what,
					     uint64_t count)
{
	return count ? source_status_miss(status, what, count) : NULL;
}

void source_status_add(struct source_status *status, const struct source_missed *missed)
{
	size_t at = 0;

	while (at < status->missed_count && strcmp(status->missed[at].what, missed->what) != 0)
		at++;
	if (at == status->missed_count) {
		*source_status_miss(status, missed->what, missed->count) = *missed;
		return;
	}
	/* recorded numbers may be as large as they like */
	status->missed[at].count += missed->count;
	if (status->missed[at].count > INT64_MAX)
		status->missed[at].count = INT64_MAX;
}

const char *const cpu_use_names[CPU_USE_COUNT] = {
	[CPU_USE_HARDIRQ] = "hardirq",
	[CPU_USE_SOFTIRQ] = "softirq",
	[CPU_USE_STEAL] = "steal",
};

int64_t source_status_refaulted(const struct source_status *status, int64_t elapsed_us)
{
	int64_t refaulted = status->refaulted, read = status->disk_read, percent;

	/* what came back without anything being evicted had been so long ago */
	if (refaulted == ABSENT || read == ABSENT || elapsed_us <= 0 ||
	    status->evicted < refaulted / 2 ||
	    refaulted / (elapsed_us / US_PER_MS + 1) < REFAULTED_LEAST)
		return 0;
	/* a device may be counted a moment later than the page cache */
	percent = refaulted < read ? refaulted * 100 / read : 100;
	return percent < REFAULTED_PERCENT ? 0 : percent;
}

size_t source_cpus_since(struct source_cpu *taken, size_t count, const struct source_cpu *before,
			 size_t before_count)
{
	size_t kept = 0, old = 0;

	for (size_t i = 0; i < count; i++) {
		while (old < before_count && before[old].cpu < taken[i].cpu)
			old++;
		if (old == before_count || before[old].cpu != taken[i].cpu)
			continue;
		taken[kept] = taken[i];
		for (int use = 0; use < CPU_USE_COUNT; use++) {
			int64_t us = taken[i].taken_us[use] - before[old].taken_us[use];

			taken[kept].taken_us[use] = us > 0 ? us : 0;
		}
		kept++;
	}
	return kept;
}
