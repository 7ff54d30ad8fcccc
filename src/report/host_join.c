/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/host_join.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "report/value.h"
#include "sample/edge_kind.h"
#include "sample/wait_rule.h"

#include <stdlib.h>
#include <string.h>

#define HOPS_MAX 16	       /* hosts that a chain goes through */
#define CONNECTIONS_MAX 262144 /* whose process is remembered, for each host */
#define TIMED_MAX 1024	       /* connections whose times are compared */
#define SPANS_MAX 256	       /* of each of their sides */
#define SEVERAL UINT64_MAX     /* threads that serve one connection */
#define NO_HOST SIZE_MAX

/* --- connections */

/* A connection by the text of its column. */
struct join_connection {
	const char *ends; /* 10.0.0.9:40001->10.0.0.5:80, interned; NULL: it does not leave the host
			   */
};

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strncmp(address, "[::1]", 5);
}

static size_t address_length(const char *end, size_t length)
{
	while (length && end[length - 1] != ':')
		length--;
	return length;
}

/* Reads "tcp LOCAL->REMOTE STATE". */
static const char *ends_read(const char *text)
{
	const char *from, *to;
	size_t length;

	if (strncmp(text, "tcp ", 4) != 0)
		return NULL;
	from = text + 4;
	to = strstr(from, "->");
	if (!to)
		return NULL;
	length = (size_t)(to + 2 - from) + strcspn(to + 2, " ");
	if (is_loopback(from) || is_loopback(to + 2) ||
	    (address_length(from, (size_t)(to - from)) ==
		     address_length(to + 2, strcspn(to + 2, " ")) &&
	     !strncmp(from, to + 2, address_length(from, (size_t)(to - from)))))
		return NULL;
	return name_transient(from, length);
}

/* The ends of a connection as its client names them; NULL: none that leaves the host. */
static const char *ends_of(struct host_join *join, const char *text)
{
	struct join_connection *connection;
	bool added;

	if (!text)
		return NULL;
	connection = keyed_put(&join->connections, sizeof(*connection), (uint64_t)(uintptr_t)text,
			       &added);
	if (added)
		connection->ends = ends_read(text);
	return connection->ends;
}

/* The ends of the connection that the thread waits for as a client. */
static const char *waited_for(struct host_join *join, const struct sample *sample)
{
	return sample->now.state == STATE_SLEEP && wait_class_traits(sample->wait.why) &
							   (WAIT_AS_CLIENT | WAIT_FOR_SPACE)
		       ? ends_of(join, sample->file.connection)
		       : NULL;
}

static uint64_t key_of(const char *text)
{
	return (uint64_t)(uintptr_t)text;
}

/* The process that served a connection. */
struct join_server {
	const char *comm;
	int64_t pid;
};

static void server_note(struct joined_host *host, const char *ends, const struct sample *sample)
{
	struct join_server *server = keyed_find(&host->servers, sizeof(*server), key_of(ends));

	if (!server && host->servers.count < CONNECTIONS_MAX)
		server = keyed_put(&host->servers, sizeof(*server), key_of(ends), NULL);
	if (server)
		*server = (struct join_server){sample->thread.comm, sample->thread.pid};
}

/* --- clocks */

struct join_times {
	struct connection_times times;
	size_t client, server; /* NO_HOST: none was seen yet */
	bool doubtful;	       /* it has an end on two hosts */
};

static void side_note(struct join_times *times, size_t *side, size_t host)
{
	times->doubtful |= *side != NO_HOST && *side != host;
	*side = host;
}

static struct join_times *times_of(struct host_join *join, const char *ends)
{
	bool added = false;
	struct join_times *times =
		join->times.count < TIMED_MAX
			? keyed_put(&join->times, sizeof(*times), key_of(ends), &added)
			: keyed_find(&join->times, sizeof(*times), key_of(ends));

	if (added)
		*times = (struct join_times){.client = NO_HOST, .server = NO_HOST};
	return times;
}

void host_join_time(struct host_join *join, size_t host, int64_t time_us,
		    const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct sample *sample = &samples[i];
		const char *client = waited_for(join, sample),
			   *served = ends_of(join, sample->file.serves);
		struct join_times *times;

		if (served)
			server_note(&join->hosts[host], served, sample);
		if (sample->now.state_us == ABSENT)
			continue;
		times = client ? times_of(join, client) : NULL;
		if (times) {
			side_note(times, &times->client, host);
			seen_spans_add(&times->times.waits, time_us - sample->now.state_us, time_us,
				       SPANS_MAX);
		}
		times = served ? times_of(join, served) : NULL;
		if (times) {
			side_note(times, &times->server, host);
			seen_spans_add(&times->times.servings, time_us - sample->now.state_us,
				       time_us, SPANS_MAX);
		}
	}
}

static bool offset_between(const struct host_join *join, size_t client, size_t server,
			   struct clock_offset *offset)
{
	const struct connection_times **connections =
		memory_get((join->times.count + 1) * sizeof(struct connection_times *));
	const struct join_times *times = join->times.rows;
	size_t count = 0;
	bool found;

	for (size_t i = 0; i < join->times.count; i++)
		if (times[i].client == client && times[i].server == server && !times[i].doubtful)
			connections[count++] = &times[i].times;
	found = count && clock_offset_find(connections, count, offset);
	free(connections);
	return found;
}

/* Finds the clock of one more host by one that is known already, by the pair of hosts that has the
 * most to say. False: none. */
static bool clock_find(struct host_join *join)
{
	struct host_clock *clocks = join->clocks, best = {.known = false};
	size_t of = 0;

	for (size_t i = 0; i < join->host_count; i++) {
		for (size_t j = 0; clocks[i].known && j < join->host_count; j++) {
			struct clock_offset there, back;
			bool found;

			if (clocks[j].known)
				continue;
			found = offset_between(join, i, j, &there);
			if (offset_between(join, j, i, &back) &&
			    (!found || back.pairs > there.pairs)) {
				there = (struct clock_offset){-back.us, -back.high_us, -back.low_us,
							      back.pairs};
				found = true;
			}
			if (!found || (best.known && best.offset.pairs >= there.pairs))
				continue;
			best = (struct host_clock){true, i, there, clocks[i].ahead_us + there.us};
			of = j;
		}
	}
	if (best.known)
		clocks[of] = best;
	return best.known;
}

void host_join_find_clocks(struct host_join *join)
{
	struct join_times *times = join->times.rows;

	join->clocks[0].known = true;
	while (clock_find(join))
		;
	for (size_t i = 0; i < join->times.count; i++) {
		seen_spans_done(&times[i].times.waits);
		seen_spans_done(&times[i].times.servings);
	}
	keyed_done(&join->times);
}

/* --- scans */

void host_join_add_host(struct host_join *join, const char *name)
{
	join->hosts[join->host_count++] = (struct joined_host){.name = name};
}

void host_join_add(struct host_join *join, size_t host, int64_t time_us, const struct scan *scan)
{
	struct joined_host *of = &join->hosts[host];
	struct host_scan *added;

	of->scans = memory_grow(of->scans, &of->capacity, of->count + 1, sizeof(*of->scans));
	added = &of->scans[of->count++];
	*added = (struct host_scan){
		.time_us = time_us,
		.weight_us = scan->weight_us,
		.samples = memory_get((scan->count + 1) * sizeof(*added->samples)),
		.count = scan->count,
	};
	for (size_t i = 0; i < scan->count; i++) {
		struct sample *sample = &added->samples[i];
		const char *served;
		uint64_t *slot;
		bool first;

		*sample = scan->samples[i];
		*index_put(&added->by_tid, (uint64_t)sample->thread.tid, NULL) = i + 1;
		served = ends_of(join, sample->file.serves);
		if (!served)
			continue;
		slot = index_put(&added->by_connection, key_of(served), &first);
		*slot = first ? i + 1 : SEVERAL;
		server_note(of, served, sample);
	}
}

static void scan_done(struct host_scan *scan)
{
	free(scan->samples);
	index_clear(&scan->by_tid);
	index_clear(&scan->by_connection);
}

void host_join_forget(struct host_join *join, int64_t before_us)
{
	for (size_t i = 0; i < join->host_count; i++) {
		struct joined_host *host = &join->hosts[i];
		size_t gone = 0;

		while (gone < host->count && host->scans[gone].time_us < before_us)
			scan_done(&host->scans[gone++]);
		host->count -= gone;
		if (gone)
			memmove(host->scans, host->scans + gone,
				host->count * sizeof(*host->scans));
	}
}

/* --- chains */

/* A thread that serves a connection, or else its process. */
struct join_peer {
	size_t host; /* NO_HOST: none, or more than one */
	const struct host_scan *scan;
	const struct sample *sample;	  /* NULL: no thread is known */
	const struct join_server *server; /* NULL: nor is its process */
};

static const struct sample *serving(const struct host_scan *scan, const char *ends)
{
	const uint64_t *slot = index_find(&scan->by_connection, key_of(ends));

	return slot && *slot != SEVERAL ? &scan->samples[*slot - 1] : NULL;
}

/* Finds who served the connection on that host when a thread waited for it from from_us until
 * at_us at least: by the nearest scan, or the one on the other side of that time. */
static bool peer_on(const struct joined_host *host, const char *ends, int64_t from_us,
		    int64_t at_us, struct join_peer *peer)
{
	const struct host_scan *near[2] = {NULL, NULL};
	size_t after = 0;

	while (after < host->count && host->scans[after].time_us <= at_us)
		after++;
	if (after && host->scans[after - 1].time_us >= from_us)
		near[0] = &host->scans[after - 1];
	if (after < host->count)
		near[1] = &host->scans[after];
	if (near[0] && near[1] && near[1]->time_us - at_us < at_us - near[0]->time_us) {
		near[0] = &host->scans[after];
		near[1] = &host->scans[after - 1];
	}
	for (int i = 0; i < 2 && !peer->sample; i++) {
		/* jitter of two scans; farther ones are of another time */
		if (!near[i] || llabs(near[i]->time_us - at_us) > 2 * near[i]->weight_us)
			continue;
		peer->sample = serving(near[i], ends);
		peer->scan = near[i];
	}
	peer->server = keyed_find(&host->servers, sizeof(*peer->server), key_of(ends));
	return peer->sample || peer->server;
}

static struct join_peer peer_find(const struct host_join *join, size_t host, const char *ends,
				  int64_t from_us, int64_t at_us)
{
	struct join_peer found = {.host = NO_HOST};

	for (size_t i = 0; i < join->host_count; i++) {
		struct join_peer peer = {.host = i};

		if (i == host || !peer_on(&join->hosts[i], ends, from_us, at_us, &peer))
			continue;
		if (found.host != NO_HOST)
			return (struct join_peer){.host = NO_HOST};
		found = peer;
	}
	return found;
}

static const char *named_at(const char *name, const char *host)
{
	static struct text text;

	if (!name)
		return NULL;
	text_clear(&text);
	text_add_format(&text, "%s@%s", name, host);
	return name_transient(text_string(&text), text.length);
}

/* Lengthens a chain by what is at another host. */
static void chain_lengthen(struct sample *sample, const char *host, const char *more, bool whole)
{
	static struct text text;

	text_clear(&text);
	text_add_format(&text, "%s %s> %s: %s%s", sample->chain.text, edge_kinds[EDGE_SOCKET].name,
			host, more ? more : "?", whole ? "" : " ...");
	sample->chain.text = name_transient(text_string(&text), text.length);
}

/* The last thread of a sample's chain, as the scan has it; NULL: not known. */
static const struct sample *last_of(const struct host_scan *scan, const struct sample *sample)
{
	const uint64_t *slot;

	if (!sample->chain.text || sample->chain.depth == ABSENT)
		return NULL;
	if (!sample->chain.depth)
		return sample;
	slot = sample->chain.root.tid == ABSENT
		       ? NULL
		       : index_find(&scan->by_tid, (uint64_t)sample->chain.root.tid);
	return slot ? &scan->samples[*slot - 1] : NULL;
}

static void process_append(struct sample *sample, const char *host,
			   const struct join_server *server)
{
	chain_lengthen(sample, host, server->comm, true);
	sample->chain.depth++;
	sample->chain.root = (struct sample_root){.tid = ABSENT, .state = ABSENT};
	sample->chain.root.comm = named_at(server->comm, host);
	sample->chain.root.pid = server->pid;
}

static void path_go_on(struct join_path *path, const struct join_peer *peer)
{
	path->last_host = peer->host;
	path->last_sample = peer->sample;
	path->last = !peer->sample		    ? peer->server->comm
		     : peer->sample->thread.commsum ? peer->sample->thread.commsum
						    : peer->sample->thread.comm;
	if (!path->server) {
		path->server_host = path->last_host;
		path->server = path->last;
	}
}

static enum join_end chain_go_on(struct host_join *join, size_t host, const struct host_scan *scan,
				 struct sample *sample, int hops, struct join_path *path)
{
	const struct sample *last = last_of(scan, sample);
	const char *ends = last ? waited_for(join, last) : NULL;
	struct join_peer peer;
	struct sample there;

	path->leaves |= ends != NULL;
	sample->chain.root.comm = named_at(sample->chain.root.comm, join->hosts[host].name);
	if (!ends || !hops)
		return JOIN_NOWHERE;
	peer = peer_find(join, host, ends,
			 last->now.state_us == ABSENT ? scan->time_us
						      : scan->time_us - last->now.state_us,
			 scan->time_us);
	if (peer.host == NO_HOST)
		return JOIN_NOWHERE;
	path_go_on(path, &peer);
	if (!peer.sample) {
		process_append(sample, join->hosts[peer.host].name, peer.server);
		return JOIN_PROCESS;
	}
	there = *peer.sample;
	chain_go_on(join, peer.host, peer.scan, &there, hops - 1, path);
	chain_lengthen(sample, join->hosts[peer.host].name,
		       there.chain.text ? there.chain.text : there.thread.comm,
		       there.chain.text != NULL);
	sample->chain.depth += 1 + (there.chain.depth == ABSENT ? 0 : there.chain.depth);
	sample->chain.root = there.chain.root;
	return JOIN_THREAD;
}

void host_join_fill(struct host_join *join, size_t host, const struct host_scan *scan,
		    struct sample *sample, struct join_path *path)
{
	*path = (struct join_path){0};
	path->end = chain_go_on(join, host, scan, sample, HOPS_MAX, path);
	if (path->leaves)
		join->ends[path->end] += sample_scans(sample);
}

void host_join_name(const struct host_join *join, size_t host, struct sample *sample)
{
	const char *name = join->hosts[host].name;

	sample->thread.comm = named_at(sample->thread.comm, name);
	sample->thread.commsum = named_at(sample->thread.commsum, name);
	sample->blocker.oncpu_comm = named_at(sample->blocker.oncpu_comm, name);
}

void host_join_done(struct host_join *join)
{
	host_join_forget(join, INT64_MAX);
	for (size_t i = 0; i < join->host_count; i++) {
		free(join->hosts[i].scans);
		keyed_done(&join->hosts[i].servers);
	}
	keyed_done(&join->connections);
}
