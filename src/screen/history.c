/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/history.h"
#include "screen/history_code.h"
#include "base/clock.h"
#include "base/memory.h"
#include "sample/wait_rule.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_US (20 * 1000000ll)
#define PART_NS (20 * NS_PER_MS) /* CPU time of a visit of a part, approximately */
#define HISTORY_COARSE_US 1000000
#define COARSE_AGES 12 /* coarse chunks are kept so many times as long as others */
#define CHUNK_PART 8   /* a chunk takes at most this part of the memory */

struct history {
	pthread_mutex_t lock;	   /* guards all members below */
	size_t bytes_limit, bytes; /* bytes of all chunks but the newest, with their texts */
	int64_t age_us;
	struct history_texts texts;
	struct history_chunk **chunks; /* oldest first; the last one is being written */
	size_t count, capacity;
	struct history_scan scan; /* the scan that is being gathered */
	bool in_scan;
	size_t coarse_count; /* number of chunks, from the first one, that are coarse */
	uint64_t scan_count, dropped_scans, thinned_scans;
	bool dropped_memory;
};

struct history *history_new(size_t bytes, int64_t age_us)
{
	struct history *history = memory_get(sizeof(*history));

	history_columns_find();
	pthread_mutex_init(&history->lock, NULL);
	history->bytes_limit = bytes;
	history->age_us = age_us;
	return history;
}

static void tuples_done(struct history_tuples *tuples)
{
	free(tuples->values);
	index_clear(&tuples->by_hash);
}

/* Drops a holder of the chunk. texts: NULL for a copy. */
static void chunk_drop(struct history_texts *texts, struct history_chunk *chunk)
{
	if (--chunk->holders)
		return;
	if (texts)
		history_texts_drop(texts, &chunk->uses);
	tuples_done(&chunk->who);
	tuples_done(&chunk->what);
	text_done(&chunk->bytes);
	free(chunk->scans);
	history_coder_free(chunk->coder);
	free(chunk);
}

void history_free(struct history *history)
{
	if (!history)
		return;
	for (size_t i = 0; i < history->count; i++)
		chunk_drop(&history->texts, history->chunks[i]);
	free(history->chunks);
	index_clear(&history->texts.by_hash);
	pthread_mutex_destroy(&history->lock);
	free(history);
}

/* Closes the chunk for writing: frees what only the writer needs. */
static void chunk_close(struct history *history, struct history_chunk *chunk)
{
	history_coder_free(chunk->coder);
	chunk->coder = NULL;
	index_clear(&chunk->who.by_hash);
	index_clear(&chunk->what.by_hash);
	chunk->bytes.bytes = memory_resize(chunk->bytes.bytes, chunk->bytes.length + 1, 1);
	chunk->bytes.capacity = chunk->bytes.length + 1;
	chunk->who.capacity = chunk->who.count;
	chunk->who.values = memory_resize(chunk->who.values, chunk->who.count,
					  chunk->who.width * sizeof(union value));
	chunk->what.capacity = chunk->what.count;
	chunk->what.values = memory_resize(chunk->what.values, chunk->what.count,
					   chunk->what.width * sizeof(union value));
	history->bytes += history_chunk_bytes(chunk);
}

static void oldest_drop(struct history *history)
{
	struct history_chunk *chunk = history->chunks[0];

	history->bytes -= history_chunk_bytes(chunk);
	history->dropped_scans += chunk->scan_count;
	history->scan_count -= chunk->scan_count;
	history->coarse_count -= chunk->coarse;
	memmove(history->chunks, history->chunks + 1, --history->count * sizeof(*history->chunks));
	chunk_drop(&history->texts, chunk);
}

/* --- thinning of old chunks */

/* A thread's share of the scans that are left out. */
struct left_out {
	bool any;
	struct sample who; /* the thread, with the sums of its exact numbers */
};

struct coarsening {
	const struct history_chunk *from;
	struct history_chunk *to;
	struct history_texts *texts;
	struct history_coder coder; /* decodes the samples of from */
	struct left_out *left_out;  /* indexed by the thread's number in `from` */
};

static void sample_leave_out(struct left_out *left, const struct sample *sample)
{
	if (!left->any) {
		left->who = *sample;
		left->who.scan.weight_us = ABSENT;
		left->any = true;
	} else {
		sample_sums_add(&left->who.sums, &sample->sums);
	}
}

static void sample_keep(struct coarsening *coarse, const struct sample *sample,
			const struct history_scan *scan)
{
	struct left_out *left = &coarse->left_out[coarse->coder.who];
	struct sample kept = *sample;

	if (kept.scan.weight_us != ABSENT)
		kept.scan.weight_us = scan->weight_us * sample_scans(sample);
	if (left->any)
		sample_sums_add(&kept.sums, &left->who.sums);
	left->any = false;
	history_encode(coarse->to, coarse->texts, &kept, scan);
}

/* Takes the scan's samples and accounts. kept: the scan that replaces it; NULL: it is left out. */
static void samples_take(struct coarsening *coarse, const struct history_scan *scan,
			 const struct history_scan *kept)
{
	size_t at = scan->offset;

	coarse->coder.who = -1;
	for (uint32_t i = 0; i < scan->samples; i++) {
		const struct sample *sample =
			history_decode(coarse->from, &coarse->coder, &at, scan);

		if (kept)
			sample_keep(coarse, sample, kept);
		else
			sample_leave_out(&coarse->left_out[coarse->coder.who], sample);
	}
}

static void account_add(struct coarsening *coarse, struct history_scan *kept,
			const struct sample *account)
{
	history_encode_account(coarse->to, coarse->texts, account);
	kept->accounts++;
}

/* Adds accounts of the scans from..last, and of threads that the last one does not have. */
static void accounts_take(struct coarsening *coarse, size_t from, size_t last,
			  struct history_scan *kept)
{
	struct sample account;

	for (size_t i = from; i <= last; i++) {
		const struct history_scan *scan = &coarse->from->scans[i];
		size_t at = scan->end;

		for (uint32_t j = 0; j < scan->accounts; j++) {
			history_decode_account(coarse->from, &at, scan, &account);
			account_add(coarse, kept, &account);
		}
	}
	for (size_t i = 0; i < coarse->from->who.count; i++) {
		if (!coarse->left_out[i].any)
			continue;
		account_add(coarse, kept, &coarse->left_out[i].who);
		coarse->left_out[i].any = false;
	}
}

/* Copies what --trace measured in the scans from..last. */
static void traces_take(struct coarsening *coarse, size_t from, size_t last,
			struct history_scan *kept)
{
	struct histogram histogram;
	struct sample who;

	for (size_t i = from; i <= last; i++) {
		const struct history_scan *scan = &coarse->from->scans[i];
		size_t at = scan->end;

		for (uint32_t j = 0; j < scan->accounts; j++)
			history_decode_account(coarse->from, &at, scan, &who);
		for (uint32_t j = 0; j < scan->traces; j++) {
			const struct trace_kind *kind =
				history_decode_trace(coarse->from, &at, scan, &who, &histogram);

			history_encode_trace(coarse->to, coarse->texts, kind, &who, &histogram);
		}
		kept->traces += scan->traces;
	}
}

/* Merges the scans from..last into one. */
static void scans_merge(struct coarsening *coarse, size_t from, size_t last)
{
	const struct history_scan *scans = coarse->from->scans;
	struct history_chunk *to = coarse->to;
	struct history_scan kept = scans[last];

	kept.weight_us = kept.silent_us = kept.clock_step_us = 0;
	for (size_t i = from; i <= last; i++) {
		kept.weight_us += scans[i].weight_us;
		kept.silent_us += scans[i].silent_us;
		kept.clock_step_us += scans[i].clock_step_us;
	}
	kept.offset = (uint32_t)to->bytes.length;
	kept.accounts = kept.traces = 0;
	for (size_t i = from; i < last; i++)
		samples_take(coarse, &scans[i], NULL);
	to->coder->who = -1;
	samples_take(coarse, &scans[last], &kept);
	kept.end = (uint32_t)to->bytes.length;
	accounts_take(coarse, from, last, &kept);
	traces_take(coarse, from, last, &kept);
	to->scans =
		memory_grow(to->scans, &to->scan_capacity, to->scan_count + 1, sizeof(*to->scans));
	to->scans[to->scan_count++] = kept;
}

static bool is_same_step(const struct history_scan *a, const struct history_scan *b)
{
	return a->time_us / HISTORY_COARSE_US == b->time_us / HISTORY_COARSE_US;
}

/* Makes a new chunk, still open for writing, with the last scan of each HISTORY_COARSE_US of this
 * one. Its samples stand for the time of the scans that are left out, and have their exact times;
 * threads that only those scans have become accounts. NULL: there is nothing to leave out. */
static struct history_chunk *history_coarsen(const struct history_chunk *chunk,
					     struct history_texts *texts)
{
	struct coarsening coarse = {.from = chunk, .texts = texts};
	size_t from = 0;

	while (from + 1 < chunk->scan_count &&
	       !is_same_step(&chunk->scans[from], &chunk->scans[from + 1]))
		from++;
	if (from + 1 >= chunk->scan_count)
		return NULL;
	coarse.to = memory_get(sizeof(*coarse.to));
	coarse.to->coder = memory_get(sizeof(*coarse.to->coder));
	coarse.to->holders = 1;
	coarse.left_out = memory_get((chunk->who.count + 1) * sizeof(*coarse.left_out));
	from = 0;
	for (size_t i = 0; i < chunk->scan_count; i++)
		if (i + 1 == chunk->scan_count ||
		    !is_same_step(&chunk->scans[i], &chunk->scans[i + 1])) {
			scans_merge(&coarse, from, i);
			from = i + 1;
		}
	free(coarse.coder.last);
	free(coarse.left_out);
	return coarse.to;
}

/* Makes the oldest chunk that still has all of its scans coarse. */
static void oldest_coarsen(struct history *history)
{
	struct history_chunk *old = history->chunks[history->coarse_count];
	struct history_chunk *chunk = history_coarsen(old, &history->texts);

	if (chunk) {
		history->bytes -= history_chunk_bytes(old);
		history->thinned_scans += old->scan_count - chunk->scan_count;
		history->scan_count -= old->scan_count - chunk->scan_count;
		chunk_close(history, chunk);
		history->chunks[history->coarse_count] = chunk;
		chunk_drop(&history->texts, old);
	}
	history->chunks[history->coarse_count++]->coarse = true;
}

static bool is_older(const struct history_chunk *chunk, int64_t age_us, int64_t now_us)
{
	return age_us && chunk->scans[chunk->scan_count - 1].time_us + age_us < now_us;
}

/* Makes chunks coarse that are too old, and later drops them. When memory is full, first drops
 * those that are older than age_us promises, then makes the rest coarse, from the oldest on. */
static void old_drop(struct history *history, int64_t now_us)
{
	while (history->count > 1) {
		const struct history_chunk *oldest = history->chunks[0];
		const struct history_chunk *fine = history->chunks[history->coarse_count];
		size_t newest = history_chunk_bytes(history->chunks[history->count - 1]);
		bool full = history->bytes + history->texts.bytes + newest > history->bytes_limit;
		bool is_fine = history->coarse_count + 1 < history->count;

		if (is_older(oldest, history->age_us * COARSE_AGES, now_us) ||
		    (full &&
		     (!is_fine || (oldest->coarse && is_older(oldest, history->age_us, now_us))))) {
			history->dropped_memory |= full;
			oldest_drop(history);
		} else if (is_fine && (full || is_older(fine, history->age_us, now_us))) {
			oldest_coarsen(history);
		} else {
			return;
		}
	}
}

/* The chunk for a scan of that time. */
static struct history_chunk *chunk_for(struct history *history, int64_t time_us)
{
	struct history_chunk *chunk = history->count ? history->chunks[history->count - 1] : NULL;

	/* within a chunk times increase, also where the clock was set back */
	if (chunk && (!chunk->scan_count ||
		      (time_us - chunk->scans[0].time_us < CHUNK_US &&
		       time_us > chunk->scans[chunk->scan_count - 1].time_us &&
		       history_chunk_bytes(chunk) < history->bytes_limit / CHUNK_PART)))
		return chunk;
	if (chunk)
		chunk_close(history, chunk);
	old_drop(history, time_us);
	chunk = memory_get(sizeof(*chunk));
	chunk->coder = memory_get(sizeof(*chunk->coder));
	chunk->holders = 1;
	history->chunks = memory_grow(history->chunks, &history->capacity, history->count + 1,
				      sizeof(struct history_chunk *));
	history->chunks[history->count++] = chunk;
	return chunk;
}

static void band_add(struct history_scan *scan, const struct sample *sample)
{
	uint32_t threads = (uint32_t)sample_scans(sample);

	switch (sample->now.state) {
	case STATE_RQ:
		scan->band[BAND_RQ] += threads;
		return;
	case STATE_DISK:
		scan->band[BAND_DISK] += threads;
		return;
	case STATE_SLEEP:
		if (sample->wait.why && wait_class_works(sample->wait.why))
			scan->band[BAND_WORK] += threads;
		return;
	case STATE_ON:
	case ABSENT: /* samples without a state count as active */
		scan->band[BAND_ON] += threads;
		return;
	default:
		return;
	}
}

static void batch_add(struct history *history, const struct scan *batch)
{
	struct history_chunk *chunk;

	if (!history->in_scan) {
		chunk = chunk_for(history, batch->time_us);
		history->scan = (struct history_scan){
			.time_us = batch->time_us,
			.weight_us = batch->weight_us,
			.silent_us = batch->silent_us,
			.clock_step_us = batch->clock_step_us,
			.offset = (uint32_t)chunk->bytes.length,
		};
		history->in_scan = true;
		chunk->coder->who = -1;
	}
	chunk = history->chunks[history->count - 1];
	history_know_texts(chunk->coder);
	for (size_t i = 0; i < batch->count; i++) {
		history_encode(chunk, &history->texts, &batch->samples[i], &history->scan);
		band_add(&history->scan, &batch->samples[i]);
	}
	history->scan.samples += (uint32_t)batch->count;
}

void history_add_batch(struct history *history, const struct scan *batch)
{
	pthread_mutex_lock(&history->lock);
	batch_add(history, batch);
	pthread_mutex_unlock(&history->lock);
}

void history_end_scan(struct history *history, const struct scan *scan)
{
	struct history_chunk *chunk;

	pthread_mutex_lock(&history->lock);
	batch_add(history, scan);
	chunk = history->chunks[history->count - 1];
	history->scan.threads = (uint32_t)scan->threads;
	history->scan.end = (uint32_t)chunk->bytes.length;
	chunk->scans = memory_grow(chunk->scans, &chunk->scan_capacity, chunk->scan_count + 1,
				   sizeof(*chunk->scans));
	chunk->scans[chunk->scan_count++] = history->scan;
	history->scan_count++;
	history->in_scan = false;
	pthread_mutex_unlock(&history->lock);
}

void history_add_account(struct history *history, const struct sample *account)
{
	struct history_chunk *chunk;

	pthread_mutex_lock(&history->lock);
	chunk = history->count ? history->chunks[history->count - 1] : NULL;
	if (chunk && chunk->scan_count && !history->in_scan) {
		history_encode_account(chunk, &history->texts, account);
		chunk->scans[chunk->scan_count - 1].accounts++;
	}
	pthread_mutex_unlock(&history->lock);
}

void history_add_trace(struct history *history, const struct trace_kind *kind,
		       const struct sample *who, const struct histogram *histogram)
{
	struct history_chunk *chunk;

	pthread_mutex_lock(&history->lock);
	chunk = history->count ? history->chunks[history->count - 1] : NULL;
	if (chunk && chunk->scan_count && !history->in_scan) {
		history_encode_trace(chunk, &history->texts, kind, who, histogram);
		chunk->scans[chunk->scan_count - 1].traces++;
	}
	pthread_mutex_unlock(&history->lock);
}

size_t history_bytes(struct history *history)
{
	size_t bytes;

	pthread_mutex_lock(&history->lock);
	bytes = history->bytes + history->texts.bytes;
	if (history->count)
		bytes += history_chunk_bytes(history->chunks[history->count - 1]);
	pthread_mutex_unlock(&history->lock);
	return bytes;
}

/* --- reading */

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = memory_get(bytes);

	if (bytes)
		memcpy(copy, from, bytes);
	return copy;
}

static struct history_chunk *chunk_copy(const struct history_chunk *chunk)
{
	struct history_chunk *copy = memory_get(sizeof(*copy));
	const size_t value = sizeof(union value);

	copy->holders = 1;
	copy->who = (struct history_tuples){.width = chunk->who.width, .count = chunk->who.count};
	copy->who.values = copy_of(chunk->who.values, chunk->who.count * chunk->who.width * value);
	copy->what =
		(struct history_tuples){.width = chunk->what.width, .count = chunk->what.count};
	copy->what.values =
		copy_of(chunk->what.values, chunk->what.count * chunk->what.width * value);
	copy->bytes.bytes = copy_of(chunk->bytes.bytes, chunk->bytes.length);
	copy->bytes.length = chunk->bytes.length;
	copy->scan_count = chunk->scan_count;
	copy->scans = copy_of(chunk->scans, chunk->scan_count * sizeof(*chunk->scans));
	return copy;
}

void history_view_done(struct history_view *view)
{
	struct history *history = view->history;

	if (!history)
		return;
	pthread_mutex_lock(&history->lock);
	for (size_t i = 0; i < view->chunk_count; i++)
		chunk_drop(&history->texts, view->chunks[i]);
	pthread_mutex_unlock(&history->lock);
	if (view->open)
		chunk_drop(NULL, view->open);
	free(view->chunks);
	*view = (struct history_view){0};
}

void history_look(struct history *history, struct history_view *view)
{
	history_view_done(view);
	view->history = history;
	pthread_mutex_lock(&history->lock);
	view->chunks = copy_of(history->chunks, history->count * sizeof(*history->chunks));
	view->chunk_count = history->count;
	for (size_t i = 0; i < history->count; i++)
		view->chunks[i]->holders++; /* holds the newest chunk, too, for its texts */
	if (history->count)
		view->open = chunk_copy(history->chunks[history->count - 1]);
	view->scan_count = history->scan_count;
	view->dropped_scans = history->dropped_scans;
	view->thinned_scans = history->thinned_scans;
	view->dropped_memory = history->dropped_memory;
	pthread_mutex_unlock(&history->lock);
	view->first_us = view->last_us = ABSENT;
	for (size_t i = 0; i < view->chunk_count; i++) {
		const struct history_chunk *chunk =
			i + 1 < view->chunk_count ? view->chunks[i] : view->open;

		if (!chunk->scan_count)
			continue;
		/* a newer chunk may be of earlier times: the clock was set back */
		if (view->first_us == ABSENT || chunk->scans[0].time_us < view->first_us)
			view->first_us = chunk->scans[0].time_us;
		view->last_us = chunk->scans[chunk->scan_count - 1].time_us;
	}
}

/* Visits the scan's accounts and traces, which begin at `at`, after its samples. */
static void rest_visit(const struct history_chunk *chunk, size_t at,
		       const struct history_scan *scan, const struct history_visitor *visitor)
{
	const struct trace_kind *kind;
	struct histogram histogram;
	struct sample who;

	if (!visitor->account && !visitor->trace)
		return;
	for (uint32_t i = 0; i < scan->accounts; i++) {
		history_decode_account(chunk, &at, scan, &who);
		if (visitor->account)
			visitor->account(visitor->to, &who);
	}
	for (uint32_t i = 0; visitor->trace && i < scan->traces; i++) {
		kind = history_decode_trace(chunk, &at, scan, &who, &histogram);
		visitor->trace(visitor->to, kind, &who, &histogram);
	}
}

/* Decodes the scan's samples, and calls the visitor with them if wanted is true. */
static void scan_visit(const struct history_chunk *chunk, struct history_coder *coder,
		       const struct history_scan *scan, bool wanted,
		       const struct history_visitor *visitor)
{
	size_t at = scan->offset;

	coder->who = -1;
	if (wanted && visitor->scan)
		visitor->scan(visitor->to, scan);
	for (uint32_t i = 0; i < scan->samples; i++) {
		const struct sample *sample = history_decode(chunk, coder, &at, scan);

		if (wanted && visitor->sample)
			visitor->sample(visitor->to, sample);
		if (wanted && visitor->sample_memo)
			visitor->sample_memo(visitor->to, sample, &coder->last[coder->who].memo);
	}
	if (wanted)
		rest_visit(chunk, at, scan, visitor);
}

static void chunk_visit(const struct history_chunk *chunk, int64_t from_us, int64_t until_us,
			const struct history_visitor *visitor)
{
	bool deep = visitor->sample || visitor->sample_memo || visitor->account || visitor->trace;
	struct history_coder coder = {0};

	if (!chunk->scan_count || chunk->scans[0].time_us >= until_us ||
	    chunk->scans[chunk->scan_count - 1].time_us < from_us)
		return;
	for (size_t i = 0; i < chunk->scan_count; i++) {
		const struct history_scan *scan = &chunk->scans[i];
		bool wanted = scan->time_us >= from_us && scan->time_us < until_us;

		if (scan->time_us >= until_us)
			break;
		if (deep) /* earlier scans, too: the wanted ones build on them */
			scan_visit(chunk, &coder, scan, wanted, visitor);
		else if (wanted)
			visitor->scan(visitor->to, scan);
	}
	free(coder.last);
}

/* Time of the first scan in the chunk that has the last scan before before_us. */
static int64_t chunk_begin(const struct history_view *view, int64_t before_us)
{
	for (size_t i = view->chunk_count; i--;) {
		const struct history_chunk *chunk =
			i + 1 < view->chunk_count ? view->chunks[i] : view->open;

		if (chunk->scan_count && chunk->scans[0].time_us < before_us)
			return chunk->scans[0].time_us;
	}
	return view->first_us;
}

void history_visit(const struct history_view *view, int64_t from_us, int64_t until_us,
		   const struct history_visitor *visitor)
{
	for (size_t i = 0; i < view->chunk_count; i++)
		chunk_visit(i + 1 < view->chunk_count ? view->chunks[i] : view->open, from_us,
			    until_us, visitor);
}

struct history_seen history_seen_none(const struct history_view *view)
{
	int64_t us = chunk_begin(view, view->last_us + 1);

	return (struct history_seen){us, us};
}

void history_visit_part(const struct history_view *view, struct history_seen *seen, int64_t from_us,
			const struct history_visitor *visitor)
{
	int64_t end_ns = clock_thread_cpu_ns() + PART_NS;

	history_visit(view, seen->until_us, view->last_us + 1, visitor);
	seen->until_us = view->last_us + 1;
	while (seen->since_us > from_us && seen->since_us > view->first_us &&
	       clock_thread_cpu_ns() < end_ns) {
		int64_t until_us = seen->since_us;

		seen->since_us = chunk_begin(view, until_us);
		history_visit(view, seen->since_us, until_us, visitor);
	}
}
