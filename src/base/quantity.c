/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/quantity.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

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
