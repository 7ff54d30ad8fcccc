/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter/expression_node.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool name_ends(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length >= tail && !strcmp(name + length - tail, end);
}

/* What numbers of a column count, without a unit in the column's own. */
static enum quantity quantity_of(const struct column *column)
{
	if (name_ends(column->name, "_us"))
		return QUANTITY_TIME;
	return name_ends(column->name, "bytes") ? QUANTITY_BYTES : QUANTITY_COUNT;
}

static bool why_say(char why[EXPRESSION_WHY_SIZE], const char *words)
{
	snprintf(why, EXPRESSION_WHY_SIZE, "%s", words);
	return false;
}

static bool number_read(struct expression_node *node, const char *text,
			char why[EXPRESSION_WHY_SIZE])
{
	enum quantity quantity = quantity_of(node->column);
	bool negative = *text == '-', read;
	int64_t number = 0;

	text += negative;
	if (!strncmp(text, "0x", 2)) {
		read = text[2] && !text[2 + strspn(text + 2, "0123456789abcdefABCDEF")];
		errno = 0;
		number = (int64_t)strtoull(text, NULL, 16);
		read = read && !errno && (number >= 0 || node->column->kind == KIND_HEX);
	} else {
		read = !quantity_read(text, quantity, 1, &number);
	}
	if (!read || (negative && number < 0))
		return why_say(
			why, quantity == QUANTITY_TIME	  ? "a time (10ms; " QUANTITY_TIME_UNITS ")"
			     : quantity == QUANTITY_BYTES ? "a size (64K; " QUANTITY_BYTES_UNITS ")"
							  : "a number");
	node->kind = NODE_NUMBER;
	node->number = negative ? -number : number;
	return true;
}

static bool time_read(struct expression_node *node, const char *text, char why[EXPRESSION_WHY_SIZE])
{
	struct time_context context = {
		.now_us = clock_utc_us(), .after_us = TIME_NOT_AFTER, .utc = true};

	/* which day a time of day is of, a filter cannot tell */
	if (time_word_read(text, &context, &node->number))
		return why_say(why, "a date and time: " TIME_WORD_UTC_HELP);
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
