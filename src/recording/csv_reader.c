/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_reader.h"
#include "base/memory.h"
#include "recording/csv_ahead.h"
#include "recording/csv_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CSV_READ_BYTES 65536

static int csv_fail(const struct csv_reader *reader, struct error *e, const char *what)
{
	return error_set(e, EINVAL, EXIT_FAILED, "%s: line %llu: %s", reader->name,
			 (unsigned long long)reader->line, what);
}

static int csv_fail_columns(const struct csv_reader *reader, struct error *e)
{
	return csv_fail(reader, e, "more columns than tsnap knows");
}

/* Fails, and drops the bytes that were read: a caller that reads on gets those that follow. */
static int csv_fail_long(struct csv_reader *reader, struct error *e)
{
	reader->start = reader->end;
	return csv_fail(reader, e, "longer than 1 MB: not a CSV that tsnap wrote");
}

/* Takes the next block once the one before is used up. Returns as csv_fill(). */
static int csv_take_block(struct csv_reader *reader, struct error *e)
{
	if (reader->end - reader->start > CSV_RECORD_MAX)
		return csv_fail_long(reader, e);
	if (reader->block && reader->block->err) {
		if (reader->block->err == -ENODATA)
			return 0;
		*e = reader->block->e;
		reader->block->e = (struct error){0};
		return reader->block->err;
	}
	reader->block = csv_ahead_next(reader->ahead);
	reader->bytes = reader->block->bytes;
	reader->start = reader->run = 0;
	reader->end = reader->block->length;
	return 1;
}

/* Reads more bytes after those that are there. 1, 0 at the end of the file, or -errno. */
static int csv_fill(struct csv_reader *reader, struct error *e)
{
	ssize_t got;

	if (reader->ahead)
		return csv_take_block(reader, e);
	if (reader->start) {
		memmove(reader->bytes, reader->bytes + reader->start, reader->end - reader->start);
		reader->end -= reader->start;
		reader->start = 0;
	}
	if (reader->end > CSV_RECORD_MAX)
		return csv_fail_long(reader, e);
	if (reader->capacity < reader->end + CSV_READ_BYTES) {
		reader->capacity = reader->end * 2 + CSV_READ_BYTES;
		reader->bytes = memory_resize(reader->bytes, reader->capacity + CSV_INDEX_AHEAD, 1);
	}
	if (reader->input) {
		got = reader->input->read(reader->input, reader->bytes + reader->end,
					  CSV_READ_BYTES, e);
		if (got < 0)
			return (int)got;
	} else {
		got = read(reader->fd, reader->bytes + reader->end, CSV_READ_BYTES);
	}
	if (got < 0 && errno == EINTR)
		return -EINTR;
	if (got < 0)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", reader->name, strerror(errno));
	reader->end += (size_t)got;
	return got > 0;
}

static char *csv_end_find(const struct csv_reader *reader)
{
	return reader->start == reader->end
		       ? NULL
		       : csv_record_end(reader->bytes + reader->start, reader->bytes + reader->end);
}

/* Splits one field off in place; *at is moved past its separator. */
static const char *csv_field_read(char **at, char *end, struct csv_field *field)
{
	char *from = *at, *to;

	field->quoted = from < end && *from == '"';
	if (!field->quoted) {
		/* a loop: numbers are so short that a call of memchr() would take longer */
		field->text = from;
		for (to = from; to < end && *to != ','; to++)
			if (*to == '"')
				return "a quote inside a field that is not quoted";
		*at = to + 1;
		*to = '\0';
		field->length = (size_t)(to - from);
		return NULL;
	}
	field->text = to = ++from;
	for (;;) {
		char *quote = memchr(from, '"', (size_t)(end - from));

		if (!quote)
			return "a quoted field without an end";
		if (to != from)
			memmove(to, from, (size_t)(quote - from));
		to += quote - from;
		from = quote + 1;
		if (from == end || *from == ',')
			break;
		if (*from != '"')
			return "text after the end of a quoted field";
		*to++ = '"';
		from++;
	}
	*to = '\0';
	field->length = (size_t)(to - field->text);
	*at = from + 1;
	return NULL;
}

static int csv_split(struct csv_reader *reader, char *at, char *end, struct csv_field *fields,
		     size_t *count, struct error *e)
{
	if (memchr(at, '\0', (size_t)(end - at)))
		return csv_fail(reader, e, "a NUL byte: not a CSV that tsnap wrote");
	*count = 0;
	do {
		const char *wrong;

		if (*count == CSV_FIELDS_MAX)
			return csv_fail_columns(reader, e);
		wrong = csv_field_read(&at, end, &fields[(*count)++]);
		if (wrong)
			return csv_fail(reader, e, wrong);
	} while (at <= end);
	return 1;
}

/* Ends the reading. The remaining bytes have no line end outside quotes. */
static int csv_end(struct csv_reader *reader, struct error *e)
{
	size_t left = reader->end - reader->start;

	reader->ended = true;
	/* tsnap writes no line end inside quotes, so this is not a row that was cut off */
	if (left && memchr(reader->bytes + reader->start, '\n', left))
		return csv_fail(reader, e, "a quoted field without an end");
	reader->cut = left > 0;
	return 0;
}

/* True if the next record is plain; then its ends are known. */
static bool csv_plain(struct csv_reader *reader)
{
	const struct csv_block *block = reader->block;
	const struct csv_run *run;

	if (reader->ends_count)
		return true;
	if (reader->start == reader->end)
		return false;
	reader->indexed = reader->start;
	if (reader->ahead) {
		run = reader->run < block->run_count ? &block->runs[reader->run] : NULL;
		if (!run || run->at != reader->start)
			return false;
		reader->ends = block->ends + run->ends_at;
		reader->ends_count = run->ends_count;
		reader->run++;
		return true;
	}
	if (!reader->own_ends)
		reader->own_ends = memory_get(CSV_INDEX_BYTES * sizeof(*reader->own_ends));
	reader->ends = reader->own_ends;
	return csv_index_make(reader->own_ends, &reader->ends_count, reader->bytes + reader->start,
			      reader->end - reader->start);
}

/* Splits a plain record in place; the last of the known ends is the end of a record. 1, or
 * -errno. */
static int csv_plain_split(struct csv_reader *reader, struct csv_field *fields, size_t *count,
			   struct error *e)
{
	char *text = reader->bytes + reader->indexed, *from = reader->bytes + reader->start;
	size_t found = 0;
	bool last;

	do {
		struct csv_field *field = &fields[found < CSV_FIELDS_MAX ? found : 0];
		char *end = text + reader->ends[found++], *next = end + 1;

		last = *end == '\n';
		field->quoted = *from == '"';
		field->text = from + field->quoted;
		end -= field->quoted;
		if (last && end > field->text && end[-1] == '\r')
			end--;
		field->length = (size_t)(end - field->text);
		*end = '\0';
		from = next;
	} while (!last);
	reader->ends += found;
	reader->ends_count -= found;
	reader->start = (size_t)(from - reader->bytes);
	reader->lines++;
	*count = found;
	return found > CSV_FIELDS_MAX ? csv_fail_columns(reader, e) : 1;
}

int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e)
{
	char *start, *end;
	int more;

	reader->line = reader->lines + 1;
	if (csv_plain(reader))
		return csv_plain_split(reader, fields, count, e);
	while (!(end = csv_end_find(reader))) {
		if (reader->ended)
			return 0;
		more = csv_fill(reader, e);
		if (more < 0)
			return more;
		if (!more)
			return csv_end(reader, e);
		if (csv_plain(reader))
			return csv_plain_split(reader, fields, count, e);
	}
	start = reader->bytes + reader->start;
	reader->start = (size_t)(end - reader->bytes) + 1;
	for (char *at = start; (at = memchr(at, '\n', (size_t)(end + 1 - at))); at++)
		reader->lines++;
	if (end > start && end[-1] == '\r')
		end--;
	*end = '\0';
	return csv_split(reader, start, end, fields, count, e);
}

void csv_done(struct csv_reader *reader)
{
	if (!reader->ahead)
		free(reader->bytes);
	free(reader->own_ends);
	*reader = (struct csv_reader){0};
}
