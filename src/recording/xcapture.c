/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/xcapture.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADER "TIMESTAMP,WEIGHT_US,"
#define READ_BYTES 65536
#define FRACTION_DIGITS 6

typedef void (*value_writer)(struct text *to, const char *text);

struct input {
	struct csv_input input; /* first member, so that an input is a struct input */
	struct csv_input *source;
	const char *name;
	struct text from, to; /* lines of xcapture; lines of tsnap that were not read yet */
	size_t from_read, to_read;
	bool begun, foreign, ended;
	value_writer writers[CSV_FIELDS_MAX]; /* writers of its columns; NULL: not used */
	size_t columns;
};

/* Writes a text in the form of tsnap's rows: printable, quotes doubled. */
static void text_write(struct text *to, const char *text)
{
	size_t start = to->length + 1;
	char *quoted;

	text_add_char(to, '"');
	text_add_printable(to, text);
	if (strchr(to->bytes + start, '"')) {
		quoted = memory_text(to->bytes + start, to->length - start);
		text_end(to, to->bytes + start);
		for (const char *at = quoted; *at; at++) {
			if (*at == '"')
				text_add_char(to, '"');
			text_add_char(to, *at);
		}
		free(quoted);
	}
	text_add_char(to, '"');
}

/* Writes a text; "-" and "?" mean none or not known, and nothing is written. */
static void word_write(struct text *to, const char *text)
{
	if (*text && strcmp(text, "-") != 0 && strcmp(text, "?") != 0)
		text_write(to, text);
}

static void number_write(struct text *to, const char *text)
{
	text_add_string(to, text);
}

static void hex_write(struct text *to, const char *text)
{
	if (!*text)
		return;
	text_add_string(to, "\"0x");
	text_add_string(to, text);
	text_add_char(to, '"');
}

/* Writes a stack's hash; 0 means none. */
static void hash_write(struct text *to, const char *text)
{
	if (strcmp(text, "0") != 0)
		hex_write(to, text);
}

/* Writes a time in ns; 0: the thread is in no call that was seen to begin. */
static void ns_write(struct text *to, const char *text)
{
	long long ns = strtoll(text, NULL, 10);

	if (ns > 0)
		text_add_number(to, ns / NS_PER_US);
}

/* Writes a state. Q: in a run queue, whatever the state; M, a migration, does not show the
 * state. */
static void state_write(struct text *to, const char *text)
{
	static const struct {
		const char *name, *state;
	} states[] = {
		{"RUN", "ON"}, {"SLEEP", "S"}, {"DISK", "D"}, {"STOPPED", "T"}, {"WAKING", "RQ"},
		{"NEW", "RQ"}, {"DEAD", "Z"},  {"IDLE", "I"}, {"NOLOAD", "I"},
	};
	size_t length = strlen(text);

	length -= length && text[length - 1] == 'M';
	if (length && text[length - 1] == 'Q') {
		text_write(to, "RQ");
		return;
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (length == strlen(states[i].name) && !strncmp(states[i].name, text, length))
			text_write(to, states[i].state);
}

/* Writes a time like 2025-11-24T19:53:38.123456, which is in the local zone. */
static void time_write(struct text *to, const char *text)
{
	struct tm tm = {.tm_isdst = -1};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t seconds = rest ? mktime(&tm) : -1;
	char iso[CLOCK_ISO_SIZE];

	if (seconds == -1 || *rest != '.' || strspn(rest + 1, "0123456789") != FRACTION_DIGITS ||
	    rest[1 + FRACTION_DIGITS]) {
		text_write(to, text); /* the reader will report a row that can't be read */
		return;
	}
	clock_format_iso(seconds * US_PER_SECOND + strtol(rest + 1, NULL, 10), iso);
	text_write(to, iso);
}

static const struct column_row {
	const char *theirs, *ours;
	value_writer write;
} column_rows[] = {
	{"TIMESTAMP", "timestamp", time_write},
	{"WEIGHT_US", "weight_us", number_write},
	{"TID", "tid", number_write},
	{"TGID", "pid", number_write},
	{"PIDNS", "pid_ns", number_write},
	{"STATE", "state", state_write},
	{"USERNAME", "user", word_write},
	{"EXE", "exe", word_write},
	{"COMM", "comm", text_write},
	{"SYSCALL", "syscall", word_write},
	{"SYSC_NS_SO_FAR", "syscall_us", ns_write},
	{"SYSC_ARG1", "arg0", hex_write},
	{"SYSC_ARG2", "arg1", hex_write},
	{"SYSC_ARG3", "arg2", hex_write},
	{"SYSC_ARG4", "arg3", hex_write},
	{"SYSC_ARG5", "arg4", hex_write},
	{"SYSC_ARG6", "arg5", hex_write},
	{"FILENAME", "filename", word_write},
	{"CONNECTION", "connection", word_write},
	{"KSTACK_HASH", "kstack", hash_write},
	{"USTACK_HASH", "ustack", hash_write},
};

/* Splits a field off in place; *at is moved past its comma. A text ends at a quote that a comma or
 * the end of the line follows. */
static char *field_take(char **at, char *end)
{
	char *from = *at, *to;

	if (from < end && *from == '\'') {
		for (to = ++from; to < end; to++)
			if (*to == '\'' && (to + 1 == end || to[1] == ','))
				break;
		*at = to + 2;
	} else {
		to = memchr(from, ',', (size_t)(end - from));
		to = to ? to : end;
		*at = to + 1;
	}
	*to = '\0';
	return from;
}

static void header_convert(struct input *input, char *at, char *end)
{
	const char *between = "";

	input->columns = 0;
	while (at <= end && input->columns < CSV_FIELDS_MAX) {
		const char *name = field_take(&at, end);
		value_writer *writer = &input->writers[input->columns++];

		*writer = NULL;
		for (size_t i = 0; i < sizeof(column_rows) / sizeof(column_rows[0]); i++) {
			if (strcmp(column_rows[i].theirs, name) != 0)
				continue;
			*writer = column_rows[i].write;
			text_add_string(&input->to, between);
			text_add_string(&input->to, column_rows[i].ours);
			between = ",";
		}
	}
	text_add_char(&input->to, '\n');
}

/* Converts a line. A file that was begun again in the same hour has a second header line. */
static void line_convert(struct input *input, char *at, char *end)
{
	const char *between = "";

	if (!strncmp(at, HEADER, strlen(HEADER))) {
		header_convert(input, at, end);
		return;
	}
	for (size_t i = 0; i < input->columns && at <= end; i++) {
		const char *text = field_take(&at, end);

		if (!input->writers[i])
			continue;
		text_add_string(&input->to, between);
		input->writers[i](&input->to, text);
		between = ",";
	}
	text_add_char(&input->to, '\n');
}

static void lines_convert(struct input *input)
{
	char *at = input->from.bytes + input->from_read, *line_end;
	char *end = input->from.bytes + input->from.length;

	while (at < end && (line_end = memchr(at, '\n', (size_t)(end - at)))) {
		*line_end = '\0';
		line_convert(input, at, line_end);
		at = line_end + 1;
	}
	input->from_read = (size_t)(at - input->from.bytes);
}

/* Reads more bytes after those that are there. */
static int input_fill(struct input *input, struct error *e)
{
	char *bytes;
	ssize_t got;

	if (input->from_read) {
		struct text rest = {0};

		text_add(&rest, input->from.bytes + input->from_read,
			 input->from.length - input->from_read);
		text_done(&input->from);
		input->from = rest;
		input->from_read = 0;
	}
	if (input->from.length > CSV_RECORD_MAX)
		return error_set(e, EINVAL, EXIT_FAILED, "%s: a line is longer than 1 MB",
				 input->name);
	bytes = text_reserve(&input->from, READ_BYTES);
	got = input->source->read(input->source, bytes, READ_BYTES, e);
	if (got < 0)
		return (int)got;
	text_end(&input->from, bytes + got);
	input->ended = !got;
	return 0;
}

/* Returns as much of a text as fits. */
static ssize_t text_give(struct text *text, size_t *read_until, char *bytes, size_t size)
{
	size_t left = text->length - *read_until, count = left < size ? left : size;

	if (count)
		memcpy(bytes, text->bytes + *read_until, count);
	*read_until += count;
	if (*read_until == text->length) {
		text_clear(text);
		*read_until = 0;
	}
	return (ssize_t)count;
}

/* Detects by the first bytes whether the file is of xcapture. */
static void input_begin(struct input *input)
{
	size_t length = strlen(HEADER);

	if (input->begun || (input->from.length < length && !input->ended))
		return;
	input->begun = true;
	input->foreign = input->from.length >= length && !memcmp(input->from.bytes, HEADER, length);
}

static ssize_t input_read(struct csv_input *csv, char *bytes, size_t size, struct error *e)
{
	struct input *input = (struct input *)csv;
	int err;

	for (;;) {
		if (input->to.length)
			return text_give(&input->to, &input->to_read, bytes, size);
		/* in a file of xcapture, a line that was cut off is left, and the reader will
		 * report it */
		if (input->begun && input->from.length && (!input->foreign || input->ended))
			return text_give(&input->from, &input->from_read, bytes, size);
		if (input->ended)
			return 0;
		if (input->begun && !input->foreign)
			return input->source->read(input->source, bytes, size, e);
		err = input_fill(input, e);
		if (err)
			return err;
		input_begin(input);
		if (input->foreign)
			lines_convert(input);
	}
}

struct csv_input *xcapture_input_new(struct csv_input *from, const char *name)
{
	struct input *input = memory_get(sizeof(*input));

	input->input.read = input_read;
	input->source = from;
	input->name = name;
	return &input->input;
}

void xcapture_input_free(struct csv_input *csv)
{
	struct input *input = (struct input *)csv;

	if (!input)
		return;
	text_done(&input->from);
	text_done(&input->to);
	free(input);
}
