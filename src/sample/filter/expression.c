/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/proc_values.h"
#include "sample/filter/expression_node.h"
#include "base/memory.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct expression_node *expression_grow(struct expression *expression)
{
	expression->nodes =
		memory_resize(expression->nodes, expression->count + 1, sizeof(*expression->nodes));
	expression->nodes[expression->count] = (struct expression_node){.size = 1};
	return &expression->nodes[expression->count++];
}

uint64_t expression_column_needs(const struct column *column)
{
	switch (column->offset) {
	case offsetof(struct sample, thread.tid):
	case offsetof(struct sample, thread.pid):
		return KNOWN_IDS;
	case offsetof(struct sample, now.state):
		return KNOWN_STATE;
	case offsetof(struct sample, event.error):
	case offsetof(struct sample, event.comm_before):
		return KNOWN_EVENT;
	case offsetof(struct sample, io.bytes):
		return column->needs | KNOWN_EVENT;
	case offsetof(struct sample, io.us):
		return column->needs | KNOWN_RECORD; /* the value changes with time */
	default:
		return column->needs ? sample_needs_close(column->needs) : KNOWN_RECORD;
	}
}

void expression_add_pattern(struct expression *expression, const struct column *column,
			    const char *pattern)
{
	struct expression_node *node = expression_grow(expression);

	node->kind = NODE_PATTERN;
	node->column = column;
	node->needs = expression_column_needs(column);
	node->text = pattern;
	expression->needs |= node->needs;
}

bool pattern_matches(const char *pattern, const char *text)
{
	if (!strpbrk(pattern, "*?["))
		return strstr(text, pattern) != NULL;
	return !fnmatch(pattern, text, 0);
}

/* True if another path of the thread's control groups matches: with cgroup v1 each controller may
 * have its own. */
static bool others_match(const struct column *column, const char *pattern,
			 const struct sample *sample)
{
	const char *line = sample->process.cgroup_others;
	char path[PATH_MAX];

	if (column->offset != offsetof(struct sample, process.cgroup))
		return false;
	while (line && *line) {
		size_t length = strcspn(line, "\n");

		snprintf(path, sizeof(path), "%.*s", (int)length, line);
		if (pattern_matches(pattern, path))
			return true;
		line += length + (line[length] == '\n');
	}
	return false;
}

static unsigned int order_of(bool less, bool more)
{
	return less ? ORDER_LESS : more ? ORDER_MORE : ORDER_EQUAL;
}

static unsigned int number_order(const struct column *column, int64_t a, int64_t b)
{
	if (column->kind == KIND_HEX)
		return order_of((uint64_t)a<(uint64_t)b, (uint64_t)a>(uint64_t) b);
	return order_of(a<b, a> b);
}

static bool comparison_holds(const struct expression_node *node, const struct sample *sample)
{
	union value value = sample_value(node->column, sample);
	bool absent = value_is_absent(node->column, value);

	if (node->kind == NODE_ABSENT)
		return absent;
	if (absent)
		return false;
	switch (node->kind) {
	case NODE_TEXT:
		return node->orders & order_of(strcmp(value.text, node->text) != 0, false);
	case NODE_REGEX:
		return !regexec(node->regex, value.text, 0, NULL, 0) ==
		       (node->orders == ORDER_EQUAL);
	case NODE_PATTERN:
		return pattern_matches(node->text, value.text) ||
		       others_match(node->column, node->text, sample);
	case NODE_STATE:
		return node->orders >> value.number & 1;
	default:
		return node->orders & number_order(node->column, value.number, node->number);
	}
}

static enum verdict nodes_eval(const struct expression_node *nodes, size_t count,
			       enum verdict decisive, const struct sample *sample, uint64_t known);

static enum verdict node_eval(const struct expression_node *node, const struct sample *sample,
			      uint64_t known)
{
	if (node->kind == NODE_ALL)
		return nodes_eval(node + 1, node->size - 1, VERDICT_REFUSED, sample, known);
	if (node->kind == NODE_ANY)
		return nodes_eval(node + 1, node->size - 1, VERDICT_ACCEPTED, sample, known);
	if (node->needs & ~known)
		return VERDICT_OPEN;
	return comparison_holds(node, sample) != node->negated ? VERDICT_ACCEPTED : VERDICT_REFUSED;
}

/* Verdict of a list of nodes: the decisive one, if any node has it. */
static enum verdict nodes_eval(const struct expression_node *nodes, size_t count,
			       enum verdict decisive, const struct sample *sample, uint64_t known)
{
	enum verdict all = decisive == VERDICT_REFUSED ? VERDICT_ACCEPTED : VERDICT_REFUSED;

	for (size_t i = 0; i < count; i += nodes[i].size) {
		enum verdict one = node_eval(&nodes[i], sample, known);

		if (one == decisive)
			return one;
		if (one == VERDICT_OPEN)
			all = one;
	}
	return all;
}

enum verdict expression_eval(const struct expression *expression, const struct sample *sample,
			     uint64_t known)
{
	return nodes_eval(expression->nodes, expression->count, VERDICT_REFUSED, sample, known);
}

bool expression_reads(const struct expression *expression, bool (*is)(const struct column *column))
{
	for (size_t i = 0; i < expression->count; i++)
		if (expression->nodes[i].column && is(expression->nodes[i].column))
			return true;
	return false;
}

bool expression_reads_column(const struct expression *expression, const struct column *column)
{
	for (size_t i = 0; i < expression->count; i++)
		if (expression->nodes[i].column == column)
			return true;
	return false;
}

void expression_done(struct expression *expression)
{
	for (size_t i = 0; i < expression->count; i++) {
		if (!expression->nodes[i].regex)
			continue;
		regfree(expression->nodes[i].regex);
		free(expression->nodes[i].regex);
	}
	free(expression->nodes);
	*expression = (struct expression){0};
}
