/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_grow.h"
#include "base/clock.h"
#include "kernel/btf_types.h"
#include "live/scan/live_account.h"
#include "live/live_options.h"
#include "live/threads/live_sample.h"

#include <bcc/libbpf.h>
#include <errno.h>

/* True if few slots are left. The array is not made larger if the user gave its size, or if other
 * samplers use it. */
static bool growth_due(struct live *live)
{
	uint32_t most = live->context.kernel.table.entries_max;

	return !live->context.proc && !live->context.config.max_threads &&
	       !live->context.config.share && !live->context.config.attach && !live->growth.ended &&
	       (live->walk.threads > most - most / 8 ||
		kernel_counters(&live->context.kernel).map_full) &&
	       most < host_threads_limit(&live->context.kernel.host);
}

struct move {
	struct live *live;
	struct kernel *bigger;
};

/* Carries over the totals of a thread that has a new record already. Its totals began when it was
 * made: what the old record counted until then is what both differ by. */
static void totals_move(struct live *live, const struct thread_state *old,
			const struct thread_state *made)
{
	const struct live_scan_time scan_time = {.now_ns = clock_monotonic_ns()};
	struct live_totals before, since;
	struct thread_state completed;
	struct sample sample;
	bool ambiguous;

	/* completed as live_scan does it, so that it is the same thread there */
	old = live_seed_whole(old, &completed);
	if (!old)
		return;
	record_totals(old, &scan_time, record_state(old, &scan_time, &ambiguous), &before);
	record_totals(made, &scan_time, record_state(made, &scan_time, &ambiguous), &since);
	before.cpu_ns -= since.cpu_ns;
	before.runq_ns -= since.runq_ns;
	before.disk_ns -= since.disk_ns;
	before.sleep_ns -= since.sleep_ns;
	before.voluntary_count -= since.voluntary_count;
	before.involuntary_count -= since.involuntary_count;
	record_sample(old, &scan_time, STATE_SLEEP, &sample);
	totals_carry(&live->context.totals, &before, &sample);
}

static void record_move(void *to, const struct thread_state *old)
{
	struct move *move = to;
	struct thread_table *table = &move->bigger->table;
	struct thread_state copy = *old;
	uint32_t key;

	copy.wake.listed_scan = 0; /* scans are counted anew */
	if (thread_table_add(table, &copy) != -EEXIST ||
	    thread_table_key(table, old->sched.tid, &key) || thread_table_get(table, key, &copy))
		return;
	totals_move(move->live, old, &copy);
	if (!thread_table_get(&move->live->context.kernel.table, old->key, &copy))
		thread_table_put_call(table, key, &copy);
}

/* Carries over the connections that have not ended. The programs of both sets run right after each
 * other: once the second map has a connection, the first one must still have it. */
static void connections_carry(int map, int second)
{
	uint64_t socket = 0, next;
	struct connection connection;

	for (; map >= 0 && !bpf_get_next_key(map, &socket, &next); socket = next) {
		if (bpf_lookup_elem(map, &next, &connection))
			continue;
		bpf_update_elem(second, &next, &connection, BPF_NOEXIST);
		if (bpf_lookup_elem(map, &next, &connection))
			bpf_delete_elem(second, &next);
	}
}

/* Carries over the texts by which --probe counts: histograms that are still to be read name them by
 * their keys. */
static void texts_carry(int map, int second)
{
	uint64_t key = 0, next;
	struct probe_text text;

	for (; map >= 0 && !bpf_get_next_key(map, &key, &next); key = next)
		if (!bpf_lookup_elem(map, &next, &text))
			bpf_update_elem(second, &next, &text, BPF_NOEXIST);
}

static int growth_make(struct live *live, struct kernel *bigger, struct error *e)
{
	int64_t limit = host_threads_limit(&live->context.kernel.host);
	struct kernel_options options;
	struct move move = {live, bigger};
	struct block_reader requests = {0};
	int err;

	live_kernel_options(&live->context.config, live->context.wants.filter,
			    live->context.wants.probe_needs, &options);
	options.takes_over = &live->context.kernel.latency;
	options.write_programs = NULL; /* the sandbox may refuse, and those of the start serve */
	options.threads_max = 2 * (int64_t)live->context.kernel.table.entries_max;
	if (options.threads_max < 2 * host_threads_count())
		options.threads_max = 2 * host_threads_count();
	/* records of processes that end wait for the kernel's RCU: there may be many more of them
	 * than of threads, but no more than ids */
	if (options.threads_max > limit)
		options.threads_max = limit;
	err = kernel_open(bigger, &options, e);
	btf_kernel_forget();
	if (err)
		return err;
	block_reader_carry(&requests, live->context.kernel.compiled.maps[KERNEL_MAP_BLOCK],
			   bigger->compiled.maps[KERNEL_MAP_BLOCK],
			   feature_has(&live->context.kernel.features, FEATURE_MAP_BATCH));
	block_reader_done(&requests);
	disk_times_carry(live->context.kernel.compiled.maps[KERNEL_MAP_DISKS],
			 bigger->compiled.maps[KERNEL_MAP_DISKS]);
	connections_carry(live->context.kernel.compiled.maps[KERNEL_MAP_CONNECTIONS],
			  bigger->compiled.maps[KERNEL_MAP_CONNECTIONS]);
	thread_table_forget(
		&live->context.kernel.table); /* registers requested there are of no switch */
	return thread_table_scan(&live->context.kernel.table, record_move, &move);
}

static void counters_keep(struct live *live)
{
	struct probe_counters counters = kernel_counters(&live->context.kernel);

	live->growth.earlier.map_full += counters.map_full;
	live->growth.earlier.latency_full += counters.latency_full;
	live->growth.earlier.block_full += counters.block_full;
	live->growth.earlier.block_unseen += counters.block_unseen;
	live->growth.earlier.probe_unread += counters.probe_unread;
	live->growth.earlier.probe_stacks += counters.probe_stacks;
}

/* Replaces the maps by larger ones, if there can be such. 0, or -EINTR. */
static int maps_grow(struct live *live)
{
	struct error e = {0};
	struct kernel bigger;
	int err;

	/* Forgets stacks, and ends the threads for them before the fork: the child could find a
	 * lock taken by a thread that it does not have. Threads that wait for programs
	 * (maps/latency_reader.h) take none. */
	live_stacks_forget(&live->stacks);
	err = growth_make(live, &bigger, &e);
	error_done(&e);
	if (err) {
		kernel_close(&bigger);
		live->growth.ended = err != -EINTR;
		return err == -EINTR ? err : 0;
	}
	live_accounts_move(&live->accounts, &bigger);
	bigger.table.torn_count += live->context.kernel.table.torn_count;
	bigger.table.unfinished_count += live->context.kernel.table.unfinished_count;
	latency_reader_take_over(&bigger.latency, &live->context.kernel.latency,
				 clock_monotonic_ns());
	probe_detach(&live->context.kernel.links);
	texts_carry(live->context.kernel.compiled.maps[KERNEL_MAP_TEXTS],
		    bigger.compiled.maps[KERNEL_MAP_TEXTS]);
	event_reader_adopt(&bigger.events, &live->context.kernel.events);
	counters_keep(live);
	kernel_close(&live->context.kernel);
	live->context.kernel = bigger;
	live_stacks_move(&live->stacks);
	live->context.seed.unfit_count = 0;
	/* drops what was known by keys and sequence numbers of the old records */
	index_clear(&live->walk.awake);
	index_clear(&live->walk.ambiguous);
	episodes_settle(&live->episodes);
	episodes_clear(&live->episodes);
	lookup_free(live->context.lookup);
	live->context.lookup = live_lookup_new(live);
	/* adds threads that did not fit */
	err = live_seed_all(&live->context.seed, &live->context.kernel, &e);
	error_done(&e);
	live->growth.ended = err != 0;
	return 0;
}

int live_grow(struct live *live)
{
	int err, err_of_thread;

	if (!growth_due(live))
		return 0;
	sampler_pause(live->context.sampler);
	err = maps_grow(live);
	err_of_thread = sampler_resume(live->context.sampler);
	return err ? err : err_of_thread;
}
