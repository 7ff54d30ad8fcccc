/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/host_waits.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/findings.h"
#include "report/value.h"
#include "sample/edge_kind.h"

#include <stdlib.h>
#include <string.h>

#define MATCHED_LEAST 20 /* samples: of fewer, a share is wrong by 20 % and more */
#define SHARE_LEAST 10	 /* percent of them, of a cause beside the first one */

/* Adds what the root of a thread's chain did. */
static void doing_add(struct text *text, const struct finding_case *of)
{
	const char *device = device_of(of), *awaited = of->rooted ? NULL : of->sample->wait.onsum;

	switch (of->root.state) {
	case STATE_ON:
		text_add_string(text, "runs");
		return;
	case STATE_RQ:
		text_add_string(text, of->end == EDGE_QUOTA ? "waits for a CPU quota"
							    : "waits for a CPU");
		return;
	case STATE_STOPPED:
		text_add_string(text, "is stopped");
		return;
	case STATE_DISK:
	case STATE_SLEEP:
		if (device)
			text_add_format(text, "waits for %s", device);
		else if (awaited)
			text_add_format(text, "waits for %s", awaited);
		else
			text_add_string(text, of->root.state == STATE_DISK ? "is in D" : "sleeps");
		if (of->root.syscall)
			text_add_format(text, " in %s", of->root.syscall);
		return;
	default:
		text_add_string(text, "does what is not known");
	}
}

/* Returns what a thread did, as its host recorded it. Lasts until names are dropped. */
static const char *does_of(const struct sample *sample, const char *host)
{
	static struct text text;
	struct finding_case of;

	text_clear(&text);
	if (!sample) {
		text_add_string(&text, "was not recorded at that time");
		return name_transient(text_string(&text), text.length);
	}
	of = finding_case_of(sample, 1, 0);
	if (of.rooted) {
		const char *lock = edge_kinds[of.link].lock_add ? thing_lock(&of) : NULL;

		text_add_string(&text, "waits for ");
		if (edge_kinds[of.link].lock_add)
			text_add_format(&text, "%s held by ",
					lock ? lock : edge_kinds[of.link].name);
		text_add_format(&text, "%s@%s, which ", of.root.comm ? of.root.comm : "?", host);
	}
	doing_add(&text, &of);
	return name_transient(text_string(&text), text.length);
}

static uint64_t hash_of(const char *name, size_t host)
{
	return hash_u64((uint64_t)(uintptr_t)name + hash_u64(host));
}

static void cause_add(struct host_wait *wait, const struct host_join *join, int64_t samples,
		      const struct join_path *path)
{
	const char *does = does_of(path->last_sample, join->hosts[path->last_host].name);
	uint64_t key = path->last_sample ? finding_key_of(path->last_sample) : 0;
	struct host_cause *cause;
	bool added;

	cause = keyed_put(&wait->causes, sizeof(*cause),
			  hash_of(path->last, path->last_host) ^ hash_of(does, SIZE_MAX), &added);
	if (added)
		*cause = (struct host_cause){path->last, does, path->last_host, key, 0};
	if (cause->key != key)
		cause->key = 0;
	cause->samples += samples;
}

void host_waits_add(struct host_waits *waits, const struct host_join *join, size_t host,
		    const struct sample *sample, const struct join_path *path)
{
	int64_t samples = sample_scans(sample);
	const char *waiter = sample->thread.commsum ? sample->thread.commsum : sample->thread.comm;
	struct host_wait *wait;
	uint64_t key;
	bool added;

	if (!path->leaves || path->end == JOIN_NOWHERE)
		return;
	key = finding_key_of(sample);
	wait = keyed_put(&waits->waits, sizeof(*wait),
			 hash_of(waiter, host) ^ hash_u64(hash_of(path->server, path->server_host)),
			 &added);
	if (added)
		*wait = (struct host_wait){.waiter = waiter,
					   .server = path->server,
					   .waiter_host = host,
					   .server_host = path->server_host,
					   .key = key};
	if (wait->key != key)
		wait->key = 0;
	wait->samples += samples;
	wait->weight_us = sum(wait->weight_us, sample->scan.weight_us);
	if (path->end != JOIN_THREAD)
		return;
	wait->matched += samples;
	cause_add(wait, join, samples, path);
}

static int causes_compare(const void *a, const void *b)
{
	const struct host_cause *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return strcmp(x->does, y->does);
}

static bool is_enough(const struct host_wait *wait, int64_t elapsed_us)
{
	return wait->matched >= MATCHED_LEAST && ratio(wait->weight_us, 10, elapsed_us) >= 1;
}

static int waits_compare(const void *a, const void *b)
{
	const struct host_wait *x = a, *y = b;

	if ((x->matched >= MATCHED_LEAST) != (y->matched >= MATCHED_LEAST))
		return x->matched >= MATCHED_LEAST ? -1 : 1;
	if (x->weight_us != y->weight_us)
		return x->weight_us < y->weight_us ? 1 : -1;
	return strcmp(x->waiter, y->waiter);
}

size_t host_waits_sort(struct host_waits *waits, int64_t elapsed_us)
{
	struct host_wait *rows = waits->waits.rows;
	size_t told = 0;

	for (size_t i = 0; i < waits->waits.count; i++)
		if (rows[i].causes.count)
			qsort(rows[i].causes.rows, rows[i].causes.count, sizeof(struct host_cause),
			      causes_compare);
	if (waits->waits.count)
		qsort(rows, waits->waits.count, sizeof(*rows), waits_compare);
	while (told < waits->waits.count && is_enough(&rows[told], elapsed_us))
		told++;
	return told;
}

bool host_cause_counts(const struct host_wait *wait, const struct host_cause *cause)
{
	return cause == wait->causes.rows ||
	       ratio(cause->samples, 100, wait->matched) >= SHARE_LEAST;
}

void host_cause_add(struct text *text, const struct host_wait *wait, const struct host_cause *cause,
		    const struct host_join *join)
{
	if (cause->host != wait->server_host)
		text_add_format(text, "waits for %s@%s, which ", cause->last ? cause->last : "?",
				join->hosts[cause->host].name);
	text_add_string(text, cause->does);
}

void host_waits_clear(struct host_waits *waits)
{
	struct host_wait *rows = waits->waits.rows;

	for (size_t i = 0; i < waits->waits.count; i++)
		keyed_done(&rows[i].causes);
	keyed_done(&waits->waits);
}
