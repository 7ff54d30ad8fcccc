/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "option_units.h"

#include <errno.h>
#include <string.h>

/* Reads digits with at most three decimals, as thousandths. NULL: no digits, or too many. */
static const char *thousandths_read(const char *text, int64_t *number)
{
	int decimals = -1;
	const char *start = text;

	*number = 0;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && decimals < 0); text++) {
		if (*text == '.') {
			decimals = 0;
			continue;
		}
		if (decimals >= 0 && ++decimals > 3)
			return NULL;
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *text - '0', number))
			return NULL;
	}
	for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++)
		if (__builtin_mul_overflow(*number, 10, number))
			return NULL;
	return text > start && text[-1] != '.' ? text : NULL;
}

struct unit {
	char letter;
	int64_t size;
};

static int units_read(const char *text, const struct unit *units, int64_t *number)
{
	int64_t thousandths;
	const char *unit = thousandths_read(text, &thousandths);

	if (!unit || (*unit && unit[1]))
		return -EINVAL;
	while (units->letter != *unit) {
		if (!units->letter)
			return -EINVAL;
		units++;
	}
	if (__builtin_mul_overflow(thousandths / 1000, units->size, number) ||
	    __builtin_add_overflow(*number, thousandths % 1000 * units->size / 1000, number))
		return -EINVAL;
	return *number > 0 ? 0 : -EINVAL;
}

int span_read(const char *text, int64_t *us)
{
	static const struct unit units[] = {
		{'s', 1000000},		  {'m', 60 * 1000000ll},     {'h', 3600 * 1000000ll},
		{'d', 86400 * 1000000ll}, {'w', 604800 * 1000000ll}, {'\0', 1000000},
	};

	return units_read(text, units, us);
}

int bytes_read(const char *text, int64_t *bytes)
{
	static const struct unit units[] = {
		{'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}, {'T', 1ll << 40}, {'\0', 1},
	};

	return units_read(text, units, bytes);
}

int percent_read(const char *text, int64_t *tenths)
{
	static const struct unit units[] = {{'%', 10}, {'\0', 10}};
	int err = units_read(text, units, tenths);

	return !err && *tenths >= 1000 ? -EINVAL : err;
}
