/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The array that an expression is parsed into; for expression*.c only. */
#ifndef TSNAP_SAMPLE_FILTER_EXPRESSION_NODE_H
#define TSNAP_SAMPLE_FILTER_EXPRESSION_NODE_H

#include <regex.h>
#include <stdbool.h>

#include "sample/column.h"
#include "sample/filter/expression.h"

enum node_kind {
	NODE_ANY, /* true if one of the nodes below it is */
	NODE_ALL,
	/* comparisons */
	NODE_ABSENT,
	NODE_TEXT,
	NODE_REGEX,
	NODE_PATTERN,
	NODE_STATE,
	NODE_NUMBER,
};

/* Orders of two values for which a comparison is true. */
#define ORDER_LESS 1u
#define ORDER_EQUAL 2u
#define ORDER_MORE 4u

struct expression_node {
	enum node_kind kind;
	bool negated; /* the outcome of a comparison is negated */
	size_t size;  /* number of nodes: this one, and those below it, which follow */
	/* members of a comparison */
	const struct column *column;
	uint64_t needs;
	unsigned int orders; /* ORDER_*; for NODE_STATE a bit per enum thread_state_kind */
	int64_t number;
	const char *text; /* interned, except for NODE_PATTERN: the caller's */
	regex_t *regex;	  /* allocated */
};

/* Adds a node at the end; may move the others. */
struct expression_node *expression_grow(struct expression *expression);

/* Needs of the column's value, as KNOWN_* and NEED_*. */
uint64_t expression_column_needs(const struct column *column);

#define EXPRESSION_WHY_SIZE 256

/* A comparator: = != < <= > >= ~ !~ */
struct comparator {
	char sign[3];
	unsigned int orders;
	bool search; /* regular expression; true for ORDER_EQUAL */
};

/* Completes a comparison, whose column is set (expression_value.c). value: interned. False: why
 * says what was expected. */
bool expression_value_read(struct expression_node *node, const struct comparator *comparator,
			   const char *value, char why[EXPRESSION_WHY_SIZE]);

#endif
