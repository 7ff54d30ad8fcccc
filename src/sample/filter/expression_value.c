/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter/expression_node.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Units that may follow a number; the first in each list is the unit of the column itself. */
struct unit {
	const char *name;
	int64_t count;
};

static const struct unit time_units[] = {
	{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"min", 60000000}, {"h", 3600000000}, {0},
};
static const struct unit byte_units[] = {
	{"", 1}, {"K", 1ll << 10}, {"M", 1ll << 20}, {"G", 1ll << 30}, {"T", 1ll << 40}, {0},
};
static const struct unit no_units[] = {{0}};

static bool name_ends(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length >= tail && !strcmp(name + length - tail, end);
}

static const struct unit *units_of(const struct column *column)
{
	if (name_ends(column->name, "_us"))
		return time_units;
	return name_ends(column->name, "bytes") ? byte_units : no_units;
}

static bool why_say(char why[EXPRESSION_WHY_SIZE], const char *words)
{
	snprintf(why, EXPRESSION_WHY_SIZE, "%s", words);
	return false;
}

#define SCALE_MAX 1000000 /* limit of the decimals' scale, so that no product overflows */

/* Reads digits, and decimals if there is a unit. */
static bool decimal_read(const char *text, const struct unit *units, uint64_t *number)
{
	const char *point, *end = text + strspn(text, "0123456789");
	uint64_t whole, scale = 1, part = 0, unit = 1;

	errno = 0;
	whole = strtoull(text, NULL, 10);
	if (end == text || errno)
		return false;
	point = end;
	if (*point == '.')
		for (end++; *end >= '0' && *end <= '9' && scale < SCALE_MAX; end++, scale *= 10)
			part = part * 10 + (uint64_t)(*end - '0');
	if (*point == '.' && (scale == 1 || !units->name))
		return false;
	if (*end) {
		while (units->name && strcmp(units->name, end))
			units++;
		if (!units->name)
			return false;
		unit = (uint64_t)units->count;
	}
	return !__builtin_mul_overflow(whole, unit, &whole) &&
	       !__builtin_add_overflow(whole, part * unit / scale, number);
}

static bool number_read(struct expression_node *node, const char *text,
			char why[EXPRESSION_WHY_SIZE])
{
	const struct unit *units = units_of(node->column);
	bool negative = *text == '-', read;
	uint64_t number = 0;

	text += negative;
	if (!strncmp(text, "0x", 2)) {
		read = text[2] && !text[2 + strspn(text + 2, "0123456789abcdefABCDEF")];
		errno = 0;
		number = strtoull(text, NULL, 16);
		read = read && !errno;
	} else {
		read = decimal_read(text, units, &number);
	}
	if (!read || (number > INT64_MAX && (negative || node->column->kind != KIND_HEX)))
		return why_say(why, units == time_units	  ? "a time (10ms; us ms s min h)"
				    : units == byte_units ? "a size (64K; K M G T)"
							  : "a number");
	node->kind = NODE_NUMBER;
	node->number = negative ? -(int64_t)number : (int64_t)number;
	return true;
}

static bool time_read(struct expression_node *node, const char *text, char why[EXPRESSION_WHY_SIZE])
{
	if (clock_parse_iso_part(text, &node->number))
		return why_say(why, "a time in UTC (2026-11-20T20:42:53.5, or less of it)");
	node->kind = NODE_NUMBER;
	return true;
}

static bool regex_read(struct expression_node *node, const char *text,
		       char why[EXPRESSION_WHY_SIZE])
{
	regex_t *regex = memory_get(sizeof(*regex));
	int err = regcomp(regex, text, REG_EXTENDED | REG_NOSUB), length;

	if (err) {
		length = snprintf(why, EXPRESSION_WHY_SIZE, "an extended regular expression: ");
		regerror(err, regex, why + length, EXPRESSION_WHY_SIZE - (size_t)length);
		free(regex);
		return false;
	}
	node->kind = NODE_REGEX;
	node->regex = regex;
	return true;
}

static unsigned int states_find(const regex_t *regex)
{
	unsigned int states = 0;

	for (int64_t i = 0; i < STATE_COUNT; i++)
		states |= !regexec(regex, state_row(i)->name, 0, NULL, 0) ? 1u << i : 0;
	return states;
}

/* Evaluates a comparison of states at once, as a set of the states for which it is true. */
static bool state_read(struct expression_node *node, const struct comparator *comparator,
		       const char *text, char why[EXPRESSION_WHY_SIZE])
{
	unsigned int states;

	if (comparator->search) {
		if (!regex_read(node, text, why))
			return false;
		states = states_find(node->regex);
		regfree(node->regex);
		free(node->regex);
		node->regex = NULL;
	} else {
		int64_t state = state_of_name(text);
		int length = snprintf(why, EXPRESSION_WHY_SIZE, "a state:");

		for (int64_t i = 0; state == ABSENT && i < STATE_COUNT; i++)
			length += snprintf(why + length, EXPRESSION_WHY_SIZE - (size_t)length,
					   " %s", state_row(i)->name);
		if (state == ABSENT)
			return false;
		states = 1u << state;
	}
	node->kind = NODE_STATE;
	node->orders = comparator->orders == ORDER_EQUAL ? states : ~states;
	return true;
}

bool expression_value_read(struct expression_node *node, const struct comparator *comparator,
			   const char *value, char why[EXPRESSION_WHY_SIZE])
{
	switch (node->column->kind) {
	case KIND_TEXT:
		node->orders = comparator->orders;
		node->kind = NODE_TEXT;
		node->text = value;
		return !comparator->search || regex_read(node, value, why);
	case KIND_STATE:
		return state_read(node, comparator, value, why);
	case KIND_TIME:
		node->orders = comparator->orders;
		return time_read(node, value, why);
	default:
		node->orders = comparator->orders;
		return number_read(node, value, why);
	}
}
