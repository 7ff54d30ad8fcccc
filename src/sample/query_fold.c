/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/query_fold.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of names; those above ASCII are of letters. */
static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool ends_with(const struct text *text, const char *end)
{
	return text->length && text_ends(text->bytes, end);
}

static void cut(struct text *text, size_t bytes)
{
	text_end(text, text->bytes + text->length - bytes);
}

/* Adds a value; of a list only the first. */
static void value_add(struct text *to)
{
	size_t at = to->length;

	while (at && to->bytes[at - 1] == ' ')
		at--;
	if (at && to->bytes[at - 1] == ',') {
		for (at--; at && to->bytes[at - 1] == ' ';)
			at--;
		if (at && to->bytes[at - 1] == '?') {
			cut(to, to->length - at);
			return;
		}
	}
	text_add_char(to, '?');
}

/* Skips a string; backslashes escape: E'it\'s'. */
static const char *string_skip(const char *at, char quote, bool escapes)
{
	for (at++; *at; at++) {
		if ((escapes && *at == '\\' && at[1]) || (*at == quote && at[1] == quote))
			at++;
		else if (*at == quote)
			return at + 1;
	}
	return at;
}

/* Skips $tag$ ... $tag$. NULL: none begins here. */
static const char *dollars_skip(const char *at)
{
	size_t tag = 1;
	const char *end;

	while (at[tag] != '$' && is_name(at[tag]))
		tag++;
	if (at[tag] != '$' || is_digit(at[1]))
		return NULL;
	tag++;
	for (end = at + tag; *end; end++)
		if (!strncmp(end, at, tag))
			return end + tag;
	return end;
}

/* Skips a comment; those between slashes and stars may lie in each other. */
static const char *comment_skip(const char *at)
{
	int depth = 0;

	if (*at == '-')
		return at + strcspn(at, "\n");
	do {
		bool begins = at[0] == '/' && at[1] == '*', ends = at[0] == '*' && at[1] == '/';

		depth += begins - ends;
		at += begins || ends ? 2 : 1;
	} while (depth && *at);
	return at;
}

/* Skips 12, 1.5e-3, 0x1f. */
static const char *number_skip(const char *at)
{
	while (is_name(*at) || *at == '.' ||
	       ((*at == '-' || *at == '+') && (at[-1] | 0x20) == 'e' && is_digit(at[1])))
		at++;
	return at;
}

static void blank_add(struct text *to)
{
	if (to->length && !ends_with(to, " "))
		text_add_char(to, ' ');
}

/* Takes a string with its prefix (E, B, X, N, or U&), if the name before it is one. */
static const char *string_take(struct text *to, const char *at, const char *query)
{
	size_t prefix = at > query && strchr("eEbBxXnN", at[-1])		    ? 1
			: at > query + 1 && at[-1] == '&' && (at[-2] | 0x20) == 'u' ? 2
										    : 0;
	bool escapes = prefix == 1 && (at[-1] | 0x20) == 'e';

	if (prefix && at > query + prefix && is_name(at[-1 - (long)prefix]))
		prefix = escapes = 0;
	cut(to, prefix);
	value_add(to);
	return string_skip(at, '\'', escapes);
}

void query_fold(struct text *to, const char *query)
{
	const char *at = query, *end;

	text_add_string(to, ""); /* it has bytes */
	while (*at) {
		if (is_blank(*at)) {
			blank_add(to);
			at++;
		} else if (!strncmp(at, "--", 2) || !strncmp(at, "/*", 2)) {
			blank_add(to);
			at = comment_skip(at);
		} else if (*at == '\'') {
			at = string_take(to, at, query);
		} else if (*at == '"' || *at == '`') {
			end = string_skip(at, *at, false);
			text_add(to, at, (size_t)(end - at));
			at = end;
		} else if (*at == '$' && (end = dollars_skip(at))) {
			value_add(to);
			at = end;
		} else if (is_digit(*at) || ((*at == '$' || *at == '.') && is_digit(at[1]))) {
			value_add(to);
			at = number_skip(at + 1);
		} else if (is_name(*at)) {
			for (end = at; is_name(*end); end++)
				;
			text_add(to, at, (size_t)(end - at));
			at = end;
		} else {
			text_add_char(to, *at++);
			/* a list of rows, each of one list of values */
			if (ends_with(to, "(?), (?)"))
				cut(to, 5);
			else if (ends_with(to, "(?),(?)"))
				cut(to, 4);
		}
	}
	/* a statement is the same with a semicolon behind it and without */
	while (ends_with(to, " ") || ends_with(to, ";"))
		cut(to, 1);
}
