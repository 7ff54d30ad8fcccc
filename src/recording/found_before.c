/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/found_before.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART_US (300 * US_PER_SECOND) /* a longer pause begins another time */
#define DAYS 7
#define NOON_HOUR 12

struct found_time {
	int64_t from_us, until_us;
};

struct found_times {
	struct found_time *times;
	size_t count, capacity;
};

static uint64_t key_of(const struct finding_entry *entry)
{
	const char *of = entry->culprit && *entry->culprit ? entry->culprit : entry->thing;
	uint64_t hash = hash_bytes(entry->finding, strlen(entry->finding));

	return of && *of ? hash_u64(hash) ^ hash_bytes(of, strlen(of)) : hash_u64(hash);
}

void found_before_take(void *to, const struct finding_entry *entry)
{
	struct found_before *before = to;
	struct found_times *found;
	struct found_time *last;

	if (!entry->rank)
		return;
	found = keyed_put(&before->findings, sizeof(*found), key_of(entry), NULL);
	last = found->count ? &found->times[found->count - 1] : NULL;
	/* clocks may be set back: times that overlap are one, too */
	if (last && entry->begin_us - last->until_us < APART_US &&
	    last->from_us - entry->end_us < APART_US) {
		if (entry->begin_us < last->from_us)
			last->from_us = entry->begin_us;
		if (entry->end_us > last->until_us)
			last->until_us = entry->end_us;
		return;
	}
	found->times = memory_grow(found->times, &found->capacity, found->count + 1,
				   sizeof(*found->times));
	found->times[found->count++] = (struct found_time){entry->begin_us, entry->end_us};
}

/* Returns how many days the local day of us is before that of now_us. */
static int days_before(int64_t us, int64_t now_us)
{
	time_t then = us / US_PER_SECOND, now = now_us / US_PER_SECOND;
	struct tm a, b;

	localtime_r(&then, &a);
	localtime_r(&now, &b);
	/* at noon, so that no change of the clock makes another day of it */
	a.tm_hour = b.tm_hour = NOON_HOUR;
	a.tm_min = a.tm_sec = b.tm_min = b.tm_sec = 0;
	a.tm_isdst = b.tm_isdst = -1;
	return (int)((mktime(&b) - mktime(&a) + 43200) / 86400);
}

static void time_add(struct text *text, const struct found_time *time, int64_t now_us)
{
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];
	int days = days_before(time->from_us, now_us);

	clock_format_local(time->from_us, from);
	clock_format_local(time->until_us, until);
	if (days > 1)
		text_add_format(text, "%.10s", from);
	else
		text_add_string(text, days ? "yesterday" : "today");
	text_add_format(text, " %.5s", from + CLOCK_LOCAL_TIME);
	if (days_before(time->until_us, now_us) == days)
		text_add_format(text, " to %.5s", until + CLOCK_LOCAL_TIME);
	else
		text_add_format(text, " to %.16s", until);
}

void found_before_add(struct text *text, const struct found_before *before,
		      const struct finding_entry *entry, int64_t now_us)
{
	const struct found_times *found =
		keyed_find(&before->findings, sizeof(*found), key_of(entry));
	const struct found_time *last = NULL;
	bool on[DAYS] = {false};
	int days = 0;

	for (size_t i = 0; found && i < found->count; i++) {
		int from = days_before(found->times[i].from_us, now_us);

		if (found->times[i].until_us > now_us - APART_US)
			continue;
		last = &found->times[i];
		for (int day = days_before(last->until_us, now_us); day <= from; day++)
			if (day >= 0 && day < DAYS)
				on[day] = true;
	}
	if (!last)
		return;
	time_add(text, last, now_us);
	for (int day = 0; day < DAYS; day++)
		days += on[day];
	if (days > 1)
		text_add_format(text, ", and on %d of the last %d days", days, DAYS);
}

void found_before_done(struct found_before *before)
{
	for (size_t i = 0; i < before->findings.count; i++)
		free(((struct found_times *)before->findings.rows)[i].times);
	keyed_done(&before->findings);
}
