/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sample becomes:
 *
 *   head     varint: what follows (two bits), and how far its thread's number is from that of the
 *            sample before, which in most scans is one
 *   what     varint, if the thread does something else than in its sample before
 *   numbers  varint with a bit for each that is not as expected, and for each of these a varint:
 *            0 for absent, else one more than the difference, with the sign in the lowest bit
 *
 * Expected is: time in a state grows by the time of the scan, the exact time in the present state
 * is that of the scan and in others none, everything else stays.
 */
#include "screen/history_code.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/measure.h"
#include "sample/proc_values.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct history_name {
	struct history_name *next; /* next name with an equal hash */
	uint64_t hash;
	size_t users; /* number of chunks that use the name */
	char text[];
};

static struct history_name *name_of_text(const char *text)
{
	return (struct history_name *)((uintptr_t)text - offsetof(struct history_name, text));
}

/* The history's only copy of the text; NULL for NULL. */
static const char *history_text(struct history_texts *texts, struct index *uses, const char *text)
{
	struct history_name *name;
	uint64_t hash, *chain;
	size_t length;
	bool added;

	if (!text)
		return NULL;
	length = strlen(text);
	hash = hash_bytes(text, length);
	chain = index_put(&texts->by_hash, hash, NULL);
	for (name = (struct history_name *)(uintptr_t)*chain; name; name = name->next)
		if (!strcmp(name->text, text))
			break;
	if (!name) {
		name = memory_get(sizeof(*name) + length + 1);
		memcpy(name->text, text, length);
		name->hash = hash;
		name->next = (struct history_name *)(uintptr_t)*chain;
		*chain = (uintptr_t)name;
		texts->bytes += sizeof(*name) + length + 1;
	}
	index_put(uses, (uintptr_t)name->text, &added);
	name->users += added;
	return name->text;
}

static void name_free(struct history_texts *texts, struct history_name *name)
{
	uint64_t *chain = index_find(&texts->by_hash, name->hash);
	struct history_name *first = (struct history_name *)(uintptr_t)*chain;

	if (first == name) {
		*chain = (uintptr_t)name->next;
	} else {
		while (first->next != name)
			first = first->next;
		first->next = name->next;
	}
	if (!*chain)
		index_remove(&texts->by_hash, name->hash);
	texts->bytes -= sizeof(*name) + strlen(name->text) + 1;
	free(name);
}

void history_texts_drop(struct history_texts *texts, struct index *uses)
{
	uint64_t key, value;
	size_t at = 0;

	while (index_next(uses, &at, &key, &value)) {
		struct history_name *name = name_of_text((const char *)(uintptr_t)key);

		if (!--name->users)
			name_free(texts, name);
	}
	index_clear(uses);
}

#define RECENT_BITS 10

/* Texts that were added lately to the chunk that is written, by their addresses in samples. */
struct history_recent {
	uint64_t dropped; /* see names_dropped_since() */
	struct {
		const char *from, *text;
	} slots[1 << RECENT_BITS];
};

void history_know_texts(struct history_coder *coder)
{
	if (!coder->recent)
		coder->recent = memory_get(sizeof(*coder->recent));
}

/* The same as history_text(), for a text of a sample. */
static inline const char *text_of_sample(struct history_chunk *chunk, struct history_texts *texts,
					 const char *from)
{
	struct history_recent *recent = chunk->coder ? chunk->coder->recent : NULL;
	size_t at = name_place(from, RECENT_BITS);

	if (!recent || !from)
		return history_text(texts, &chunk->uses, from);
	if (names_dropped_since(&recent->dropped))
		memset(recent->slots, 0, sizeof(recent->slots));
	if (recent->slots[at].from != from) {
		recent->slots[at].text = history_text(texts, &chunk->uses, from);
		recent->slots[at].from = from;
	}
	return recent->slots[at].text;
}

#define HISTORY_WHAT_MAX 88 /* most columns of a tuple */

/* Columns of a tuple, in the order of their offsets in struct sample: adjacent ones are copied at
 * once, as a run. */
struct history_columns {
	const struct column *items[HISTORY_WHAT_MAX];
	size_t count;
	struct history_run {
		uint32_t offset, bytes; /* position in struct sample */
	} runs[HISTORY_WHAT_MAX];
	size_t run_count;
};

/* The tuple that identifies a thread, and the one that says what the thread does. */
static struct history_columns history_who, history_what;

/* Kinds of values that a number is expected to have in the next sample of a thread. */
enum history_expected {
	EXPECT_SAME, /* unchanged */
	EXPECT_STAY, /* grown by the time between the scans while the thread's state is the same */
	EXPECT_NONE, /* weight of the scan if the thread is in the number's state, else 0 */
	EXPECT_WEIGHT, /* weight of the scan for each thread that the sample stands for, even after
			  an absent one */
};

/* Numbers of a sample that change from scan to scan. state: the one that gets the scan's weight,
 * with EXPECT_NONE; -1: none */
/* clang-format off */
#define NUMBER(member, ...) {offsetof(struct sample, member), __VA_ARGS__}
static const struct history_number {
	size_t offset;
	enum history_expected way;
	int64_t state;
} history_numbers[] = {
	NUMBER(scan.repeats,   EXPECT_SAME,   -1), /* before the weight that is expected by it */
	NUMBER(scan.weight_us, EXPECT_WEIGHT, -1),
	NUMBER(now.state_us,   EXPECT_STAY,   -1),
	NUMBER(call.us,        EXPECT_STAY,   -1),
	NUMBER(now.cpu,        EXPECT_SAME,   -1),
	NUMBER(sums.cpu_us,    EXPECT_NONE,   STATE_ON),
	NUMBER(sums.runq_us,   EXPECT_NONE,   STATE_RQ),
	NUMBER(sums.dwait_us,  EXPECT_NONE,   STATE_DISK),
	NUMBER(sums.sleep_us,  EXPECT_NONE,   STATE_SLEEP),
	NUMBER(sums.vcsw,      EXPECT_NONE,   -1),
	NUMBER(sums.ivcsw,     EXPECT_NONE,   -1),
	NUMBER(io.bytes,       EXPECT_SAME,   -1),
	NUMBER(io.us,          EXPECT_STAY,   -1),
	NUMBER(file.size,      EXPECT_SAME,   -1),
	NUMBER(file.cached,    EXPECT_SAME,   -1),
	NUMBER(file.dirty,     EXPECT_SAME,   -1),
	NUMBER(file.evicted,   EXPECT_SAME,   -1),
	NUMBER(file.refault_bps, EXPECT_SAME, -1),
};
/* clang-format on */
#define NUMBER_COUNT (sizeof(history_numbers) / sizeof(history_numbers[0]))
#define PRESENT_ALWAYS 2u /* bit of weight_us */

/* Columns whose values differ in every call, or that only single events have. */
static bool is_left_out(const struct column *column)
{
	return column->offset == offsetof(struct sample, scan.time_us) ||
	       column_is_proc_value(column) ||
	       (column->offset >= offsetof(struct sample, call.nr) &&
		column->offset < offsetof(struct sample, call.name)) ||
	       (column->offset >= offsetof(struct sample, event) &&
		column->offset < offsetof(struct sample, event) + sizeof(struct sample_event));
}

static bool is_number(const struct column *column)
{
	for (size_t i = 0; i < NUMBER_COUNT; i++)
		if (history_numbers[i].offset == column->offset)
			return true;
	return false;
}

bool history_varies(const struct column *column)
{
	return is_left_out(column) || is_number(column);
}

/* Inserts the column in the order of offsets. */
static void column_insert(struct history_columns *columns, const struct column *column)
{
	size_t at = columns->count++;

	for (; at && columns->items[at - 1]->offset > column->offset; at--)
		columns->items[at] = columns->items[at - 1];
	columns->items[at] = column;
}

static void runs_find(struct history_columns *columns)
{
	const uint32_t each = sizeof(union value);

	for (size_t i = 0; i < columns->count; i++) {
		uint32_t offset = (uint32_t)columns->items[i]->offset;
		struct history_run *last = columns->runs + columns->run_count - !!i;

		if (i && last->offset + last->bytes == offset)
			last->bytes += each;
		else
			columns->runs[columns->run_count++] = (struct history_run){offset, each};
	}
}

static void columns_find(void)
{
	const size_t state = offsetof(struct sample, now);

	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (history_varies(column))
			continue;
		if (column->offset < state && history_who.count < HISTORY_WHAT_MAX)
			column_insert(&history_who, column);
		else if (column->offset >= state && history_what.count < HISTORY_WHAT_MAX)
			column_insert(&history_what, column);
	}
	runs_find(&history_who);
	runs_find(&history_what);
}

void history_columns_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, columns_find);
}

bool history_keeps(const struct column *column)
{
	if (column->role == ROLE_MEASURE)
		return !part_measure_of(column);
	return !is_left_out(column) || column->offset == offsetof(struct sample, scan.time_us);
}

#define HEAD_WHAT 1u
#define HEAD_NUMBERS 2u
#define HEAD_BITS 2

#define SUMS_COUNT (sizeof(struct sample_sums) / sizeof(int64_t))
#define ACCOUNT_OF_CPU (1ull << SUMS_COUNT) /* beside a bit for each sum that is known */
static int64_t *number_at(struct sample *sample, size_t offset)
{
	return (int64_t *)((char *)sample + offset);
}

static int64_t number_of(const struct sample *sample, size_t offset)
{
	int64_t number;

	memcpy(&number, (const char *)sample + offset, sizeof(number));
	return number;
}

static void varint_add(struct text *bytes, uint64_t number)
{
	char *at = text_reserve(bytes, 10);

	for (; number >= 128; number >>= 7)
		*at++ = (char)(number | 128);
	*at++ = (char)number;
	text_end(bytes, at);
}

static uint64_t varint_read(const char *bytes, size_t *at)
{
	uint64_t number = 0, byte;
	int shift = 0;

	do {
		byte = (unsigned char)bytes[(*at)++];
		number |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && shift < 64);
	return number;
}

/* Maps small numbers of either sign to small unsigned numbers. */
static uint64_t zigzag(int64_t number)
{
	return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static int64_t zigzag_undo(uint64_t number)
{
	return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Facts that the expected numbers of a sample are computed from. */
struct expecting {
	int64_t elapsed_us; /* time since the thread's previous sample */
	int64_t weight_us;  /* weight of the scan */
	int64_t threads;    /* that the sample stands for */
	int64_t state;
	bool stays; /* the thread goes on with what it did at its previous sample */
};

/* The number that is expected after the thread's previous one. */
static int64_t expected_of(const struct history_number *of, int64_t number,
			   const struct expecting *by)
{
	if (of->way == EXPECT_WEIGHT)
		return (int64_t)((uint64_t)by->weight_us * (uint64_t)by->threads);
	if (number == ABSENT || of->way == EXPECT_SAME)
		return number;
	if (of->way == EXPECT_NONE)
		return of->state == by->state ? by->weight_us : 0;
	return by->stays ? plus(number, by->elapsed_us) : 0;
}

/* Adds the difference to the expected number; 0 means absent: no number of a sample has the
 * difference that would be coded as 0. */
static void difference_add(struct text *bytes, int64_t number, int64_t expected)
{
	int64_t base = expected == ABSENT ? 0 : expected;

	varint_add(bytes, number == ABSENT ? 0 : zigzag(minus(number, base)) + 1);
}

static int64_t difference_read(const char *bytes, size_t *at, int64_t expected)
{
	int64_t base = expected == ABSENT ? 0 : expected;
	uint64_t number = varint_read(bytes, at);

	return number ? plus(zigzag_undo(number - 1), base) : ABSENT;
}

/* Number of the tuple, which is added if it is new. */
static uint32_t tuple_put(struct history_tuples *tuples, const union value *values, size_t width)
{
	uint64_t hash = hash_bytes(values, width * sizeof(*values));
	uint64_t *number = index_put(&tuples->by_hash, hash, NULL);

	if (*number &&
	    !memcmp(tuples->values + (*number - 1) * width, values, width * sizeof(*values)))
		return (uint32_t)*number - 1;
	tuples->width = width;
	tuples->values = memory_grow(tuples->values, &tuples->capacity, tuples->count + 1,
				     width * sizeof(*values));
	memcpy(tuples->values + tuples->count * width, values, width * sizeof(*values));
	*number = ++tuples->count;
	return (uint32_t)tuples->count - 1;
}

static uint32_t tuple_of(struct history_chunk *chunk, struct history_tuples *tuples,
			 struct history_texts *texts, const struct history_columns *columns,
			 const struct sample *sample)
{
	union value values[HISTORY_WHAT_MAX] = {{0}};

	for (size_t i = 0; i < columns->count; i++) {
		values[i] = column_read(columns->items[i], sample);
		if (columns->items[i]->kind == KIND_TEXT)
			values[i].text = text_of_sample(chunk, texts, values[i].text);
	}
	return tuple_put(tuples, values, columns->count);
}

static void tuple_fill(const struct history_tuples *tuples, uint32_t number,
		       const struct history_columns *columns, struct sample *sample)
{
	const char *values = (const char *)(tuples->values + (size_t)number * tuples->width);

	for (size_t i = 0; i < columns->run_count; i++) {
		const struct history_run *run = &columns->runs[i];

		memcpy((char *)sample + run->offset, values, run->bytes);
		values += run->bytes;
	}
}

static struct history_last *last_of(struct history_coder *coder, uint32_t who)
{
	size_t before = coder->capacity;

	coder->last =
		memory_grow(coder->last, &coder->capacity, (size_t)who + 1, sizeof(*coder->last));
	for (; before < coder->capacity; before++)
		coder->last[before] = (struct history_last){.sample = *sample_absent(),
							    .present = PRESENT_ALWAYS};
	return &coder->last[who];
}

static void who_add(struct text *bytes, uint32_t who, int64_t before, unsigned int head)
{
	uint64_t far = zigzag((int64_t)who - before - 1);

	varint_add(bytes, far << HEAD_BITS | head);
}

void history_encode(struct history_chunk *chunk, struct history_texts *texts,
		    const struct sample *sample, const struct history_scan *scan)
{
	struct history_coder *coder = chunk->coder;
	uint32_t who = tuple_of(chunk, &chunk->who, texts, &history_who, sample);
	uint32_t what = tuple_of(chunk, &chunk->what, texts, &history_what, sample);
	struct history_last *last = last_of(coder, who);
	bool stays = last->what == what + 1;
	const struct expecting of = {
		.elapsed_us = minus(scan->time_us, last->sample.scan.time_us),
		.weight_us = scan->weight_us,
		.threads = sample_scans(sample),
		.state = sample->now.state,
		.stays = stays,
	};
	int64_t expected[NUMBER_COUNT];
	unsigned int head = stays ? 0 : HEAD_WHAT, bits = 0;

	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		expected[i] = expected_of(&history_numbers[i],
					  number_of(&last->sample, history_numbers[i].offset), &of);
		if (expected[i] != number_of(sample, history_numbers[i].offset))
			bits |= 1u << i;
	}
	who_add(&chunk->bytes, who, coder->who, head | (bits ? HEAD_NUMBERS : 0));
	coder->who = who;
	if (!stays)
		varint_add(&chunk->bytes, what);
	if (bits)
		varint_add(&chunk->bytes, bits);
	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		int64_t number = number_of(sample, history_numbers[i].offset);

		if (bits >> i & 1)
			difference_add(&chunk->bytes, number, expected[i]);
		*number_at(&last->sample, history_numbers[i].offset) = number;
	}
	last->sample.scan.time_us = scan->time_us;
	last->what = what + 1;
}

const struct sample *history_decode(const struct history_chunk *chunk, struct history_coder *coder,
				    size_t *at, const struct history_scan *scan)
{
	const char *bytes = chunk->bytes.bytes;
	uint64_t head = varint_read(bytes, at), bits = 0;
	uint32_t present;
	uint32_t who = (uint32_t)(coder->who + 1 + zigzag_undo(head >> HEAD_BITS));
	struct history_last *last = last_of(coder, who);
	struct sample *sample = &last->sample;
	struct expecting of;

	coder->who = who;
	if (!last->what)
		tuple_fill(&chunk->who, who, &history_who, sample);
	if (head & HEAD_WHAT) {
		last->what = (uint32_t)varint_read(bytes, at) + 1;
		last->memo = 0;
		tuple_fill(&chunk->what, last->what - 1, &history_what, sample);
	}
	of = (struct expecting){
		.elapsed_us = minus(scan->time_us, sample->scan.time_us),
		.weight_us = scan->weight_us,
		.state = sample->now.state,
		.stays = !(head & HEAD_WHAT),
	};
	if (head & HEAD_NUMBERS)
		bits = varint_read(bytes, at);
	/* skips a number that is absent and remains so */
	last->present |= (uint32_t)bits;
	for (present = last->present; present; present &= present - 1) {
		int i = __builtin_ctz(present);
		int64_t *number = number_at(sample, history_numbers[i].offset);

		of.threads = sample_scans(sample);
		*number = expected_of(&history_numbers[i], *number, &of);
		if (bits >> i & 1)
			*number = difference_read(bytes, at, *number);
	}
	sample->scan.time_us = scan->time_us;
	return sample;
}

void history_encode_account(struct history_chunk *chunk, struct history_texts *texts,
			    const struct sample *account)
{
	uint32_t who = tuple_of(chunk, &chunk->who, texts, &history_who, account);
	const int64_t *sums = &account->sums.cpu_us;
	uint64_t known = account->now.cpu != ABSENT ? ACCOUNT_OF_CPU : 0;

	for (size_t i = 0; i < SUMS_COUNT; i++)
		known |= (uint64_t)(sums[i] != ABSENT) << i;
	varint_add(&chunk->bytes, who);
	difference_add(&chunk->bytes, account->scan.weight_us, 0);
	varint_add(&chunk->bytes, known);
	if (known & ACCOUNT_OF_CPU)
		difference_add(&chunk->bytes, account->now.cpu, 0);
	for (size_t i = 0; i < SUMS_COUNT; i++)
		if (known >> i & 1)
			difference_add(&chunk->bytes, sums[i], 0);
}

void history_decode_account(const struct history_chunk *chunk, size_t *at,
			    const struct history_scan *scan, struct sample *account)
{
	uint64_t known;

	*account = *sample_absent();
	tuple_fill(&chunk->who, (uint32_t)varint_read(chunk->bytes.bytes, at), &history_who,
		   account);
	account->scan.weight_us = difference_read(chunk->bytes.bytes, at, 0);
	known = varint_read(chunk->bytes.bytes, at);
	if (known & ACCOUNT_OF_CPU)
		account->now.cpu = difference_read(chunk->bytes.bytes, at, 0);
	for (size_t i = 0; i < SUMS_COUNT; i++)
		if (known >> i & 1)
			(&account->sums.cpu_us)[i] = difference_read(chunk->bytes.bytes, at, 0);
	account->scan.time_us = scan->time_us;
}

void history_encode_trace(struct history_chunk *chunk, struct history_texts *texts,
			  const struct trace_kind *kind, const struct sample *who,
			  const struct histogram *histogram)
{
	struct text *bytes = &chunk->bytes;
	uint64_t used = 0;

	varint_add(bytes, tuple_of(chunk, &chunk->who, texts, &history_who, who));
	varint_add(bytes, tuple_of(chunk, &chunk->what, texts, &history_what, who));
	varint_add(bytes, (uintptr_t)kind); /* an address: kind has static storage */
	varint_add(bytes, (uint64_t)histogram->sum_ns);
	varint_add(bytes, (uint64_t)histogram->max_ns);
	varint_add(bytes, (uint64_t)histogram->amount);
	varint_add(bytes, (uint64_t)histogram->below);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		used |= (uint64_t)(histogram->buckets[i] != 0) << i;
	varint_add(bytes, used);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (histogram->buckets[i])
			varint_add(bytes, (uint64_t)histogram->buckets[i]);
}

const struct trace_kind *history_decode_trace(const struct history_chunk *chunk, size_t *at,
					      const struct history_scan *scan, struct sample *who,
					      struct histogram *histogram)
{
	const char *bytes = chunk->bytes.bytes;
	const struct trace_kind *kind;
	uint64_t used;

	*who = *sample_absent();
	tuple_fill(&chunk->who, (uint32_t)varint_read(bytes, at), &history_who, who);
	tuple_fill(&chunk->what, (uint32_t)varint_read(bytes, at), &history_what, who);
	who->scan.time_us = scan->time_us;
	kind = (const struct trace_kind *)(uintptr_t)varint_read(bytes, at);
	histogram->split = NULL; /* is not kept */
	histogram->sum_ns = (int64_t)varint_read(bytes, at);
	histogram->max_ns = (int64_t)varint_read(bytes, at);
	histogram->amount = (int64_t)varint_read(bytes, at);
	histogram->below = (int64_t)varint_read(bytes, at);
	used = varint_read(bytes, at);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->buckets[i] = used >> i & 1 ? (int64_t)varint_read(bytes, at) : 0;
	return kind;
}

void history_coder_free(struct history_coder *coder)
{
	if (!coder)
		return;
	free(coder->last);
	free(coder->recent);
	free(coder);
}

size_t history_chunk_bytes(const struct history_chunk *chunk)
{
	size_t index_slot = 17; /* a key, a number and a tag: bytes of a slot of an index */

	return chunk->bytes.capacity + chunk->scan_capacity * sizeof(*chunk->scans) +
	       (chunk->who.capacity * chunk->who.width + chunk->what.capacity * chunk->what.width) *
		       sizeof(union value) +
	       (chunk->who.by_hash.capacity + chunk->what.by_hash.capacity + chunk->uses.capacity) *
		       index_slot;
}
