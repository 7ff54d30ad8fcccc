/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_reader.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/thread.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CSV_RECORD_MAX (1u << 20) /* bytes; a command line with every byte escaped fits */
#define CSV_INDEX_BYTES 16384	  /* limit of bytes that one call looks at; offsets fit 16 bits */
/* Bytes of about one row, and where they are: behind some other rows. */
#define PREFETCHED_BYTES 512
#define PREFETCHED_BEHIND 1024
#define LINE_BYTES 64	   /* of the CPU's caches */
#define DIGITS_MAX 18	   /* of a number that 64 bits surely hold */
#define CSV_INDEX_AHEAD 64 /* bytes after the text that may be read; their values do not matter */

/* --- where the fields of plain records end, 64 bytes at a time. A record is plain if each quote
 * begins or ends a field, and no line end is in quotes, and there is no NUL: nearly all rows of
 * tsnap are. All others are read byte by byte. */

/* Positions of a character in 64 bytes, a bit each, the first byte's lowest. */
struct block_bits {
	uint64_t quotes, commas, line_ends, nuls;
};

#ifdef __SSE2__
static inline uint64_t bits_equal(const __m128i bytes[4], char to)
{
	const __m128i all = _mm_set1_epi8(to);
	uint64_t bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes[i], all))
			<< (16 * i);
	return bits;
}

static inline struct block_bits block_read(const char *block)
{
	__m128i bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = _mm_loadu_si128((const __m128i *)(const void *)block + i);
	return (struct block_bits){
		.quotes = bits_equal(bytes, '"'),
		.commas = bits_equal(bytes, ','),
		.line_ends = bits_equal(bytes, '\n'),
		.nuls = bits_equal(bytes, '\0'),
	};
}
#else
#define EACH_BYTE 0x0101010101010101u

/* The top bits of the bytes that are zero, gathered into 8 bits. */
static inline uint64_t bits_zero(uint64_t word)
{
	const uint64_t low = 0x7f * EACH_BYTE;
	uint64_t tops = ~(((word & low) + low) | word | low);

	return ((tops >> 7) * 0x0102040810204080u) >> 56;
}

static inline struct block_bits block_read(const char *block)
{
	struct block_bits bits = {0};

	for (size_t i = 0; i < 8; i++) {
		uint64_t word;

		memcpy(&word, block + 8 * i, sizeof(word));
		word = le64toh(word);
		bits.quotes |= bits_zero(word ^ '"' * EACH_BYTE) << (8 * i);
		bits.commas |= bits_zero(word ^ ',' * EACH_BYTE) << (8 * i);
		bits.line_ends |= bits_zero(word ^ '\n' * EACH_BYTE) << (8 * i);
		bits.nuls |= bits_zero(word) << (8 * i);
	}
	return bits;
}
#endif

/* Sets each bit for which an odd number of bits are set, from the lowest one up to and including
 * itself. */
static inline uint64_t bits_between(uint64_t bits)
{
	for (int by = 1; by < 64; by *= 2)
		bits ^= bits << by;
	return bits;
}

/* A plain record. */
struct csv_record {
	struct row_hash hash; /* see hashed_by */
	size_t count;	      /* number of its fields */
};

/* Looks at text, which begins with a record, up to the last complete plain one. Fills records and
 * ends, which have capacity for CSV_INDEX_BYTES, with the numbers of fields, and the offsets of the
 * commas and line ends that end fields. Returns the bytes of these records; 0: the first one is not
 * plain, or longer than the bytes looked at. */
static size_t csv_index_make(struct csv_record *records, size_t *count, uint16_t *ends,
			     const char *text, size_t length)
{
	/* state at the byte before the block: it ended a field; ended a quoted text; quotes are
	 * open */
	uint64_t ended = 1, closed = 0, open = 0;
	size_t found = 0, of_records = 0;

	*count = 0;
	length = length < CSV_INDEX_BYTES ? length : CSV_INDEX_BYTES;
	for (size_t at = 0; at < length; at += 64) {
		struct block_bits bits = block_read(text + at);
		uint64_t wanted = length - at < 64 ? (1ull << (length - at)) - 1 : ~0ull;
		uint64_t inside, ending, opening, closing;

		bits.quotes &= wanted;
		inside = bits_between(bits.quotes) ^ open;
		ending = (bits.commas | bits.line_ends) & ~inside & wanted;
		opening = bits.quotes & inside;
		closing = bits.quotes & ~inside;
		if (((bits.nuls | (bits.line_ends & inside)) & wanted) ||
		    (opening & ~(ending << 1 | ended)) ||
		    ((closing << 1 | closed) & ~ending & wanted))
			break;
		for (uint64_t left = ending & bits.line_ends; left; left &= left - 1) {
			uint64_t upto = left ^ (left - 1);
			size_t end = found + (size_t)__builtin_popcountll(ending & upto);

			records[(*count)++].count = end - of_records;
			of_records = end;
		}
		for (uint64_t left = ending; left; left &= left - 1)
			ends[found++] = (uint16_t)(at + (size_t)__builtin_ctzll(left));
		/* all bits or none, if the last byte is in quotes or not */
		open = 0 - (inside >> 63);
		ended = ending >> 63;
		closed = closing >> 63;
	}
	return of_records ? (size_t)ends[of_records - 1] + 1 : 0;
}

/* The line end of the record that begins at `at`: the first one outside quotes; NULL: none. */
static char *csv_record_end(char *at, char *end)
{
	for (bool quoted = false; at < end; at++) {
		if (*at == '\n' && !quoted)
			return at;
		quoted ^= *at == '"';
	}
	return NULL;
}

/* --- reading ahead, in blocks of whole records, with the ends of the plain ones */

#define BLOCK_BYTES ((size_t)128 << 10)
/* Blocks that last for about as long as the unpacking of the next frame of a recording (8 MB). */
#define BLOCK_COUNT 48
/* Plain records of a block, about: others are read byte by byte. A row has some hundred bytes. */
#define RECORDS_MOST (BLOCK_BYTES / 16)
#define BLOCKS_MOST (BLOCK_COUNT - 1) /* the block that was taken last is still being read */
/* Blocks to be filled, or empty, before a waiting thread goes on: waking a thread costs about as
 * much as reading a block. */
#define BLOCKS_AGAIN (BLOCK_COUNT / 8)

/* Plain records that follow each other. */
struct csv_run {
	size_t at;			  /* offset in the block's bytes */
	size_t ends_at;			  /* first of its ends in the block's ends */
	size_t records_at, records_count; /* its records in those of the block */
};

/* Records; those between the runs are not plain. */
struct csv_block {
	char *bytes; /* the reader may change them; CSV_INDEX_AHEAD more bytes are allocated */
	size_t length, capacity;
	uint16_t *ends; /* ends of fields: offsets from the start of their run */
	size_t ends_capacity;
	struct csv_run *runs;
	size_t run_count, run_capacity;
	struct csv_record *records;
	size_t record_capacity;
	uint64_t hashed_by; /* number of what their hashes were made with; 0: of nothing */
	int err; /* after the bytes: 0: more, -ENODATA: the end, or another -errno with e */
	struct error e;
};

struct csv_ahead {
	struct csv_reader input; /* what is read: the input or descriptor of a reader */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* under the mutex: numbers of blocks that were filled, and that were taken, in order */
	size_t filled, taken;
	bool ended;		  /* nothing more is filled */
	bool stopped;		  /* nothing more is taken */
	struct row_hasher wanted; /* hashes for blocks from now on, */
	uint64_t wanted_number;	  /* and what they are known by; 0: none */
	struct csv_block blocks[BLOCK_COUNT];
	/* owned by the thread: bytes that the next block begins with; its copy of wanted */
	struct text rest;
	struct row_hasher hasher;
	uint64_t hasher_number;
};

static void block_grow(struct csv_block *block, size_t capacity)
{
	if (block->capacity >= capacity)
		return;
	block->capacity = capacity;
	block->bytes = memory_resize(block->bytes, capacity + CSV_INDEX_AHEAD, 1);
}

static void block_done(struct csv_block *block)
{
	free(block->bytes);
	free(block->ends);
	free(block->runs);
	free(block->records);
	error_done(&block->e);
}

/* Returns as the read of struct csv_input. */
static ssize_t bytes_read(const struct csv_reader *reader, char *bytes, size_t size,
			  struct error *e)
{
	ssize_t got;

	if (reader->input)
		return reader->input->read(reader->input, bytes, size, e);
	got = read(reader->fd, bytes, size);
	if (got < 0 && errno != EINTR)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", reader->name, strerror(errno));
	return got < 0 ? -EINTR : got;
}

/* Reads until the block is full, or at the end; patient: else, once, or until a signal comes. */
static void block_fill(const struct csv_reader *reader, struct csv_block *block, bool patient)
{
	do {
		ssize_t got = bytes_read(reader, block->bytes + block->length,
					 block->capacity - block->length, &block->e);

		if (got > 0)
			block->length += (size_t)got;
		else if (got != -EINTR || !patient)
			block->err = got ? (int)got : -ENODATA;
	} while (patient && !block->err && block->length < block->capacity);
}

/* Makes the hashes of all plain records. */
static void block_hash(struct csv_block *block, const struct row_hasher *hasher)
{
	for (size_t i = 0; i < block->run_count; i++) {
		const struct csv_run *run = &block->runs[i];
		const uint16_t *ends = block->ends + run->ends_at;
		const char *text = block->bytes + run->at, *start = text;

		for (size_t j = 0; j < run->records_count; j++) {
			struct csv_record *record = &block->records[run->records_at + j];

			if (record->count >= hasher->field_count)
				record->hash = row_hash_of(hasher, text, start, ends);
			ends += record->count;
			start = text + ends[-1] + 1;
		}
	}
}

/* Finds the records. Returns the offset after the last complete one. */
static size_t block_index(struct csv_block *block)
{
	size_t at = 0, ends = 0, records = 0;

	block->run_count = 0;
	block->hashed_by = 0;
	while (at < block->length) {
		char *end;
		size_t count, bytes = 0;

		if (records < RECORDS_MOST) {
			block->ends = memory_grow(block->ends, &block->ends_capacity,
						  ends + CSV_INDEX_BYTES, sizeof(*block->ends));
			block->records =
				memory_grow(block->records, &block->record_capacity,
					    records + CSV_INDEX_BYTES, sizeof(*block->records));
			bytes = csv_index_make(block->records + records, &count, block->ends + ends,
					       block->bytes + at, block->length - at);
		}
		if (bytes) {
			block->runs = memory_grow(block->runs, &block->run_capacity,
						  block->run_count + 1, sizeof(*block->runs));
			block->runs[block->run_count++] =
				(struct csv_run){at, ends, records, count};
			for (size_t i = 0; i < count; i++)
				ends += block->records[records + i].count;
			records += count;
			at += bytes;
			continue;
		}
		end = csv_record_end(block->bytes + at, block->bytes + block->length);
		if (!end)
			break;
		at = (size_t)(end - block->bytes) + 1;
	}
	return at;
}

/* Makes a block of the bytes in rest and what is read; rest gets those after its last record. */
static void block_make(const struct csv_reader *reader, struct csv_block *block, struct text *rest,
		       bool patient)
{
	size_t whole;

	block->err = 0;
	block_grow(block, BLOCK_BYTES);
	block_grow(block, rest->length * 2);
	if (rest->length)
		memcpy(block->bytes, rest->bytes, rest->length);
	block->length = rest->length;
	for (;;) {
		block_fill(reader, block, patient);
		whole = block_index(block);
		if (whole || block->err || block->length > CSV_RECORD_MAX)
			break;
		if (block->length == block->capacity)
			block_grow(block, block->capacity * 2);
	}
	text_clear(rest);
	if (block->err != -EINTR && (!whole || block->err))
		return;
	text_add(rest, block->bytes + whole, block->length - whole);
	block->length = whole;
}

/* Number of blocks that are filled and not taken. */
static size_t blocks_full(const struct csv_ahead *ahead)
{
	return ahead->filled - ahead->taken;
}

/* Waits until one of the variables under the mutex has changed. */
static void ahead_wait(struct csv_ahead *ahead)
{
	pthread_cond_wait(&ahead->changed, &ahead->mutex);
}

/* Waits while all blocks are filled, until some are not. */
static void ahead_rest(struct csv_ahead *ahead)
{
	while (!ahead->stopped && blocks_full(ahead) > BLOCKS_MOST - BLOCKS_AGAIN)
		ahead_wait(ahead);
}

static void *ahead_run(void *of)
{
	struct csv_ahead *ahead = of;

	pthread_mutex_lock(&ahead->mutex);
	while (!ahead->ended && !ahead->stopped) {
		struct csv_block *block = &ahead->blocks[ahead->filled % BLOCK_COUNT];

		if (blocks_full(ahead) == BLOCKS_MOST) {
			ahead_rest(ahead);
			continue;
		}
		if (ahead->hasher_number != ahead->wanted_number) {
			ahead->hasher = ahead->wanted;
			ahead->hasher_number = ahead->wanted_number;
		}
		pthread_mutex_unlock(&ahead->mutex);
		block_make(&ahead->input, block, &ahead->rest, true);
		if (ahead->hasher_number) {
			block_hash(block, &ahead->hasher);
			block->hashed_by = ahead->hasher_number;
		}
		pthread_mutex_lock(&ahead->mutex);
		ahead->ended = block->err;
		ahead->filled++;
		if (ahead->ended || blocks_full(ahead) == BLOCKS_AGAIN)
			pthread_cond_signal(&ahead->changed);
	}
	pthread_mutex_unlock(&ahead->mutex);
	return NULL;
}

void csv_read_ahead(struct csv_reader *reader)
{
	struct csv_ahead *ahead = memory_get(sizeof(*ahead));

	ahead->input = *reader;
	pthread_mutex_init(&ahead->mutex, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	if (thread_begin(&ahead->thread, ahead_run, ahead))
		free(ahead);
	else
		reader->ahead = ahead;
}

void csv_hash(struct csv_reader *reader, const struct row_hasher *hasher)
{
	struct csv_ahead *ahead = reader->ahead;

	reader->hasher_number++;
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->mutex);
	ahead->wanted = *hasher;
	ahead->wanted_number = reader->hasher_number;
	pthread_mutex_unlock(&ahead->mutex);
}

/* The next block, valid until the next call. Its last record may have no end if err is set or the
 * record is longer than CSV_RECORD_MAX. */
static struct csv_block *csv_ahead_next(struct csv_ahead *ahead)
{
	struct csv_block *block;

	pthread_mutex_lock(&ahead->mutex);
	if (!blocks_full(ahead))
		while (!ahead->ended && blocks_full(ahead) < BLOCKS_AGAIN)
			ahead_wait(ahead);
	block = &ahead->blocks[ahead->taken++ % BLOCK_COUNT];
	if (blocks_full(ahead) == BLOCKS_MOST - BLOCKS_AGAIN)
		pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->mutex);
	return block;
}

static void csv_ahead_free(struct csv_ahead *ahead)
{
	pthread_mutex_lock(&ahead->mutex);
	ahead->stopped = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->mutex);
	pthread_join(ahead->thread, NULL);
	for (int i = 0; i < BLOCK_COUNT; i++)
		block_done(&ahead->blocks[i]);
	text_done(&ahead->rest);
	free(ahead);
}

/* --- values */

int csv_number_read(const char *text, int64_t *number)
{
	bool negative = *text == '-';
	int64_t value = 0;

	text += negative;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return -EINVAL;
	}
	*number = negative ? -value : value;
	return 0;
}

int csv_hex_read(const char *text, int64_t *number)
{
	char *end;

	if (strncmp(text, "0x", 2) || !text[2] || text[2 + strspn(text + 2, "0123456789abcdef")] ||
	    strlen(text) > 18)
		return -EINVAL;
	*number = (int64_t)strtoull(text, &end, 16);
	return 0;
}

/* Eight bytes from there on, or the `length` first ones if these are fewer. At least as many are
 * allocated behind each text (CSV_INDEX_AHEAD). */
static inline uint64_t word_at(const char *text, size_t length)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return length < sizeof(word) ? le64toh(word) & ((1ull << (8 * length)) - 1) : word;
}

/* A hash of some of the bytes: those at both ends and in the middle. */
static inline size_t recent_slot(const char *text, size_t length)
{
	uint64_t hash = word_at(text, length) ^ length << 56;

	if (length > sizeof(hash))
		hash = (hash * 0x9e3779b97f4a7c15ull) ^
		       word_at(text + length - sizeof(hash), sizeof(hash)) ^
		       word_at(text + (length - sizeof(hash)) / 2, sizeof(hash)) * 3;
	return (size_t)(hash * 0x9e3779b97f4a7c15ull >> (64 - CSV_RECENT_BITS));
}

const char *csv_text_read(struct csv_texts *texts, const struct csv_field *field)
{
	struct csv_recent *recent = &texts->recent[recent_slot(field->text, field->length)];
	const char *name;

	if (recent->name && recent->length == field->length &&
	    !memcmp(recent->name, field->text, field->length))
		return recent->name;
	if (memchr(field->text, '\\', field->length)) {
		text_clear(&texts->scratch);
		text_add_original(&texts->scratch, field->text);
		return name_transient(text_string(&texts->scratch), texts->scratch.length);
	}
	name = name_transient(field->text, field->length);
	/* else the table of names is full */
	if (!strncmp(name, field->text, field->length))
		*recent = (struct csv_recent){name, field->length};
	return name;
}

void csv_text_add(struct text *rows, const char *text)
{
	struct text printable = {0};

	if (!text)
		return;
	text_add_printable(&printable, text);
	text_add_char(rows, '"');
	for (const char *at = text_string(&printable); *at; at++) {
		if (*at == '"')
			text_add_char(rows, '"');
		text_add_char(rows, *at);
	}
	text_add_char(rows, '"');
	text_done(&printable);
}

/* --- records */

int csv_fail(const struct csv_reader *reader, struct error *e, const char *column, const char *what)
{
	return error_set(e, EINVAL, EXIT_FAILED, "%s: line %llu: %s%s%s", reader->name,
			 (unsigned long long)reader->line, column, *column ? ": " : "", what);
}

static int csv_fail_columns(const struct csv_reader *reader, struct error *e)
{
	return csv_fail(reader, e, "", "more columns than tsnap knows");
}

/* Takes the next block once the one before is used up. 1, 0 at the end of the file, or -errno. */
static int csv_take_block(struct csv_reader *reader, struct error *e)
{
	struct csv_block *block = reader->block;

	if (reader->end - reader->start > CSV_RECORD_MAX) {
		/* a caller that reads on gets the bytes that follow */
		reader->start = reader->end;
		return csv_fail(reader, e, "", "longer than 1 MB: not a CSV that tsnap wrote");
	}
	if (!block || !block->err || block->err == -EINTR) {
		if (!block && !reader->ahead)
			block = memory_get(sizeof(*block));
		if (reader->ahead)
			block = csv_ahead_next(reader->ahead);
		else
			block_make(reader, block, &reader->rest, false);
		reader->block = block;
		reader->bytes = block->bytes;
		reader->start = reader->run = 0;
		reader->end = block->length;
		return block->err == -EINTR ? -EINTR : 1;
	}
	if (block->err == -ENODATA)
		return 0;
	*e = block->e;
	block->e = (struct error){0};
	return block->err;
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
		return csv_fail(reader, e, "", "a NUL byte: not a CSV that tsnap wrote");
	*count = 0;
	do {
		const char *wrong;

		if (*count == CSV_FIELDS_MAX)
			return csv_fail_columns(reader, e);
		wrong = csv_field_read(&at, end, &fields[(*count)++]);
		if (wrong)
			return csv_fail(reader, e, "", wrong);
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
		return csv_fail(reader, e, "", "a quoted field without an end");
	reader->cut = left > 0;
	return 0;
}

/* True if the next record is plain; then its ends are known. */
static bool csv_plain(struct csv_reader *reader)
{
	const struct csv_block *block = reader->block;
	const struct csv_run *run;

	if (reader->records != reader->records_end)
		return true;
	if (reader->start == reader->end)
		return false;
	reader->indexed = reader->start;
	run = reader->run < block->run_count ? &block->runs[reader->run] : NULL;
	if (!run || run->at != reader->start)
		return false;
	reader->ends = block->ends + run->ends_at;
	reader->records = block->records + run->records_at;
	reader->records_end = reader->records + run->records_count;
	reader->run++;
	return true;
}

static bool is_hashed(const struct csv_reader *reader)
{
	return reader->hasher_number && reader->block->hashed_by == reader->hasher_number;
}

bool csv_peek(struct csv_reader *reader, struct csv_plain *record)
{
	if (!csv_plain(reader))
		return false;
	/* another CPU wrote the bytes that follow */
	for (size_t i = 0; i < PREFETCHED_BYTES; i += LINE_BYTES)
		__builtin_prefetch(reader->bytes + reader->start + PREFETCHED_BEHIND + i);
	*record = (struct csv_plain){.text = reader->bytes + reader->indexed,
				     .start = reader->bytes + reader->start,
				     .ends = reader->ends,
				     .count = reader->records->count,
				     .hash = is_hashed(reader) ? &reader->records->hash : NULL};
	return true;
}

const struct row_hash *csv_hash_ahead(const struct csv_reader *reader, size_t behind)
{
	return (size_t)(reader->records_end - reader->records) > behind && is_hashed(reader)
		       ? &reader->records[behind].hash
		       : NULL;
}

struct csv_field csv_plain_field(const struct csv_plain *record, size_t at)
{
	char *from = at ? record->text + record->ends[at - 1] + 1 : record->start;
	char *end = record->text + record->ends[at];
	struct csv_field field = {.quoted = *from == '"'};

	field.text = from + field.quoted;
	end -= field.quoted;
	if (at + 1 == record->count && end > field.text && end[-1] == '\r')
		end--;
	field.length = (size_t)(end - field.text);
	*end = '\0';
	return field;
}

int csv_plain_number(const struct csv_plain *record, size_t at, int64_t *number)
{
	const char *from = at ? record->text + record->ends[at - 1] + 1 : record->start,
		   *end = record->text + record->ends[at];
	int64_t value = 0;

	if (from == end || end - from > DIGITS_MAX)
		return -EINVAL;
	for (; from < end; from++) {
		if (*from < '0' || *from > '9')
			return -EINVAL;
		value = value * 10 + (*from - '0');
	}
	*number = value;
	return 0;
}

void csv_skip(struct csv_reader *reader, const struct csv_plain *record)
{
	reader->records++;
	reader->ends += record->count;
	reader->start = reader->indexed + record->ends[record->count - 1] + 1u;
	reader->lines++;
	reader->line = reader->lines;
}

/* Splits a plain record in place. 1, or -errno. */
static int csv_plain_split(struct csv_reader *reader, const struct csv_plain *record,
			   struct csv_field *fields, size_t *count, struct error *e)
{
	*count = record->count;
	csv_skip(reader, record);
	if (record->count > CSV_FIELDS_MAX)
		return csv_fail_columns(reader, e);
	for (size_t i = 0; i < record->count; i++)
		fields[i] = csv_plain_field(record, i);
	return 1;
}

int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e)
{
	struct csv_plain record;
	char *start, *end;
	int more;

	reader->line = reader->lines + 1;
	if (csv_peek(reader, &record))
		return csv_plain_split(reader, &record, fields, count, e);
	while (!(end = csv_end_find(reader))) {
		if (reader->ended)
			return 0;
		more = csv_take_block(reader, e);
		if (more < 0)
			return more;
		if (!more)
			return csv_end(reader, e);
		if (csv_peek(reader, &record))
			return csv_plain_split(reader, &record, fields, count, e);
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
	if (reader->ahead) {
		csv_ahead_free(reader->ahead);
	} else if (reader->block) {
		block_done(reader->block);
		free(reader->block);
	}
	text_done(&reader->rest);
	*reader = (struct csv_reader){0};
}
