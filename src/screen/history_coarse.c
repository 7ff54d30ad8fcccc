/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/history_coarse.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

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
		kept.scan.weight_us = scan->weight_us;
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

struct history_chunk *history_coarsen(const struct history_chunk *chunk,
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
