/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/program_variable.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/needs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 32
#define PART_BYTES_MAX 128
#define FORM "NAME = var FILE:SYMBOL[->OFFSET...][:TYPE]"
#define PROBES_FORM "NAME = probe u:FILE:PROBE(VALUE) .. PROBE"
#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* clang-format off */
static const struct variable_type types[] = {
	{"u8",  1, false, KIND_NUMBER}, {"i8",  1, true, KIND_NUMBER},
	{"u16", 2, false, KIND_NUMBER}, {"i16", 2, true, KIND_NUMBER},
	{"u32", 4, false, KIND_NUMBER}, {"i32", 4, true, KIND_NUMBER},
	{"u64", 8, false, KIND_NUMBER}, {"i64", 8, true, KIND_NUMBER},
	{"hex", 8, false, KIND_HEX},    {"ptr", 8, false, KIND_HEX},
	{"str", 0, false, KIND_TEXT},
	{"",    0, false, KIND_NUMBER}, /* the last: none is given */
};
/* clang-format on */

#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

struct program_variable program_variables[PROGRAM_VARIABLES_MAX];
size_t program_variable_count;

static const char *type_name_at(void *from, size_t at)
{
	(void)from;
	return at < TYPE_COUNT - 1 ? types[at].name : NULL;
}

static const char *column_name_at(void *from, size_t at)
{
	(void)from;
	return at < sample_column_count ? sample_columns[at].name : NULL;
}

static int wrong(const char *spec, const char *why, struct error *e)
{
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--context '%s': %s; it has the form %s, or " PROBES_FORM, spec, why,
			 FORM);
}

static void blanks_skip(const char **at)
{
	*at += strspn(*at, " \t");
}

/* Takes that many characters; NULL: there are none, or too many. */
static const char *part_take(const char **at, size_t length)
{
	const char *from = *at;

	*at += length;
	return length && length < PART_BYTES_MAX ? name_of(from, length) : NULL;
}

/* Bytes of a symbol: its end is ->, or a colon that is not one of C++'s two. */
static size_t symbol_length(const char *at)
{
	size_t length = 0;

	for (; at[length] && at[length] != ' ' && strncmp(at + length, "->", 2) != 0; length++)
		if (at[length] == ':' && at[length + 1] != ':')
			break;
		else
			length += at[length] == ':';
	return length;
}

static int name_check(const char *spec, const char *name, struct error *e)
{
	if (!name || strlen(name) >= NAME_BYTES_MAX || name[strspn(name, SMALL DIGITS "_")] ||
	    strchr(DIGITS, *name))
		return wrong(spec, "the name has to be of small letters, digits and _", e);
	for (size_t i = 0; i < sample_column_count; i++)
		if (!strcmp(column_name_at(NULL, i), name))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "--context '%s': there is a column %s already", spec,
					 name);
	return 0;
}

static int offsets_take(const char *spec, const char **at, struct program_variable *variable,
			struct error *e)
{
	while (!strncmp(*at, "->", 2)) {
		const char *from = *at + 2;
		char *end;

		if (variable->offset_count == VARIABLE_OFFSETS_MAX)
			return wrong(spec, "there are more than 8 offsets", e);
		errno = 0;
		variable->offsets[variable->offset_count++] = strtoll(from, &end, 0);
		if (errno || end == from || *from == ' ')
			return wrong(spec, "after -> comes a number of bytes", e);
		*at = end;
	}
	return 0;
}

static int type_take(const char *spec, const char **at, struct program_variable *variable,
		     struct error *e)
{
	const char *nearest;

	variable->type = &types[TYPE_COUNT - 1];
	if (**at != ':')
		return 0;
	++*at;
	for (size_t i = 0; i < TYPE_COUNT - 1; i++)
		if (strcspn(*at, " \t") == strlen(types[i].name) &&
		    !strncmp(*at, types[i].name, strlen(types[i].name))) {
			*at += strlen(types[i].name);
			variable->type = &types[i];
			return 0;
		}
	nearest = text_nearest(*at, type_name_at, NULL);
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--context '%s': there is no type '%s'%s%s; types are u8 to u64, i8 to "
			 "i64, hex, ptr and str",
			 spec, *at, nearest ? "; nearest: " : "", nearest ? nearest : "");
}

int program_variable_add(const char *spec, struct error *e)
{
	struct program_variable made = {0};
	const char *at = spec;
	int err;

	if (program_variable_count == PROGRAM_VARIABLES_MAX)
		return error_set(e, EINVAL, EXIT_USAGE, "--context: there are %d of them already",
				 PROGRAM_VARIABLES_MAX);
	blanks_skip(&at);
	made.name = part_take(&at, strcspn(at, " \t="));
	err = name_check(spec, made.name, e);
	if (err)
		return err;
	blanks_skip(&at);
	if (*at++ != '=')
		return wrong(spec, "after the name comes =", e);
	blanks_skip(&at);
	if (strncmp(at, "var", 3) != 0 || !strchr(" \t", at[3]))
		return wrong(spec, "after = comes var or probe", e);
	at += 3;
	blanks_skip(&at);
	made.module = part_take(&at, strcspn(at, ": \t"));
	if (!made.module || *at++ != ':')
		return wrong(spec, "after var come a file and a colon", e);
	made.symbol = part_take(&at, symbol_length(at));
	if (!made.symbol)
		return wrong(spec, "after the file comes a symbol of up to 127 bytes", e);
	err = offsets_take(spec, &at, &made, e);
	if (!err)
		err = type_take(spec, &at, &made, e);
	if (err)
		return err;
	blanks_skip(&at);
	if (*at)
		return wrong(spec, "there is more than that", e);
	sample_column_add(made.name, made.type->kind, NEED_VARIABLES,
			  offsetof(struct sample, app.variables[program_variable_count]));
	program_variables[program_variable_count++] = made;
	return 0;
}

int held_column_add(const char *spec, const char *name, enum column_kind kind, size_t slot,
		    struct error *e)
{
	int err = name_check(spec, name, e);

	if (!err)
		sample_column_add(name, kind, NEED_HELD,
				  offsetof(struct sample, held.values[slot]));
	return err;
}
