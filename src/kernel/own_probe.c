/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/own_probe.h"
#include "kernel/record.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"

/* clang-format off */
const struct own_kind own_kinds[OWN_KINDS] = {
	[OWN_FUNCTION] = {'p', "function of a program or library", "function",
			  "p:postgres:FUNCTION, p:/usr/sbin/nginx:FUNCTION or p:libc:FUNCTION",
			  LETTERS DIGITS ".$@", .of_file = true, .returns = true,
			  .arguments = OWN_PROBE_ARGS, .type = OWN_INT},
	[OWN_USDT] = {'u', "USDT probe of one", "USDT probe",
		      "u:postgres:PROBE, u:/usr/bin/node:PROBE or u:libc:PROVIDER:PROBE",
		      LETTERS DIGITS, .of_file = true,
		      .arguments = USDT_ARGUMENTS_MAX, .type = OWN_BYTES},
	[OWN_KERNEL] = {'k', "kernel function", "kernel function", "k:vfs_read", LETTERS DIGITS ".",
			.returns = true, .named = true,
			.arguments = OWN_PROBE_ARGS, .type = OWN_INT},
	[OWN_TRACEPOINT] = {'t', "tracepoint", "tracepoint", "t:sched:sched_switch",
			    LETTERS DIGITS, .named = true,
			    .arguments = OWN_PROBE_ARGS, .type = OWN_INT},
};
/* clang-format on */

_Static_assert(USDT_ARGUMENTS_MAX <= OWN_PROBE_FIELDS, "a field for each argument");
_Static_assert(OWN_PROBES_MAX == PROBE_HELD_MAX, "a value for each context");

#define TYPES "int, bytes, ns, hex and str"

/* --- words */

struct reading {
	struct own_probe *probe;
	const char *at;
	unsigned int depth;
	struct error *e;
};

static int refuse_list(const struct own_probe *probe, size_t at, struct error *e,
		       const char *format, va_list list)
{
	char words[ERROR_LINE_SIZE / 2];

	vsnprintf(words, sizeof(words), format, list);
	return error_set(e, EINVAL, EXIT_USAGE, "%s '%.200s', character %zu: %s", probe->option,
			 probe->text, at + 1, words);
}

int own_probe_refuse(const struct own_probe *probe, size_t at, struct error *e, const char *format,
		     ...)
{
	va_list list;
	int err;

	va_start(list, format);
	err = refuse_list(probe, at, e, format, list);
	va_end(list);
	return err;
}

static size_t here(const struct reading *reading)
{
	return (size_t)(reading->at - reading->probe->text);
}

__attribute__((format(printf, 2, 3))) static int wrong(const struct reading *reading,
						       const char *format, ...)
{
	va_list list;
	int err;

	va_start(list, format);
	err = refuse_list(reading->probe, here(reading), reading->e, format, list);
	va_end(list);
	return err;
}

static void spaces_skip(struct reading *reading)
{
	reading->at += strspn(reading->at, " \t");
}

/* Reads that string, after spaces. */
static bool take(struct reading *reading, const char *string)
{
	spaces_skip(reading);
	if (strncmp(reading->at, string, strlen(string)) != 0)
		return false;
	reading->at += strlen(string);
	return true;
}

/* Reads the characters of a set into a buffer. 0: there are none; or -E2BIG: too many. */
static int word_take(struct reading *reading, const char *set, char *to, size_t size)
{
	size_t length = strspn(reading->at, set);

	if (length >= size)
		return -E2BIG;
	memcpy(to, reading->at, length);
	to[length] = 0;
	reading->at += length;
	return (int)length;
}

/* --- the target */

static int name_read(struct reading *reading)
{
	struct own_probe *probe = reading->probe;
	int length;

	spaces_skip(reading);
	if (!*reading->at)
		return wrong(reading, "there is no probe: 'NAME = p:FILE:FUNCTION'");
	length = strspn(reading->at, DIGITS "-")
			 ? 0
			 : word_take(reading, LETTERS DIGITS "-", probe->name, sizeof(probe->name));
	if (length < 0)
		return wrong(reading, "the probe's name is too long: at most %d characters",
			     OWN_PROBE_NAME_SIZE - 1);
	if (!length)
		return wrong(reading, "a probe begins with a name of letters, digits, _ and -: "
				      "'NAME = p:FILE:FUNCTION'");
	if (take(reading, "="))
		return 0;
	return wrong(reading, "'=' is expected after the probe's name: '%s = p:FILE:FUNCTION'",
		     probe->name);
}

/* Reads the file, and before the name of a USDT probe perhaps its provider: up to the last colons,
 * as paths may have some. */
static int file_read(struct reading *reading)
{
	const struct own_kind *kind = &own_kinds[reading->probe->kind];
	struct own_probe *probe = reading->probe;
	size_t length = strcspn(reading->at, "( \t"), file = length, provider;

	probe->file_at = here(reading);
	while (file && reading->at[file] != ':')
		file--;
	length = file;
	if (probe->kind == OWN_USDT) {
		for (provider = file; provider && reading->at[provider - 1] != ':';)
			provider--;
		if (provider > 1 && file > provider &&
		    strspn(reading->at + provider, LETTERS DIGITS) == file - provider) {
			if (file - provider >= sizeof(probe->provider))
				return wrong(reading, "the provider's name is too long");
			memcpy(probe->provider, reading->at + provider, file - provider);
			length = provider - 1;
		}
	}
	if (!length)
		return wrong(reading, "a file and a %s are expected: %s", kind->what,
			     kind->example);
	if (length >= sizeof(probe->file))
		return wrong(reading, "the file's name is too long");
	memcpy(probe->file, reading->at, length);
	reading->at += file + 1;
	return 0;
}

static int point_read(struct reading *reading)
{
	struct own_probe *probe = reading->probe;
	const struct own_kind *kind = &own_kinds[probe->kind];
	int length;

	probe->point_at = here(reading);
	length = word_take(reading, kind->point, probe->point, sizeof(probe->point));
	if (length < 0)
		return wrong(reading, "the %s's name is too long: at most %d characters",
			     kind->what, OWN_PROBE_POINT_SIZE - 1);
	if (!length)
		return wrong(reading, "the name of a %s is expected", kind->what);
	if (*reading->at && !strchr("( \t|", *reading->at))
		return wrong(reading, "'%c' is in no name of a %s%s", *reading->at, kind->what,
			     probe->kind == OWN_FUNCTION
				     ? ": symbols are given as nm(1) prints them without -C"
				     : "");
	return 0;
}

static int kind_read(struct reading *reading)
{
	struct text list = {0};
	int err;

	spaces_skip(reading);
	for (int kind = 0; kind < OWN_KINDS; kind++) {
		text_add_format(&list, "%s%c (%s)",
				!kind		       ? ""
				: kind + 1 < OWN_KINDS ? ", "
						       : " and ",
				own_kinds[kind].letter, own_kinds[kind].help);
		if (*reading->at == own_kinds[kind].letter && reading->at[1] == ':') {
			reading->probe->kind = (enum own_probe_kind)kind;
			reading->at += 2;
			text_done(&list);
			return 0;
		}
	}
	err = wrong(reading, "a kind and a colon are expected; the kinds are %s",
		    text_string(&list));
	text_done(&list);
	return err;
}

static int target_read(struct reading *reading)
{
	const char *category;
	int err = kind_read(reading);

	if (!err && own_kinds[reading->probe->kind].of_file)
		err = file_read(reading);
	if (err)
		return err;
	/* raw tracepoints are known by their names alone, which differ in all categories */
	category = reading->at + strspn(reading->at, LETTERS DIGITS);
	if (reading->probe->kind == OWN_TRACEPOINT && *category == ':')
		reading->at = category + 1;
	return point_read(reading);
}

/* --- values and conditions */

static const struct {
	const char *word;
	enum own_probe_type type;
} types[] = {
	{"int", OWN_INT}, {"bytes", OWN_BYTES}, {"ns", OWN_NS}, {"hex", OWN_HEX}, {"str", OWN_STR}};

static int type_read(struct reading *reading, enum own_probe_type *type)
{
	const char *from = reading->at;
	char word[OWN_PROBE_NAME_SIZE];

	if (*reading->at != ':')
		return 0;
	reading->at++;
	if (word_take(reading, LETTERS DIGITS, word, sizeof(word)) > 0)
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if (!strcmp(word, types[i].word)) {
				*type = types[i].type;
				return 0;
			}
	reading->at = from + 1;
	return wrong(reading, "unknown type; the types are " TYPES);
}

/* Reads arg3, ret or a name. Fills the field but for its place. */
static int field_read(struct reading *reading, struct own_probe_field *field)
{
	const struct own_kind *kind = &own_kinds[reading->probe->kind];
	const char *from;
	int length;

	spaces_skip(reading);
	from = reading->at;
	*field = (struct own_probe_field){.at = here(reading)};
	length = word_take(reading, LETTERS DIGITS, field->name, sizeof(field->name));
	if (length <= 0 || strchr(DIGITS, field->name[0])) {
		reading->at = from;
		return wrong(reading, "a value is expected: arg1 to arg%u%s%s", kind->arguments,
			     kind->returns ? " or ret" : "",
			     kind->named ? ", or the name of an argument" : "");
	}
	if (!strcmp(field->name, "ret")) {
		reading->at = from;
		if (!kind->returns)
			return wrong(reading, "a %s returns nothing: ret is for functions",
				     kind->what);
		if (reading->probe->result == OWN_HELD)
			return wrong(reading, "a context begins where a function is called: ret is "
					      "for --probe");
		reading->at += length;
		field->returned = true;
		field->name[0] = 0;
		return 0;
	}
	if (!strncmp(field->name, "arg", 3) && field->name[3] &&
	    !field->name[3 + strspn(field->name + 3, DIGITS)]) {
		unsigned long number = strtoul(field->name + 3, NULL, 10);

		reading->at = from;
		if (number < 1 || number > kind->arguments)
			return wrong(reading, "there is no %s: arg1 to arg%u can be read",
				     field->name, kind->arguments);
		reading->at += length;
		field->arg = (unsigned int)number;
		field->name[0] = 0;
		return 0;
	}
	if (kind->named)
		return 0;
	reading->at = from;
	return wrong(reading, "arguments of %ss have numbers: arg1 to arg%u%s", kind->what,
		     kind->arguments, kind->returns ? ", or ret for what it returns" : "");
}

/* Reads a value. *index: its field in the probe. */
static int value_read(struct reading *reading, unsigned int *index, enum own_probe_type *type)
{
	struct own_probe *probe = reading->probe;
	struct own_probe_field field;
	int err = field_read(reading, &field);

	if (err)
		return err;
	for (*index = 0; *index < probe->field_count; ++*index) {
		const struct own_probe_field *known = &probe->fields[*index];

		if (known->returned == field.returned && known->arg == field.arg &&
		    !strcmp(known->name, field.name))
			break;
	}
	if (*index == OWN_PROBE_FIELDS)
		return wrong(reading, "too many different values: at most %d", OWN_PROBE_FIELDS);
	if (*index == probe->field_count)
		probe->fields[probe->field_count++] = field;
	return type_read(reading, type);
}

static int result_read(struct reading *reading)
{
	struct own_probe *probe = reading->probe;
	int err;

	probe->result = own_kinds[probe->kind].returns ? OWN_TIME : OWN_COUNT;
	if (*reading->at != '(')
		return 0;
	reading->at++;
	probe->result = OWN_COUNT;
	if (take(reading, ")"))
		return 0;
	probe->result = OWN_VALUE;
	probe->type = own_kinds[probe->kind].type;
	err = value_read(reading, &probe->value, &probe->type);
	if (!err && (probe->type == OWN_HEX || probe->type == OWN_STR))
		probe->result = OWN_EACH;
	if (err || take(reading, ")"))
		return err;
	return wrong(reading, "')' is expected after the value");
}

static struct own_probe_token *token_add(struct reading *reading, enum own_probe_word word)
{
	struct own_probe *probe = reading->probe;
	struct own_probe_token *token;

	if (probe->token_count == OWN_PROBE_TOKENS)
		return NULL;
	token = &probe->tokens[probe->token_count++];
	*token = (struct own_probe_token){.word = (unsigned char)word};
	return token;
}

static int word_add(struct reading *reading, enum own_probe_word word)
{
	return token_add(reading, word) ? 0 : wrong(reading, "the condition is too long");
}

/* Units, longest first. */
static const struct {
	const char *word;
	int64_t factor;
} units[] = {
	{"ns", 1},	  {"us", 1000},	    {"ms", 1000000},  {"s", 1000000000},
	{"K", 1ll << 10}, {"M", 1ll << 20}, {"G", 1ll << 30}, {"T", 1ll << 40},
};

static int number_read(struct reading *reading, int64_t *number)
{
	const char *from, *digits;
	bool negative, hexadecimal;
	unsigned long long value;
	__int128 product;
	char *end;

	spaces_skip(reading);
	from = reading->at;
	negative = *from == '-';
	digits = from + negative;
	hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	if (!*digits || !strchr(DIGITS, *digits) ||
	    (hexadecimal && !strspn(digits + 2, DIGITS "abcdefABCDEF")))
		return wrong(reading, "a number is expected, such as 4096, 64K, 0x1f or -1");
	errno = 0;
	value = strtoull(digits, &end, hexadecimal ? 16 : 10);
	product = value;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strncmp(end, units[i].word, strlen(units[i].word))) {
			product *= units[i].factor;
			end += strlen(units[i].word);
			break;
		}
	/* an address above 2^63 is typed in hexadecimal */
	if (errno || (product > INT64_MAX && !(hexadecimal && product <= UINT64_MAX)))
		return wrong(reading, "this number is too large for 64 bits");
	if (*end && strchr(LETTERS DIGITS ".", *end)) {
		reading->at = end;
		return wrong(reading,
			     "'%c' is no part of a number; its units are K, M, G, T, ns, "
			     "us, ms and s",
			     *end);
	}
	reading->at = end;
	*number = (int64_t)(negative ? -product : product);
	return 0;
}

static int comparison_read(struct reading *reading)
{
	/* as typed, and in C; the longer ones first */
	static const char *const signs[][2] = {{"==", "=="}, {"!=", "!="}, {"<=", "<="},
					       {">=", ">="}, {"=", "=="},  {"<", "<"},
					       {">", ">"}};
	enum own_probe_type type = OWN_PLAIN;
	struct own_probe_token *token;
	unsigned int field = 0;
	const char *sign = NULL;
	int64_t number = 0;
	int err = value_read(reading, &field, &type);

	if (!err && type == OWN_STR)
		return wrong(reading, "conditions compare numbers: str is for a value that is "
				      "reported");
	for (size_t i = 0; !err && !sign && i < sizeof(signs) / sizeof(signs[0]); i++)
		if (take(reading, signs[i][0]))
			sign = signs[i][1];
	if (!err && !sign)
		return wrong(reading, "a comparison is expected: =, !=, <, <=, > or >=");
	if (!err)
		err = number_read(reading, &number);
	if (err)
		return err;
	token = token_add(reading, OWN_COMPARE);
	if (!token)
		return wrong(reading, "the condition is too long");
	token->field = (unsigned char)field;
	token->type = (unsigned char)type;
	token->number = number;
	snprintf(token->sign, sizeof(token->sign), "%s", sign);
	return 0;
}

static int condition_read(struct reading *reading);

static int operand_read(struct reading *reading)
{
	int err;

	spaces_skip(reading);
	if (*reading->at != '!' && *reading->at != '(')
		return comparison_read(reading);
	if (++reading->depth > OWN_PROBE_DEPTH)
		return wrong(reading, "too many levels of ( and !: at most %d", OWN_PROBE_DEPTH);
	if (take(reading, "!")) {
		err = word_add(reading, OWN_NOT);
		if (!err)
			err = operand_read(reading);
	} else {
		take(reading, "(");
		err = word_add(reading, OWN_OPEN);
		if (!err)
			err = condition_read(reading);
		if (!err && !take(reading, ")"))
			err = wrong(reading, "')' is expected");
		if (!err)
			err = word_add(reading, OWN_CLOSE);
	}
	reading->depth--;
	return err;
}

static int condition_read(struct reading *reading)
{
	for (;;) {
		int err = operand_read(reading);

		if (err)
			return err;
		if (take(reading, "&&"))
			err = word_add(reading, OWN_AND);
		else if (take(reading, "||"))
			err = word_add(reading, OWN_OR);
		else
			return 0;
		if (err)
			return err;
	}
}

/* Reads "if" and a condition, if they are there. */
static int if_read(struct reading *reading)
{
	if (!take(reading, "if"))
		return 0;
	if (*reading->at && !strchr(" \t(!", *reading->at))
		return wrong(reading, "a space is expected after 'if'");
	return condition_read(reading);
}

int own_probe_parse(const char *text, struct own_probe *probe, struct error *e)
{
	struct reading reading = {probe, text, 0, e};
	int err;

	*probe = (struct own_probe){.option = "--probe", .text = text};
	err = name_read(&reading);
	if (!err)
		err = target_read(&reading);
	if (!err)
		err = result_read(&reading);
	if (!err)
		err = if_read(&reading);
	spaces_skip(&reading);
	if (!err && *reading.at)
		return wrong(&reading,
			     probe->token_count
				     ? "'&&', '||' or the end is expected"
				     : "'(' and a value, 'if' and a condition, or the end is "
				       "expected");
	return err;
}

/* --- contexts */

#define CONTEXT_FORM "'NAME = probe u:FILE:PROBE(VALUE) .. PROBE'"

/* Reads the value, which a context must have. */
static int held_read(struct reading *reading)
{
	struct own_probe *probe = reading->probe;
	int err;

	if (*reading->at != '(')
		return wrong(reading,
			     "the value that threads have is expected in brackets: " CONTEXT_FORM);
	reading->at++;
	probe->type = own_kinds[probe->kind].type;
	err = value_read(reading, &probe->value, &probe->type);
	if (err || take(reading, ")"))
		return err;
	return wrong(reading, "')' is expected after the value");
}

/* Reads a probe that ends it: a whole target, or another point of the file of the one before. */
static int end_read(struct reading *reading, const struct own_probe *before)
{
	struct own_probe *end = reading->probe;

	spaces_skip(reading);
	if (!*reading->at)
		return wrong(reading, "the probe that ends it is expected: " CONTEXT_FORM);
	if (reading->at[1] == ':' && before->result == OWN_HELD)
		return target_read(reading);
	end->kind = before->kind;
	end->file_at = before->file_at;
	memcpy(end->file, before->file, sizeof(end->file));
	memcpy(end->provider, before->provider, sizeof(end->provider));
	return point_read(reading);
}

static int ends_read(struct reading *reading, struct own_item *item)
{
	const struct own_probe *before = &item->probe;
	int err;

	do {
		if (item->end_count == OWN_ENDS_MAX)
			return wrong(reading, "at most %d probes end a context", OWN_ENDS_MAX);
		reading->probe = &item->ends[item->end_count++];
		*reading->probe = (struct own_probe){.option = item->probe.option,
						     .text = item->probe.text,
						     .result = OWN_COUNT};
		err = end_read(reading, before);
		before = reading->probe;
		if (!err && item->end_count > 1 && !own_kinds[before->kind].of_file)
			err = wrong(reading, "only points of a file can be several");
	} while (!err && take(reading, "|"));
	return err;
}

bool own_context_is(const char *text)
{
	text += strcspn(text, "=");
	text += *text == '=';
	text += strspn(text, " \t");
	return !strncmp(text, "probe", 5) && (!text[5] || strchr(" \t", text[5]));
}

int own_context_parse(const char *text, struct own_item *item, struct error *e)
{
	struct reading reading = {&item->probe, text, 0, e};
	int err;

	item->probe = (struct own_probe){.option = "--context", .text = text, .result = OWN_HELD};
	err = name_read(&reading);
	if (!err && !take(&reading, "probe"))
		err = wrong(&reading, "'probe' is expected: " CONTEXT_FORM);
	spaces_skip(&reading);
	if (!err)
		err = target_read(&reading);
	if (!err)
		err = held_read(&reading);
	if (!err)
		err = if_read(&reading);
	if (err)
		return err;
	if (!take(&reading, ".."))
		return wrong(&reading,
			     "'..' and the probe that ends it are expected: " CONTEXT_FORM);
	err = ends_read(&reading, item);
	spaces_skip(&reading);
	if (!err && *reading.at)
		err = wrong(&reading, "'|' or the end is expected: a probe that ends a context has "
				      "neither a value nor a condition");
	return err;
}

bool own_probes_report(const struct own_probes *probes)
{
	for (unsigned int i = 0; probes && i < probes->count; i++)
		if (probes->items[i].probe.result != OWN_HELD)
			return true;
	return false;
}

bool own_probes_hold(const struct own_probes *probes)
{
	for (unsigned int i = 0; probes && i < probes->count; i++)
		if (probes->items[i].probe.result == OWN_HELD)
			return true;
	return false;
}

/* --- the BPF text */

static bool reads(const struct own_probe *probe, bool returned)
{
	for (unsigned int i = 0; i < probe->field_count; i++)
		if (probe->fields[i].returned == returned)
			return true;
	return false;
}

bool own_probe_returns(const struct own_probe *probe)
{
	return probe->result == OWN_TIME || reads(probe, true);
}

bool own_probe_enters(const struct own_probe *probe)
{
	return !own_probe_returns(probe) || probe->result == OWN_TIME || reads(probe, false);
}

/* Adds "v2", of the type: an int has 32 bits, with a sign. */
static void value_add(unsigned int field, enum own_probe_type type, struct text *to)
{
	text_add_format(to,
			type == OWN_INT	  ? "(__s64)(__s32)v%u"
			: type == OWN_HEX ? "v%u"
					  : "(__s64)v%u",
			field);
}

static void condition_add(const struct own_probe *probe, struct text *to)
{
	static const char *const words[] = {[OWN_OPEN] = "(",
					    [OWN_CLOSE] = ")",
					    [OWN_AND] = " && ",
					    [OWN_OR] = " || ",
					    [OWN_NOT] = "!"};

	for (unsigned int i = 0; i < probe->token_count; i++) {
		const struct own_probe_token *token = &probe->tokens[i];

		if (token->word != OWN_COMPARE) {
			text_add_string(to, words[token->word]);
			continue;
		}
		text_add_char(to, '(');
		value_add(token->field, (enum own_probe_type)token->type, to);
		text_add_format(to, " %s %s0x%llxull)", token->sign,
				token->type == OWN_HEX ? "" : "(__s64)",
				(unsigned long long)token->number);
	}
}

/* Adds a value as it is: of a text its key. */
static void each_add(const struct own_probe *probe, struct text *to)
{
	if (probe->type == OWN_STR)
		text_add_format(to, "probe_text(v%u, %d)", probe->value,
				!own_kinds[probe->kind].of_file);
	else
		value_add(probe->value, probe->type, to);
}

/* Adds what is done with an event whose values are v0, v1 and so on. */
static void report_add(const struct own_probe *probe, unsigned int index, struct text *to)
{
	if (probe->token_count) {
		text_add_string(to, "\tif (!(");
		condition_add(probe, to);
		text_add_string(to, "))\n\t\treturn 0;\n");
	}
	if (probe->result == OWN_COUNT) {
		text_add_format(to, "\tprobe_count(ctx, %u);\n", index);
	} else if (probe->result == OWN_TIME) {
		text_add_format(to, "\tprobe_time(ctx, %u, now_ns, &call);\n", index);
	} else if (probe->result == OWN_EACH || probe->result == OWN_HELD) {
		text_add_format(to,
				probe->result == OWN_HELD ? "\tprobe_hold(%u, "
							  : "\tprobe_each(ctx, %u, ",
				index);
		each_add(probe, to);
		text_add_string(to, probe->result == OWN_HELD ? ", 1);\n" : ");\n");
	} else {
		text_add_format(to, "\tprobe_%s(ctx, %u, ", probe->type == OWN_NS ? "ns" : "amount",
				index);
		value_add(probe->value, probe->type, to);
		text_add_string(to, ");\n");
	}
}

/* Adds the probe's values, from registers or, at a return, from what was kept at the entry. */
static void values_add(const struct own_probe *probe, const char *from, struct text *to)
{
	for (unsigned int i = 0; i < probe->field_count; i++)
		if (probe->fields[i].returned)
			text_add_format(to, "\t__u64 v%u = PROBE_RESULT;\n", i);
		else
			text_add_format(to, "\t__u64 v%u = %s(%u);\n", i, from,
					probe->fields[i].arg);
}

/* --- operands of USDT probes */

#define SITE_BITS 4095u /* of an address: the smallest page */

static bool sites_equal(const struct own_probe *probe, const struct own_site *a,
			const struct own_site *b)
{
	return !memcmp(a->operands, b->operands, probe->field_count * sizeof(a->operands[0]));
}

bool own_sites_differ(const struct own_probe *probe, const struct own_target *target)
{
	for (unsigned int i = 0; i < target->site_count; i++)
		for (unsigned int j = 0; j < i; j++)
			if (!((target->sites[i].offset ^ target->sites[j].offset) & SITE_BITS) &&
			    !sites_equal(probe, &target->sites[i], &target->sites[j]))
				return false;
	return true;
}

/* Adds a statement that gives v0 its value. */
static void operand_add(const struct usdt_operand *operand, unsigned int field, struct text *to)
{
	static const char *const words[9][2] = {[1] = {"__u8", "__s8"},
						[2] = {"__u16", "__s16"},
						[4] = {"__u32", "__s32"},
						[8] = {"__u64", "__s64"}};
	const char *type = words[operand->bytes][operand->is_signed];

	switch (operand->place) {
	case USDT_CONSTANT:
		text_add_format(to, "\t\tv%u = (__u64)(__s64)(%s)0x%llxull;\n", field, type,
				(unsigned long long)operand->offset);
		break;
	case USDT_REGISTER:
		text_add_format(to, "\t\tv%u = (__u64)(__s64)(%s)(PROBE_REGISTER(%u) >> %u);\n",
				field, type, operand->base, operand->dropped);
		break;
	case USDT_MEMORY:
		text_add_format(to, "\t\tPROBE_READ(v%u, %s, 0x%llxull", field, type,
				(unsigned long long)operand->offset);
		if (operand->base != USDT_NO_REGISTER)
			text_add_format(to, " + PROBE_REGISTER(%u)", operand->base);
		if (operand->index != USDT_NO_REGISTER)
			text_add_format(to, " + (PROBE_REGISTER(%u) << %u)", operand->index,
					operand->scale);
		text_add_string(to, ");\n");
		break;
	}
}

/* Adds the condition that the program runs at one of the sites with the operands of site `first`.
 */
static void site_add(const struct own_probe *probe, const struct own_target *target,
		     unsigned int first, struct text *to)
{
	text_add_string(to, "if (");
	for (unsigned int i = first; i < target->site_count; i++)
		if (sites_equal(probe, &target->sites[first], &target->sites[i]))
			text_add_format(to, "%sat == %uu", i > first ? " || " : "",
					(unsigned int)(target->sites[i].offset & SITE_BITS));
	text_add_string(to, ") {\n");
}

/* Adds the values of a USDT probe: at each site they are elsewhere. */
static void usdt_values_add(const struct own_probe *probe, const struct own_target *target,
			    struct text *to)
{
	if (!probe->field_count)
		return;
	for (unsigned int field = 0; field < probe->field_count; field++)
		text_add_format(to, "\t__u64 v%u = 0;\n", field);
	text_add_format(to, "\t__u32 at = PROBE_PLACE & %u;\n\t", SITE_BITS);
	for (unsigned int site = 0; site < target->site_count; site++) {
		unsigned int like = 0;

		while (!sites_equal(probe, &target->sites[like], &target->sites[site]))
			like++;
		if (like < site)
			continue;
		site_add(probe, target, site, to);
		for (unsigned int field = 0; field < probe->field_count; field++)
			operand_add(&target->sites[site].operands[field], field, to);
		text_add_string(to, "\t} else ");
	}
	text_add_string(to, "{\n\t\treturn 0;\n\t}\n");
}

static void return_add(const struct own_probe *probe, unsigned int index, struct text *to)
{
	text_add_format(to, "int probe_%u_return(struct pt_regs *ctx)\n{\n", index);
	text_add_string(to, "\t__u64 now_ns = bpf_ktime_get_ns();\n"
			    "\tstruct probe_call call = {};\n");
	if (own_probe_enters(probe))
		text_add_format(
			to, "\tif (!probe_ends(%u, PROBE_STACK_RETURNED, &call))\n\t\treturn 0;\n",
			index);
	values_add(probe, "PROBE_KEPT", to);
	report_add(probe, index, to);
	text_add_string(to, "\treturn 0;\n}\n");
}

static void entry_add(const struct own_probe *probe, const struct own_target *target,
		      unsigned int index, struct text *to)
{
	text_add_format(to, "int probe_%u_entry(struct pt_regs *ctx)\n{\n", index);
	if (own_probe_returns(probe)) {
		text_add_string(to, "\tstruct probe_call call = {};\n");
		for (unsigned int i = 0; i < probe->field_count; i++)
			if (!probe->fields[i].returned)
				text_add_format(to, "\tPROBE_KEPT(%u) = PROBE_ARGUMENT(%u);\n",
						probe->fields[i].arg, probe->fields[i].arg);
		text_add_format(to, "\tprobe_begins(%u, PROBE_STACK, &call, %d);\n", index,
				probe->result == OWN_TIME);
	} else {
		if (probe->kind == OWN_USDT)
			usdt_values_add(probe, target, to);
		else
			values_add(probe, "PROBE_ARGUMENT", to);
		report_add(probe, index, to);
	}
	text_add_string(to, "\treturn 0;\n}\n");
}

static void tracepoint_add(const struct own_probe *probe, unsigned int index, struct text *to)
{
	text_add_format(to, "int probe_%u_entry(struct bpf_raw_tracepoint_args *ctx)\n{\n", index);
	values_add(probe, "PROBE_RAW_ARGUMENT", to);
	report_add(probe, index, to);
	text_add_string(to, "\treturn 0;\n}\n");
}

/* Adds the second probe of a context. */
static void end_add(const struct own_probe *end, unsigned int index, struct text *to)
{
	text_add_format(to,
			end->kind == OWN_TRACEPOINT
				? "int probe_%u_return(struct bpf_raw_tracepoint_args *ctx)\n{\n"
				: "int probe_%u_return(struct pt_regs *ctx)\n{\n",
			index);
	text_add_format(to, "\tprobe_hold(%u, 0, 0);\n\treturn 0;\n}\n", index);
}

void own_item_text_write(const struct own_item *item, unsigned int index, struct text *to)
{
	const struct own_probe *probe = &item->probe;

	if (probe->kind == OWN_TRACEPOINT)
		tracepoint_add(probe, index, to);
	else if (own_probe_enters(probe))
		entry_add(probe, &item->target, index, to);
	if (probe->result == OWN_HELD)
		end_add(&item->ends[0], index, to);
	else if (probe->kind != OWN_TRACEPOINT && own_probe_returns(probe))
		return_add(probe, index, to);
}

/* --- rows of a plan */

static const char *const functions[OWN_PROBES_MAX][2] = {{"probe_0_entry", "probe_0_return"},
							 {"probe_1_entry", "probe_1_return"},
							 {"probe_2_entry", "probe_2_return"},
							 {"probe_3_entry", "probe_3_return"}};

static const struct {
	enum probe_kind begin, end;
} kinds[OWN_KINDS] = {
	[OWN_FUNCTION] = {PROBE_FUNCTION, PROBE_FUNCTION_RETURN},
	[OWN_USDT] = {PROBE_FUNCTION, PROBE_FUNCTION_RETURN},
	[OWN_KERNEL] = {PROBE_KERNEL_FUNCTION, PROBE_KERNEL_FUNCTION_RETURN},
	[OWN_TRACEPOINT] = {PROBE_RAW_TRACEPOINT, PROBE_RAW_TRACEPOINT},
};

void own_probes_rows_fill(struct own_probes *probes)
{
	for (unsigned int i = 0; i < probes->count; i++) {
		struct own_item *item = &probes->items[i];
		const bool held = item->probe.result == OWN_HELD;
		const struct own_probe *last = held ? &item->ends[0] : &item->probe;

		item->rows[0] = (struct own_row){
			.row = {.name = "probe",
				.kind = kinds[item->probe.kind].begin,
				.gives = (enum probe_group)(GROUP_OWN + 2 * i),
				.event = item->probe.point,
				.function =
					own_probe_enters(&item->probe) ? functions[i][0] : NULL},
			.target = &item->target};
		item->rows[1] = (struct own_row){
			.row = {.name = "probe",
				.kind = held ? kinds[last->kind].begin : kinds[last->kind].end,
				.gives = (enum probe_group)(GROUP_OWN + 2 * i + 1),
				.event = last->point,
				.function =
					held || own_probe_returns(last) ? functions[i][1] : NULL},
			.target = held ? &item->end_target : &item->target};
	}
}

void own_probes_plan(const struct own_probes *probes, struct probe_plan *plan)
{
	for (unsigned int i = 0; probes && i < probes->count; i++)
		for (unsigned int end = 0; end < 2 && !probes->items[i].detached; end++)
			if (probes->items[i].rows[end].row.function)
				plan->chosen[GROUP_OWN + 2 * i + end] =
					&probes->items[i].rows[end].row;
}
