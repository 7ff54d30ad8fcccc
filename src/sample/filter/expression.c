/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter/expression.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/quantity.h"
#include "base/text.h"
#include "sample/column.h"
#include "sample/proc_values.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION_WHY_SIZE 256

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

/* A comparator: = != < <= > >= ~ !~ */
struct comparator {
	char sign[3];
	unsigned int orders;
	bool search; /* regular expression; true for ORDER_EQUAL */
};

/* Adds a node at the end; may move the others. */
static struct expression_node *expression_grow(struct expression *expression)
{
	expression->nodes =
		memory_resize(expression->nodes, expression->count + 1, sizeof(*expression->nodes));
	expression->nodes[expression->count] = (struct expression_node){.size = 1};
	return &expression->nodes[expression->count++];
}

/* Needs of the column's value, as KNOWN_* and NEED_*. */
static uint64_t expression_column_needs(const struct column *column)
{
	switch (column->offset) {
	case offsetof(struct sample, thread.tid):
	case offsetof(struct sample, thread.pid):
		return KNOWN_IDS;
	case offsetof(struct sample, now.state):
		return KNOWN_STATE;
	case offsetof(struct sample, event.error):
	case offsetof(struct sample, event.comm_before):
	case offsetof(struct sample, event.outcome):
	case offsetof(struct sample, event.side):
	case offsetof(struct sample, event.local):
	case offsetof(struct sample, event.server):
	case offsetof(struct sample, event.qname):
	case offsetof(struct sample, event.qtype):
	case offsetof(struct sample, event.rcode):
	case offsetof(struct sample, event.value):
	case offsetof(struct sample, event.signal):
	case offsetof(struct sample, event.sender_pid):
	case offsetof(struct sample, event.sender_comm):
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

/* --- values of comparisons */

/* What numbers of a column count, without a unit in the column's own. */
static enum quantity quantity_of(const struct column *column)
{
	if (text_ends(column->name, "_us"))
		return QUANTITY_TIME;
	return text_ends(column->name, "bytes") ? QUANTITY_BYTES : QUANTITY_COUNT;
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

/* Completes a comparison, whose column is set. value: interned. False: why says what was expected.
 */
static bool expression_value_read(struct expression_node *node, const struct comparator *comparator,
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

/* --- the grammar in expression.h, by recursive descent. Negations are carried down to comparisons
 */

#define QUOTED_MAX 160 /* bytes of an expression that an error quotes, at most */

#define UNEQUAL (ORDER_LESS | ORDER_MORE)

/* Longest match first. */
static const struct comparator comparators[] = {
	{"!=", UNEQUAL, false},
	{"!~", UNEQUAL, true},
	{"==", ORDER_EQUAL, false},
	{"=~", ORDER_EQUAL, true},
	{"<=", ORDER_LESS | ORDER_EQUAL, false},
	{">=", ORDER_MORE | ORDER_EQUAL, false},
	{"=", ORDER_EQUAL, false},
	{"<", ORDER_LESS, false},
	{">", ORDER_MORE, false},
	{"~", ORDER_EQUAL, true},
};

static bool is_equality(const struct comparator *comparator)
{
	return comparator->orders == ORDER_EQUAL || comparator->orders == UNEQUAL;
}

struct parser {
	struct expression *to;
	const char *text, *at;
	unsigned int depth;
	bool negated;
	struct error *e;
};

static size_t characters_count(const char *text, size_t bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += (text[i] & 0xc0) != 0x80; /* counts no continuation bytes of UTF-8 */
	return count;
}

static const char *option_of(const struct expression *expression)
{
	return expression->option ? expression->option : "--filter";
}

/* Sets an error like "--filter: at character 7 of 'state=>D': expected a value". */
static int parser_fail(const struct parser *parser, const char *at, const char *what,
		       const char *more)
{
	size_t length = strlen(parser->text), offset = (size_t)(at - parser->text), from = 0;

	if (length > QUOTED_MAX && offset > QUOTED_MAX / 2)
		from = offset - QUOTED_MAX / 2;
	return error_set(parser->e, EINVAL, EXIT_USAGE, "%s: at character %zu of '%s%.*s%s': %s%s",
			 option_of(parser->to), characters_count(parser->text, offset) + 1,
			 from ? "..." : "", QUOTED_MAX, parser->text + from,
			 length - from > QUOTED_MAX ? "..." : "", what, more);
}

static void spaces_skip(struct parser *parser)
{
	parser->at += strspn(parser->at, " \t\n\r");
}

static bool token_take(struct parser *parser, const char *token)
{
	spaces_skip(parser);
	if (strncmp(parser->at, token, strlen(token)) != 0)
		return false;
	parser->at += strlen(token);
	return true;
}

static const char *column_name_at(void *from, size_t at)
{
	(void)from;
	return at < sample_column_count ? sample_columns[at].name : NULL;
}

static int column_take(struct parser *parser, const struct column **column)
{
	const char *start = parser->at, *nearest;
	struct text name = {0};
	int err = 0;

	/* a title may end with a star: COMM* */
	parser->at +=
		strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789*");
	text_add(&name, start, (size_t)(parser->at - start));
	*column = sample_column_called(text_string(&name));
	nearest = text_nearest(text_string(&name), column_name_at, NULL);
	if (parser->at == start) {
		err = parser_fail(parser, start, "expected a column, ! or (", "");
	} else if (!*column) {
		text_clear(&name);
		if (nearest)
			text_add_format(&name, "; nearest: %s", nearest);
		text_add_string(&name, " (tsnap --list prints all)");
		err = parser_fail(parser, start, "unknown column of a sample", text_string(&name));
	}
	text_done(&name);
	return err;
}

/* Takes a comparator that the column allows; NULL with the parser's error: there is none. */
static const struct comparator *comparator_take(struct parser *parser, const struct column *column)
{
	bool number = column->kind != KIND_TEXT && column->kind != KIND_STATE;
	const struct comparator *comparator = comparators;
	const struct comparator *end = comparator + sizeof(comparators) / sizeof(comparators[0]);
	const char *start;

	spaces_skip(parser);
	start = parser->at;
	while (comparator < end && !token_take(parser, comparator->sign))
		comparator++;
	if (comparator == end)
		parser_fail(parser, start, "expected = != < <= > >= ~ or !~", "");
	else if (number && comparator->search)
		parser_fail(parser, start, column->name,
			    " is a number: expected = != < <= > or >=");
	else if (!number && !is_equality(comparator))
		parser_fail(parser, start, column->name, " is not a number: expected = != ~ or !~");
	else
		return comparator;
	return NULL;
}

/* Takes the text between quotes, with escapes resolved. */
static int quoted_take(struct parser *parser, struct text *value)
{
	const char *start = parser->at++, quote = *start;
	struct text printable = {0};

	for (; *parser->at && *parser->at != quote; parser->at++) {
		bool escaped = parser->at[0] == '\\' && parser->at[1];

		if (escaped && *++parser->at != quote)
			text_add_char(&printable, '\\');
		text_add_char(&printable, *parser->at);
	}
	text_add_original(value, text_string(&printable));
	text_done(&printable);
	if (!*parser->at)
		return parser_fail(parser, start, "the quote has no end", "");
	parser->at++;
	return 0;
}

static size_t bare_length(const char *at)
{
	const char *end = at;

	while (*end && !strchr(" \t\n\r()\"", *end) && strncmp(end, "&&", 2) != 0 &&
	       strncmp(end, "||", 2) != 0)
		end++;
	return (size_t)(end - at);
}

/* Takes a value into the last node. */
static int value_take(struct parser *parser, const struct comparator *comparator)
{
	struct expression_node *node = &parser->to->nodes[parser->to->count - 1];
	char why[EXPRESSION_WHY_SIZE];
	struct text value = {0};
	const char *start;
	bool quoted;
	int err = 0;

	spaces_skip(parser);
	start = parser->at;
	quoted = *start == '"' || *start == '\'';
	if (quoted) {
		err = quoted_take(parser, &value);
	} else {
		parser->at += bare_length(start);
		text_add(&value, start, (size_t)(parser->at - start));
	}
	if (err)
		goto out;
	if (!quoted && *start && strchr("=<>~!", *start)) {
		err = parser_fail(parser, start, "expected a value (in quotes where it begins so)",
				  "");
	} else if (quoted || value.length) {
		if (!expression_value_read(node, comparator, name_of_string(text_string(&value)),
					   why))
			err = parser_fail(parser, start, "expected ", why);
	} else if (comparator->search || !is_equality(comparator)) {
		err = parser_fail(parser, start, "expected a value", "");
	} else {
		node->kind = NODE_ABSENT;
		node->negated ^= comparator->orders == UNEQUAL;
	}
out:
	text_done(&value);
	return err;
}

static int comparison_take(struct parser *parser)
{
	const struct comparator *comparator;
	const struct column *column;
	struct expression_node *node;
	int err;

	err = column_take(parser, &column);
	if (err)
		return err;
	comparator = comparator_take(parser, column);
	if (!comparator)
		return -EINVAL;
	node = expression_grow(parser->to);
	node->column = column;
	node->needs = expression_column_needs(column);
	node->negated = parser->negated;
	parser->to->needs |= node->needs;
	return value_take(parser, comparator);
}

static int any_take(struct parser *parser);

static int operand_take(struct parser *parser)
{
	bool negated = parser->negated;
	int err;

	spaces_skip(parser);
	if (parser->depth > EXPRESSION_DEPTH_MAX)
		return parser_fail(parser, parser->at, "too many ( and ! within each other", "");
	if (parser->to->count >= EXPRESSION_NODES_MAX)
		return parser_fail(parser, parser->at, "too many comparisons", "");
	parser->depth++;
	if (token_take(parser, "!")) {
		parser->negated = !negated;
		err = operand_take(parser);
		parser->negated = negated;
	} else if (token_take(parser, "(")) {
		err = any_take(parser);
		if (!err && !token_take(parser, ")"))
			err = parser_fail(parser, parser->at, "expected && || or )", "");
	} else {
		err = comparison_take(parser);
	}
	parser->depth--;
	return err;
}

/* Takes operands with the sign between; two or more get a common parent node. */
static int chain_take(struct parser *parser, const char *sign, int (*take)(struct parser *parser),
		      enum node_kind kind)
{
	struct expression *to = parser->to;
	size_t start = to->count, operands = 0;
	struct expression_node *nodes;
	int err;

	do {
		err = take(parser);
		operands++;
	} while (!err && token_take(parser, sign));
	if (err || operands < 2)
		return err;
	expression_grow(to);
	nodes = to->nodes + start;
	memmove(nodes + 1, nodes, (to->count - start - 1) * sizeof(*nodes));
	*nodes = (struct expression_node){.kind = kind, .size = to->count - start};
	return 0;
}

/* negation: !(a && b) is !a || !b */
static int all_take(struct parser *parser)
{
	return chain_take(parser, "&&", operand_take, parser->negated ? NODE_ANY : NODE_ALL);
}

static int any_take(struct parser *parser)
{
	return chain_take(parser, "||", all_take, parser->negated ? NODE_ALL : NODE_ANY);
}

int expression_add(struct expression *expression, const char *text, struct error *e)
{
	struct parser parser = {.to = expression, .text = text, .at = text, .e = e};
	int err;

	if (strlen(text) > EXPRESSION_BYTES_MAX)
		return error_set(e, EINVAL, EXIT_USAGE, "%s: an expression of more than %d bytes",
				 option_of(expression), EXPRESSION_BYTES_MAX);
	err = any_take(&parser);
	spaces_skip(&parser);
	if (!err && *parser.at)
		err = parser_fail(&parser, parser.at, "expected && or ||", "");
	return err;
}

/* --- evaluation */

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
	const char *line = sample->cgroup.others;
	char path[PATH_MAX];

	if (column->offset != offsetof(struct sample, cgroup.path))
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
