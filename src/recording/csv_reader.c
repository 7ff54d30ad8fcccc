/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_reader.h"
#include "base/memory.h"

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

/* Reads more behind what is there. 1, 0 at the end of the file, or -errno. */
static int csv_fill(struct csv_reader *reader, struct error *e)
{
	ssize_t got;

	if (reader->start) {
		memmove(reader->bytes, reader->bytes + reader->start, reader->end - reader->start);
		reader->end -= reader->start;
		reader->start = 0;
	}
	if (reader->end > CSV_RECORD_MAX)
		return csv_fail(reader, e, "longer than a mebibyte: not a CSV of tsnap");
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

/* Whether the number of quotes is odd: eight bytes at a time, as there are some in every row. */
static bool quotes_odd(const char *from, const char *to)
{
	const uint64_t low = 0x7f7f7f7f7f7f7f7fu, quotes = 0x2222222222222222u;
	unsigned int odd = 0;

	for (; to - from >= 8; from += 8) {
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		word ^= quotes;
		/* the top bit of each byte that was a quote */
		odd ^= (unsigned int)__builtin_parityll(~(((word & low) + low) | word | low));
	}
	for (; from < to; from++)
		odd ^= *from == '"';
	return odd;
}

/* Finds the line end that ends the record at start: the first one outside quotes. */
static char *csv_record_end(const struct csv_reader *reader)
{
	char *at, *end;

	if (reader->start == reader->end)
		return NULL;
	at = reader->bytes + reader->start;
	end = reader->bytes + reader->end;
	for (bool quoted = false; at < end;) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));
		char *stop = line_end ? line_end : end;

		quoted ^= quotes_odd(at, stop);
		if (line_end && !quoted)
			return line_end;
		at = stop + 1;
	}
	return NULL;
}

/* Takes one field apart in place; *at is moved behind its separator. */
static const char *csv_field_read(char **at, char *end, struct csv_field *field)
{
	char *from = *at, *to;

	field->quoted = from < end && *from == '"';
	if (!field->quoted) {
		/* a number: shorter than a call of memchr() */
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
		return csv_fail(reader, e, "a NUL byte: not a CSV of tsnap");
	*count = 0;
	do {
		const char *wrong;

		if (*count == CSV_FIELDS_MAX)
			return csv_fail(reader, e, "more columns than tsnap knows");
		wrong = csv_field_read(&at, end, &fields[(*count)++]);
		if (wrong)
			return csv_fail(reader, e, wrong);
	} while (at <= end);
	return 1;
}

/* What is left at the end of the file has no line end outside quotes. */
static int csv_end(struct csv_reader *reader, struct error *e)
{
	size_t left = reader->end - reader->start;

	reader->ended = true;
	/* tsnap writes no line end inside quotes, so this is no row that was cut off */
	if (left && memchr(reader->bytes + reader->start, '\n', left))
		return csv_fail(reader, e, "a quoted field without an end");
	reader->cut = left > 0;
	return 0;
}

/* Whether the next record is plain; then the index has its fields. */
static bool csv_plain(struct csv_reader *reader)
{
	if (!reader->index)
		reader->index = memory_get(sizeof(*reader->index));
	if (reader->index->next < reader->index->count)
		return true;
	reader->indexed = reader->start;
	return reader->start < reader->end &&
	       csv_index_make(reader->index, reader->bytes + reader->start,
			      reader->end - reader->start);
}

/* Takes a plain record apart, in place. 1, 0: it has too many fields. */
static int csv_plain_read(struct csv_reader *reader, struct csv_field *fields, size_t *count)
{
	struct csv_index *index = reader->index;
	const uint16_t *ends = index->ends + index->next;
	char *text = reader->bytes + reader->indexed, *from = reader->bytes + reader->start;
	size_t fields_max = index->count - index->next, i = 0;
	bool last;

	fields_max = fields_max < CSV_FIELDS_MAX ? fields_max : CSV_FIELDS_MAX;
	while (text[ends[i]] != '\n')
		if (++i == fields_max)
			return 0;
	*count = i + 1;
	for (i = 0; i < *count; i++) {
		char *end = text + ends[i];

		last = i + 1 == *count;
		fields[i].quoted = *from == '"';
		fields[i].text = from + fields[i].quoted;
		from = end + 1;
		end -= fields[i].quoted;
		if (last && end > fields[i].text && end[-1] == '\r')
			end--;
		fields[i].length = (size_t)(end - fields[i].text);
		*end = '\0';
	}
	index->next += *count;
	reader->start = (size_t)(from - reader->bytes);
	reader->lines++;
	return 1;
}

int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e)
{
	char *start, *end;
	int more;

	reader->line = reader->lines + 1;
	if (csv_plain(reader) && csv_plain_read(reader, fields, count))
		return 1;
	reader->index->count = reader->index->next = 0;
	while (!(end = csv_record_end(reader))) {
		if (reader->ended)
			return 0;
		more = csv_fill(reader, e);
		if (more < 0)
			return more;
		if (!more)
			return csv_end(reader, e);
		if (csv_plain(reader) && csv_plain_read(reader, fields, count))
			return 1;
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
	free(reader->bytes);
	free(reader->index);
	*reader = (struct csv_reader){0};
}
