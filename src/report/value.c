/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/value.h"
#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

void text_add_decimals(struct text *text, int64_t number, int decimals)
{
	int64_t one = decimals == 1 ? 10 : decimals == 2 ? 100 : 1000;
	int64_t part = number % one;

	if (number < 0 && number > -one)
		text_add_char(text, '-');
	text_add_number(text, number / one);
	text_add_char(text, '.');
	part = part < 0 ? -part : part;
	for (one /= 10; one; one /= 10)
		text_add_char(text, (char)('0' + part / one % 10));
}

void text_add_duration(struct text *text, int64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	int64_t unit_ns = 1;
	size_t unit = 0;
	int decimals;

	/* unit for the value rounded to three digits, so that 999.9 us is 1.00 ms */
	while (unit < 3 && ratio(ns, 1, unit_ns) >= 1000) {
		unit_ns *= 1000;
		unit++;
	}
	decimals = !unit			    ? 0
		   : ratio(ns, 100, unit_ns) < 1000 ? 2
		   : ratio(ns, 10, unit_ns) < 1000  ? 1
						    : 0;
	if (decimals)
		text_add_decimals(text, ratio(ns, decimals == 2 ? 100 : 10, unit_ns), decimals);
	else
		text_add_number(text, ratio(ns, 1, unit_ns));
	text_add_char(text, ' ');
	text_add_string(text, units[unit]);
}

void value_add(struct text *text, const struct column *column, union value value)
{
	const struct state_row *state;
	char iso[CLOCK_ISO_SIZE];

	if (value_is_absent(column, value))
		return;
	switch (column->kind) {
	case KIND_TEXT:
		text_add_printable(text, value.text);
		return;
	case KIND_NUMBER:
	case KIND_NS:
		text_add_number(text, value.number);
		return;
	case KIND_HEX:
		text_add_format(text, "0x%" PRIx64, (uint64_t)value.number);
		return;
	case KIND_TIME:
		clock_format_iso(value.number, iso);
		text_add_string(text, iso);
		return;
	case KIND_STATE:
		state = state_row(value.number);
		text_add_string(text, state ? state->name : "?");
		return;
	case KIND_HUNDREDTHS:
	case KIND_THREADS:
		text_add_decimals(text, value.number, 2);
		return;
	case KIND_THOUSANDTHS:
		text_add_decimals(text, value.number, 3);
		return;
	case KIND_PERMILLE:
		text_add_decimals(text, value.number, 1);
		return;
	}
}

int value_compare(const struct column *column, union value a, union value b)
{
	bool a_absent = value_is_absent(column, a), b_absent = value_is_absent(column, b);

	if (a_absent || b_absent)
		return b_absent - a_absent;
	if (column->kind == KIND_TEXT)
		return strcmp(a.text, b.text);
	if (column->kind == KIND_HEX)
		return ((uint64_t)a.number > (uint64_t)b.number) -
		       ((uint64_t)a.number < (uint64_t)b.number);
	return (a.number > b.number) - (a.number < b.number);
}

int64_t ratio(int64_t number, int64_t times, int64_t by)
{
	__int128 result;

	if (!by)
		return 0;
	result = ((__int128)number * times + by / 2) / by;
	if (result < -INT64_MAX)
		return -INT64_MAX;
	return result > INT64_MAX ? INT64_MAX : (int64_t)result;
}

char shade_of(int64_t number, int64_t most)
{
	static const char shades[] = " .:-=+*#%@";

	return shades[number > 0 && most ? 1 + (int64_t)((__int128)number *
							 (int64_t)(sizeof(shades) - 3) / most)
					 : 0];
}
