/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The grammar in expression.h, by recursive descent. Negations are carried down to comparisons. */
#include "sample/filter/expression_node.h"
#include "base/names.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

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
		parser_fail(parser, start, column->name, " is no number: expected = != ~ or !~");
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
