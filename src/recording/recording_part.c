/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording_part.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/quantity.h"
#include "sample/sample.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DAY_US (86400 * US_PER_SECOND)

/* Takes a time, which ends at ".." or the end of the text; *end is moved there. A time of day is
 * of the first day of 1970 (recording_part_date() moves it). False: none. */
static bool time_take(const char **end, int64_t *time_us, bool *of_day)
{
	const char *stop = strstr(*end, "..");
	size_t length = stop ? (size_t)(stop - *end) : strlen(*end);
	struct text text = {0};
	struct time_context context = {.now_us = clock_utc_us(), .after_us = -1, .utc = true};
	int err = 0;

	*time_us = ABSENT;
	*of_day = false;
	if (length) {
		text_add(&text, *end, length);
		err = time_word_read(text_string(&text), &context, time_us);
		*of_day = err == TIME_OF_DAY;
	}
	*end += length;
	text_done(&text);
	return err >= 0;
}

static int part_fail(const char *typed, const char *why, struct error *e)
{
	return error_set(e, EINVAL, EXIT_USAGE, "%s: %s", typed, why);
}

int recording_part_read(const char *typed, char **path, struct recording_part *part,
			struct error *e)
{
	const char *at = strrchr(typed, '@'), *end = at ? at + 1 : NULL;
	bool has_part = at && !strchr(at, '/') && access(typed, F_OK);
	bool from = has_part && time_take(&end, &part->from_us, &part->from_of_day);
	struct text name = {0};

	if (from && at[1] && !*end)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "%s: one time is not a range: %s.. takes all from then on, "
				 "FILE@FROM..TO what lies between two times",
				 typed, typed);
	if (!has_part || !strstr(at, "..")) {
		*part = (struct recording_part){.from_us = ABSENT, .until_us = ABSENT};
		text_add_string(&name, typed);
		*path = text_take(&name);
		return 0;
	}
	if (!from || strncmp(end, "..", 2) ||
	    (end += 2, !time_take(&end, &part->until_us, &part->until_of_day)) || *end)
		return part_fail(typed,
				 "FROM..TO must be times: " TIME_WORD_UTC_HELP
				 ", or times of the day (20:42:53)",
				 e);
	if (part->from_us != ABSENT && part->until_us != ABSENT &&
	    part->from_of_day == part->until_of_day && part->from_us >= part->until_us)
		return part_fail(typed, "the part ends before it begins", e);
	text_add(&name, typed, (size_t)(at - typed));
	*path = text_take(&name);
	return 0;
}

bool recording_part_whole(const struct recording_part *part)
{
	return part->from_us == ABSENT && part->until_us == ABSENT;
}

void recording_part_date(struct recording_part *part, int64_t first_us)
{
	int64_t day_us = first_us - first_us % DAY_US;

	if (part->from_of_day && part->from_us != ABSENT)
		part->from_us += day_us;
	if (part->until_of_day && part->until_us != ABSENT)
		part->until_us += day_us;
	part->from_of_day = part->until_of_day = false;
}

bool recording_part_has(const struct recording_part *part, int64_t time_us)
{
	return (part->from_us == ABSENT || time_us >= part->from_us) &&
	       (part->until_us == ABSENT || time_us < part->until_us);
}
