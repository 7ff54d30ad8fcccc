/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/quantity.h"
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define DECIMALS_MAX 6
#define MINUTE_US (60 * US_PER_SECOND)
#define DAY_US (86400 * US_PER_SECOND)

struct unit {
	const char *name;
	int64_t size;
};

/* clang-format off */
static const struct unit units[][9] = {
	[QUANTITY_COUNT] = {{0}},
	[QUANTITY_TIME] = {
		{"us", 1}, {"ms", 1000}, {"s", US_PER_SECOND}, {"m", MINUTE_US}, {"min", MINUTE_US},
		{"h", 60 * MINUTE_US}, {"d", DAY_US}, {"w", 7 * DAY_US},
	},
	[QUANTITY_BYTES] = {{"K", 1ll << 10}, {"M", 1ll << 20}, {"G", 1ll << 30}, {"T", 1ll << 40}},
	[QUANTITY_PERCENT] = {{"%", 10}},
};
/* clang-format on */

/* Moves past digits. */
static int digits_take(const char **at, int64_t *number)
{
	for (*number = 0; **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, **at - '0', number))
			return -ERANGE;
	return 0;
}

/* Moves past a unit; 0: there is no such unit. */
static int64_t unit_take(const char **at, const struct unit *unit)
{
	size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyzKMGT%");

	while (unit->name &&
	       (strlen(unit->name) != length || strncmp(unit->name, *at, length) != 0))
		unit++;
	*at += length;
	return unit->size;
}

/* Moves past one number and its unit, and adds them to the value. */
static int part_take(const char **at, const struct unit *kind, int64_t bare, int64_t *value)
{
	const char *start = *at, *point;
	int64_t whole, part = 0, unit = bare;

	if (digits_take(at, &whole))
		return -ERANGE;
	if (*at == start)
		return -EINVAL;
	if (**at == '.') {
		point = ++*at;
		if (digits_take(at, &part) || *at == point || *at - point > DECIMALS_MAX)
			return -EINVAL;
		for (int64_t i = *at - point; i < DECIMALS_MAX; i++)
			part *= 10;
	}
	if (**at)
		unit = unit_take(at, kind);
	if (!unit || (part && unit == 1))
		return -EINVAL;
	/* split, so that decimals of the largest unit do not overflow */
	part = unit / 1000000 * part + unit % 1000000 * part / 1000000;
	return __builtin_mul_overflow(whole, unit, &whole) ||
			       __builtin_add_overflow(whole, part, &whole) ||
			       __builtin_add_overflow(*value, whole, value)
		       ? -ERANGE
		       : 0;
}

int quantity_read(const char *text, enum quantity kind, int64_t bare, int64_t *value)
{
	const char *at = text;
	int err;

	*value = 0;
	do
		err = part_take(&at, units[kind], bare, value);
	while (!err && *at);
	return err;
}

#define ZONE_MAX_S 64800

/* A time that is being read. */
struct words {
	struct tm tm;
	int64_t us;
	bool dated;	   /* the day was typed */
	bool zoned;	   /* the zone was typed, or is UTC without one */
	int64_t zone_s;	   /* offset of the zone, east of UTC */
	bool of_two_later; /* if a local time comes twice, the later one is meant */
};

/* Takes count digits. */
static bool digits_fixed(const char **at, int count, int *number)
{
	*number = 0;
	for (int i = 0; i < count; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*number = *number * 10 + (**at - '0');
	}
	return true;
}

static bool char_take(const char **at, char c)
{
	*at += **at == c;
	return (*at)[-1] == c;
}

/* Takes a date: 2026-11-20 */
static bool date_take(const char **at, struct tm *tm)
{
	struct tm day;

	if (!digits_fixed(at, 4, &tm->tm_year) || !char_take(at, '-') ||
	    !digits_fixed(at, 2, &tm->tm_mon) || !char_take(at, '-') ||
	    !digits_fixed(at, 2, &tm->tm_mday))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	day = *tm;
	timegm(&day); /* takes the 31st of February for a day in March */
	return tm->tm_mon >= 0 && day.tm_mon == tm->tm_mon && day.tm_mday == tm->tm_mday;
}

/* Takes a fraction without its dot, up to six digits, as microseconds. */
static bool fraction_take(const char **at, int64_t *us)
{
	int64_t unit = 100000;

	for (*us = 0; **at >= '0' && **at <= '9'; (*at)++, unit /= 10) {
		if (!unit)
			return false;
		*us += (**at - '0') * unit;
	}
	return unit < 100000;
}

/* Takes a time of day: 2:10, 02:10:00, 02:10:00.5, and after a date 02 */
static bool day_time_take(const char **at, struct words *words)
{
	struct tm *tm = &words->tm;
	bool minutes;

	if (!digits_fixed(at, (*at)[1] == ':' ? 1 : 2, &tm->tm_hour))
		return false;
	minutes = **at == ':';
	if (minutes ? ((*at)++, !digits_fixed(at, 2, &tm->tm_min)) : !words->dated)
		return false;
	if (minutes && **at == ':') {
		(*at)++;
		if (!digits_fixed(at, 2, &tm->tm_sec))
			return false;
		if (**at == '.' && ((*at)++, !fraction_take(at, &words->us)))
			return false;
	}
	/* 24:00 is the end of a day */
	return tm->tm_hour < 24 + (!tm->tm_min && !tm->tm_sec && !words->us) && tm->tm_min < 60 &&
	       tm->tm_sec < 60;
}

/* Takes a zone: Z, UTC, +01:00, +0100, +01; or nothing */
static bool zone_take(const char **at, struct words *words)
{
	int hours, minutes = 0;
	bool west;

	*at += strspn(*at, " ");
	words->zoned |= **at != '\0';
	if (!strcasecmp(*at, "Z") || !strcasecmp(*at, "UTC")) {
		*at += strlen(*at);
		return true;
	}
	if (**at != '+' && **at != '-')
		return !**at;
	west = *(*at)++ == '-';
	if (!digits_fixed(at, 2, &hours))
		return false;
	*at += **at == ':';
	if (**at && !digits_fixed(at, 2, &minutes))
		return false;
	words->zone_s = hours * 3600 + minutes * 60;
	if (minutes > 59 || words->zone_s > ZONE_MAX_S)
		return false;
	if (west)
		words->zone_s = -words->zone_s;
	return true;
}

/* Converts the words as local time, summer time or not; false: there is no such time. */
static bool local_time(const struct words *words, int summer, time_t *seconds)
{
	struct tm tm = words->tm, back;

	tm.tm_isdst = summer;
	*seconds = mktime(&tm);
	localtime_r(seconds, &back);
	return back.tm_isdst == summer && back.tm_hour == words->tm.tm_hour % 24 &&
	       back.tm_min == words->tm.tm_min;
}

static int64_t words_time(const struct words *words)
{
	struct tm tm = words->tm;
	time_t one, other;
	bool has_one, has_other;

	if (words->zoned)
		return (timegm(&tm) - words->zone_s) * US_PER_SECOND + words->us;
	has_one = local_time(words, 1, &one);
	has_other = local_time(words, 0, &other);
	if (has_one && has_other)
		one = (one < other) == words->of_two_later ? other : one;
	else if (has_other)
		one = other;
	else if (!has_one) {
		/* clocks were put forward past this time */
		tm.tm_isdst = -1;
		one = mktime(&tm);
	}
	return one * US_PER_SECOND + words->us;
}

/* Sets the day to that of a time, in the words' zone. */
static void day_set(struct words *words, int64_t time_us)
{
	time_t seconds = time_us / US_PER_SECOND + words->zone_s;
	struct tm day;

	if (words->zoned)
		gmtime_r(&seconds, &day);
	else
		localtime_r(&seconds, &day);
	words->tm.tm_year = day.tm_year;
	words->tm.tm_mon = day.tm_mon;
	words->tm.tm_mday = day.tm_mday;
}

/* Takes "yesterday" or "today"; false: neither is typed. */
static bool day_word_take(const char **at, struct words *words, int64_t now_us)
{
	static const char *const days[] = {"today", "yesterday"};

	for (int i = 0; i < 2; i++) {
		size_t length = strlen(days[i]);

		if (strncasecmp(*at, days[i], length))
			continue;
		*at += length;
		day_set(words, now_us);
		words->tm.tm_mday -= i;
		return true;
	}
	return false;
}

static int words_read(const char *word, int64_t now_us, struct words *words)
{
	const char *at = word, *zone;
	bool timed = false, date = strspn(word, "0123456789") == 4 && word[4] == '-';

	/* the zone decides which day is today */
	zone = date ? NULL : strpbrk(word, "Zz+-");
	if (!date && !zone && strlen(word) > 3 && !strcasecmp(word + strlen(word) - 3, "utc"))
		zone = word + strlen(word) - 3;
	if (zone && !zone_take(&zone, words))
		return -EINVAL;
	words->dated = date ? date_take(&at, &words->tm) : day_word_take(&at, words, now_us);
	if (date && !words->dated)
		return -EINVAL;
	if (words->dated && (*at == ' ' || *at == 'T') && at[1] >= '0' && at[1] <= '9')
		at++;
	if (*at >= '0' && *at <= '9') {
		timed = true;
		if (!day_time_take(&at, words))
			return -EINVAL;
	}
	if (!zone_take(&at, words) || *at || (!timed && !words->dated))
		return -EINVAL;
	return 0;
}

int time_word_read(const char *word, const struct time_context *context, int64_t *time_us)
{
	struct words words = {.zoned = context->utc, .of_two_later = context->of_two_later};
	int64_t ago_us;

	*time_us = context->now_us;
	if (!strcasecmp(word, "now"))
		return 0;
	if (*word == '-') {
		if (quantity_read(word + 1, QUANTITY_TIME, US_PER_SECOND, &ago_us))
			return -EINVAL;
		*time_us -= ago_us;
		return 0;
	}
	if (words_read(word, context->now_us, &words))
		return -EINVAL;
	if (words.dated) {
		*time_us = words_time(&words);
		return 0;
	}
	day_set(&words, context->after_us == TIME_NOT_AFTER ? context->now_us : context->after_us);
	*time_us = words_time(&words);
	if (context->after_us == TIME_NOT_AFTER && *time_us > context->now_us)
		words.tm.tm_mday--;
	else if (context->after_us != TIME_NOT_AFTER && *time_us <= context->after_us)
		words.tm.tm_mday++;
	*time_us = words_time(&words);
	return TIME_OF_DAY;
}

int time_iso_read(const char *text, int64_t *utc_us)
{
	const struct time_context context = {.after_us = TIME_NOT_AFTER, .utc = true};
	char again[CLOCK_ISO_SIZE];
	int64_t parsed;

	if (time_word_read(text, &context, &parsed))
		return -EINVAL;
	clock_format_iso(parsed, again);
	if (strcmp(again, text) != 0)
		return -EINVAL;
	*utc_us = parsed;
	return 0;
}
