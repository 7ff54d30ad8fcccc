/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/held_scans.h"
#include "base/memory.h"

#include <stdlib.h>

#define COUNT_FIRST 64

static struct held_scan *held_at(struct held_scans *held, size_t index)
{
	return &held->ring[(held->first + index) % held->capacity];
}

/* Ensures capacity for the present scan after those that wait. */
static void ring_grow(struct held_scans *held)
{
	size_t capacity = held->capacity ? 2 * held->capacity : COUNT_FIRST;
	struct held_scan *ring;

	if (held->count + 1 <= held->capacity)
		return;
	ring = memory_get(capacity * sizeof(*ring));
	for (size_t i = 0; i < held->capacity; i++)
		ring[i] = *held_at(held, i);
	free(held->ring);
	held->ring = ring;
	held->capacity = capacity;
	held->first = 0;
}

struct text *held_scans_rows(struct held_scans *held, enum record_kind kind)
{
	ring_grow(held);
	return &held_at(held, held->count)->rows[kind];
}

static size_t scan_bytes(const struct held_scan *scan)
{
	size_t bytes = 0;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		bytes += scan->rows[kind].length;
	return bytes;
}

/* Hands the oldest scan to the recorder: all of it, or (not kept) only the rows that are always
 * recorded. */
static void oldest_put(struct held_scans *held, bool kept)
{
	struct held_scan *scan = held_at(held, 0);
	bool any = false;

	held->bytes -= scan_bytes(scan);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
		struct text *rows = &scan->rows[kind];

		if (rows->length && (kept || (kind != RECORD_SAMPLES && kind != RECORD_SCANS))) {
			text_add(recorder_rows(held->recorder, kind), rows->bytes, rows->length);
			any = true;
		}
		text_clear(rows);
	}
	if (any)
		recorder_put(held->recorder, scan->time_us);
	held->first = (held->first + 1) % held->capacity;
	held->count--;
}

void held_scans_put(struct held_scans *held, int64_t time_us, int64_t now_us, bool moment)
{
	struct held_scan *present;

	ring_grow(held);
	present = held_at(held, held->count++);
	present->time_us = time_us;
	present->now_us = now_us;
	held->bytes += scan_bytes(present);
	while (held->count > 1 && held_at(held, 0)->now_us < now_us - held->around_us)
		oldest_put(held, false);
	if (moment)
		held->until_us = now_us + held->around_us;
	while (held->count && held_at(held, 0)->now_us < held->until_us)
		oldest_put(held, true);
	for (; held->count && held->bytes > HELD_BYTES_MAX; held->dropped++)
		oldest_put(held, false);
}

void held_scans_end(struct held_scans *held)
{
	while (held->count)
		oldest_put(held, false);
}

void held_scans_done(struct held_scans *held)
{
	for (size_t i = 0; i < held->capacity; i++)
		for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
			text_done(&held->ring[i].rows[kind]);
	free(held->ring);
	*held = (struct held_scans){0};
}
