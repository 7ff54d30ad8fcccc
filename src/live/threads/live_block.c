/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_block.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/text.h"
#include "proc/devices.h"

#include <stdlib.h>
#include <string.h>

#define OTHERS_MAX 3 /* processes that a sample names */

/* A process that has requests in flight at a device. */
struct block_user {
	uint32_t dev, tgid;
	size_t count;
	const char *comm; /* name of its thread that was counted last; in the flights */
};

static const char *const op_names[] = {
	[BLOCK_READ] = "read",	     [BLOCK_WRITE] = "write", [BLOCK_FLUSH] = "flush",
	[BLOCK_DISCARD] = "discard", [BLOCK_ERASE] = "erase", [BLOCK_ZEROES] = "zeroes",
};

const char *block_op_name(uint32_t op)
{
	const char *name = "other";

	if (op < sizeof(op_names) / sizeof(op_names[0]) && op_names[op])
		name = op_names[op];
	else if (op >= BLOCK_COMMAND_FROM && op <= BLOCK_COMMAND_TO)
		name = "command";
	return name_of_string(name);
}

/* Returns when a request was made, or when it was issued if no probe saw it made. */
static int64_t made_ns(const struct block_request *request)
{
	return (int64_t)(request->queue_ns ? request->queue_ns : request->issue_ns);
}

static void user_count(struct live_block *block, const struct block_request *request)
{
	uint64_t key = (uint64_t)request->dev << 32 | request->tgid;
	struct block_user *user = keyed_put(&block->users, sizeof(*user), key, NULL);

	user->dev = request->dev;
	user->tgid = request->tgid;
	user->count++;
	user->comm = request->comm;
}

/* Orders rows by device, and each device's by count, most first. */
static int users_compare(const void *a, const void *b)
{
	const struct block_user *x = a, *y = b;

	if (x->dev != y->dev)
		return (x->dev > y->dev) - (x->dev < y->dev);
	if (x->count != y->count)
		return (x->count < y->count) - (x->count > y->count);
	return (x->tgid > y->tgid) - (x->tgid < y->tgid);
}

static void flights_read(struct live_block *block, const struct block_flights *flights,
			 int64_t now_ns)
{
	block->of_ns = now_ns;
	index_clear(&block->oldest);
	keyed_empty(&block->users);
	for (size_t i = 0; i < flights->count; i++) {
		const struct block_flight *flight = &flights->items[i];
		uint64_t *oldest;

		if (!flight->key.request && flight->key.dev)
			continue; /* a note of the thread that last requested a flush */
		/* the copy takes time: a request made after the scan time was not there */
		if (made_ns(&flight->request) > now_ns)
			continue;
		user_count(block, &flight->request);
		oldest = index_put(&block->oldest, flight->request.tid, NULL);
		if (!*oldest ||
		    made_ns(&flight->request) < made_ns(&flights->items[*oldest - 1].request))
			*oldest = i + 1;
	}
	if (block->users.count)
		qsort(block->users.rows, block->users.count, sizeof(struct block_user),
		      users_compare);
}

static int names_compare(const void *a, const void *b)
{
	return strncmp(*(const char *const *)a, *(const char *const *)b, THREAD_COMM_SIZE);
}

/* Names other processes with requests at the device, "kworker/u8:1, postgres". NULL: there are
 * none. Sorted by name, as the order by number of requests changes. */
static const char *others_of(const struct live_block *block, const struct block_request *request)
{
	static struct text text;
	const struct block_user *users = block->users.rows;
	const char *names[OTHERS_MAX];
	size_t count = 0, at = 0;

	while (at < block->users.count && users[at].dev != request->dev)
		at++;
	for (; at < block->users.count && users[at].dev == request->dev && count < OTHERS_MAX;
	     at++) {
		size_t same = 0;

		while (same < count && names_compare(&names[same], &users[at].comm))
			same++;
		if (users[at].tgid != request->tgid && same == count)
			names[count++] = users[at].comm;
	}
	if (!count)
		return NULL;
	qsort(names, count, sizeof(*names), names_compare);
	text_clear(&text);
	for (size_t i = 0; i < count; i++) {
		text_add_string(&text, i ? ", " : "");
		text_add(&text, names[i], strnlen(names[i], THREAD_COMM_SIZE));
	}
	return name_transient(text_string(&text), text.length);
}

void live_block_fill(struct live_block *block, const struct block_flights *flights,
		     const struct thread_state *record, int64_t now_ns, struct sample *sample)
{
	const struct block_request *request;
	const uint64_t *oldest;

	if (block->of_ns != now_ns)
		flights_read(block, flights, now_ns);
	oldest = index_find(&block->oldest, record->sched.tid);
	if (!record->sched.tid || !oldest)
		return;
	request = &flights->items[*oldest - 1].request;
	if (request->tgid != record->identity.tgid)
		return;
	sample->io.dev = device_name(request->dev);
	sample->io.op = block_op_name(request->op);
	sample->io.bytes = request->bytes;
	sample->io.us = (now_ns - made_ns(request)) / NS_PER_US;
	sample->io.others = others_of(block, request);
}

void live_block_done(struct live_block *block)
{
	index_clear(&block->oldest);
	keyed_done(&block->users);
}
