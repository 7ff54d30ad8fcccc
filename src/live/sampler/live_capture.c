/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/live_capture.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/registers.h"
#include "parser/parser.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_STEP 32 /* records between two looks at the budget */
#define LOST_LATELY_NS NS_PER_SECOND
#define REPLACED_STILL_NS (NS_PER_SECOND / 5)

void live_capture_done(struct live_capture *capture)
{
	free(capture->threads);
	free(capture->gone);
	free(capture->ticks);
	free(capture->offline);
	free(capture->irqs);
	free(capture->memory);
	block_flights_done(&capture->block);
	cpu_samples_done(&capture->looked);
	kept_taken_done(&capture->kept);
	stack_copies_done(&capture->copies);
	*capture = (struct live_capture){0};
}

size_t live_capture_bytes(const struct live_capture *capture)
{
	return capture->capacity * sizeof(struct captured) +
	       capture->block.capacity * sizeof(*capture->block.items) +
	       capture->looked.capacity * sizeof(*capture->looked.copies) +
	       kept_taken_bytes(&capture->kept) + stack_copies_bytes(&capture->copies);
}

/* Returns the thread's own id as /proc shows it: "4711/task/4712". */
static uint32_t own_tid(void)
{
	char link[64] = "", *tid;
	ssize_t length = readlink("/proc/thread-self", link, sizeof(link) - 1);

	tid = length > 0 ? strrchr(link, '/') : NULL;
	return tid ? (uint32_t)strtoul(tid + 1, NULL, 10) : 0;
}

/* True if a walk over /proc makes no record of the thread. */
static bool proc_passes(void *to, int64_t pid, int64_t tid)
{
	const struct capture_wants *wants = &((struct capturer *)to)->wants;

	return pid == wants->own_pid || pid == wants->keeper_pid || parsers_have((uint32_t)pid) ||
	       (!wants->refused && !wants->blockers && filter_looks_at_ids(wants->filter) &&
		filter_excludes(wants->filter, (uint32_t)pid, (uint32_t)tid));
}

static void awake_add(void *to, uint32_t key)
{
	index_put(&((struct capturer *)to)->awake, key, NULL);
}

static void step_limit(void *to)
{
	realtime_limit(((struct capturer *)to)->realtime);
}

static int proc_walk(struct capturer *capturer, int64_t now_ns)
{
	const struct proc_visitor visitor = {proc_passes, awake_add, step_limit, capturer};

	return proc_records_walk(capturer->wants.proc, now_ns, &visitor);
}

void capturer_init(struct capturer *capturer, const struct capture_wants *wants,
		   struct realtime *realtime, pthread_mutex_t *requesting)
{
	*capturer = (struct capturer){
		.wants = *wants,
		.wanted_cpus = memory_get((size_t)wants->kernel->host.cpus_possible),
		.seen = memory_get((size_t)wants->kernel->host.cpus_possible *
				   sizeof(*capturer->seen)),
		.realtime = realtime,
		.requesting = requesting,
		.whole = true,
		.own_tid = own_tid(),
		.online = host_online_open(),
	};
	thread_table_view(&capturer->table, &wants->kernel->table);
	if (!wants->proc)
		return;
	/* the first scan has what threads do from now on */
	wants->proc->table = &capturer->table;
	proc_walk(capturer, clock_monotonic_ns());
}

void capturer_done(struct capturer *capturer)
{
	thread_table_view_done(&capturer->table);
	index_clear(&capturer->awake);
	index_clear(&capturer->copied);
	index_clear(&capturer->moved);
	block_reader_done(&capturer->block);
	free(capturer->wanted_cpus);
	free(capturer->seen);
	if (capturer->online >= 0)
		close(capturer->online);
	*capturer = (struct capturer){0};
}

static bool is_own(struct capturer *capturer, const struct thread_state *record)
{
	uint32_t pid = record->identity.tgid;

	if (!pid || (pid != capturer->wants.own_pid && pid != capturer->wants.keeper_pid &&
		     !parsers_have(pid)))
		return false;
	if (record->identity.tid == capturer->own_tid) {
		capturer->own_key = record->key;
		capturer->own_key_known = true;
	}
	return true;
}

static bool refuses(const struct capturer *capturer, const struct thread_state *record)
{
	const struct capture_wants *wants = &capturer->wants;

	return !wants->refused && filter_looks_at_ids(wants->filter) &&
	       record->identity.known & IDENTITY_NAME &&
	       filter_excludes(wants->filter, record->identity.tgid, record->identity.tid) &&
	       !(wants->blockers && !record_settled(record));
}

static void limit_now_and_then(struct capturer *capturer, uint64_t count)
{
	if (count % LIMIT_STEP == 0)
		realtime_limit(capturer->realtime);
}

/* True if a look found another thread on the CPU after this one had come there: the kernel hid from
 * programs that it left. It may have come back just as unseen, so the result does not hold for
 * long. But a look takes an interrupt, and where the CPU is idle, a wait until that wakes. */
static bool was_replaced(const struct capturer *capturer, const struct thread_state *record,
			 const struct cpu_seen *seen)
{
	return record_replaced(record, seen->seen_ns, seen->tid) &&
	       capturer->capture->scan_time.now_ns - (int64_t)seen->seen_ns < REPLACED_STILL_NS;
}

static void cpu_want(struct capturer *capturer, const struct thread_state *record)
{
	uint32_t cpu = record->sched.cpu;

	if (record->sched.on_cpu && cpu < (uint32_t)capturer->wants.kernel->host.cpus_possible &&
	    !was_replaced(capturer, record, &capturer->seen[cpu]))
		capturer->wanted_cpus[cpu] = 1;
}

static void record_copy(void *to, const struct thread_state *record)
{
	struct capturer *capturer = to;
	struct live_capture *capture = capturer->capture;
	struct captured *copy;

	if (is_own(capturer, record) || refuses(capturer, record))
		return;
	capture->threads = memory_grow(capture->threads, &capture->capacity, capture->count + 1,
				       sizeof(*capture->threads));
	copy = &capture->threads[capture->count++];
	copy->record = *record;
	held_read(&capturer->wants.kernel->held, record, capturer->tick_ns, &copy->held);
	copy->switched = copy->moved = copy->requested = false;
	if (!capturer->looked)
		cpu_want(capturer, record);
	limit_now_and_then(capturer, capture->count);
}

static bool unlisted_passes(void *to, const struct thread_state *record, uint32_t key)
{
	struct capturer *capturer = to;

	limit_now_and_then(capturer, ++capturer->capture->passed);
	return record_settled(record) || index_find(&capturer->awake, key);
}

static void unlisted_copy(void *to, const struct thread_state *record)
{
	awake_add(to, record->key);
	record_copy(to, record);
}

/* Finds the threads that are not settled: the changed list has lost entries, and any of these
 * threads may have been in one. */
static void unlisted_find(struct capturer *capturer)
{
	const struct thread_visitor visitor = {unlisted_passes, unlisted_copy, capturer};
	bool end;

	thread_table_rewind(&capturer->table);
	thread_table_walk(&capturer->table, &visitor, UINT32_MAX, &end);
}

static void gone_add(struct live_capture *capture, uint32_t key)
{
	capture->gone = memory_grow(capture->gone, &capture->gone_capacity, capture->gone_count + 1,
				    sizeof(*capture->gone));
	capture->gone[capture->gone_count++] = key;
}

/* Reads what the looks read in the memory of threads. */
static void memory_take(struct capturer *capturer)
{
	struct live_capture *capture = capturer->capture;
	struct kernel *kernel = capturer->wants.kernel;

	if (!capture->memory)
		capture->memory =
			memory_get((size_t)kernel->host.cpus_possible * sizeof(*capture->memory));
	if (!kernel_memory_read(kernel, capture->memory))
		memset(capture->memory, 0,
		       (size_t)kernel->host.cpus_possible * sizeof(*capture->memory));
}

/* Looks at the wanted CPUs: a thread that is on one is looked at there. */
static void cpus_look(struct capturer *capturer)
{
	struct live_capture *capture = capturer->capture;

	cpu_sampler_look(capturer->wants.cpu_stacks, capturer->wanted_cpus);
	capture->scan_time.tick_count =
		kernel_ticks_read(capturer->wants.kernel, capturer->wanted_cpus, capture->ticks);
	if (capturer->wants.memory)
		memory_take(capturer);
	for (int cpu = 0; cpu < capture->scan_time.tick_count; cpu++)
		capturer->seen[cpu] =
			(struct cpu_seen){capture->ticks[cpu].tick_ns, capture->ticks[cpu].tid};
	capturer->looked = true;
}

/* Looks at CPUs before records are copied, where records can be read without a copy. The sooner the
 * look, the fewer threads have left their CPUs, and are reported by what they did then. */
static void cpus_look_early(struct capturer *capturer)
{
	uint64_t key, value;

	for (size_t at = 0; index_next(&capturer->awake, &at, &key, &value);) {
		const struct thread_state *record =
			thread_table_mapped(&capturer->table, (uint32_t)key);

		if (record && !is_own(capturer, record) && !refuses(capturer, record))
			cpu_want(capturer, record);
	}
	cpus_look(capturer);
}

/* Adds the keys of records that have changed since the last scan. False: some may be missing. */
static bool changed_add(struct capturer *capturer)
{
	if (capturer->wants.proc)
		return !proc_walk(capturer, capturer->capture->scan_time.now_ns);
	return changed_reader_take(&capturer->wants.kernel->changed, awake_add, capturer);
}

static void awake_copy(struct capturer *capturer)
{
	const struct thread_visitor visitor = {NULL, record_copy, capturer};
	struct live_capture *capture = capturer->capture;
	uint64_t key, value;

	capture->count = capture->gone_count = 0;
	capture->listed = changed_add(capturer);
	capture->whole = capturer->wants.all && (capturer->whole || !capture->listed);
	capturer->whole = capturer->looked = false;
	if (capture->listed && capturer->table.mapped)
		cpus_look_early(capturer);
	for (size_t at = 0; index_next(&capturer->awake, &at, &key, &value);) {
		size_t count = capture->count;

		thread_table_visit(&capturer->table, (uint32_t)key, &visitor);
		if (capture->count == count)
			gone_add(capture, (uint32_t)key);
	}
	if (!capture->listed)
		unlisted_find(capturer);
}

/* Reads when this thread was woken for the scan, and when it came on its CPU: the thread that it
 * displaced left at that very time. */
static void own_times_read(struct capturer *capturer, int64_t tick_ns)
{
	struct live_scan_time *scan_time = &capturer->capture->scan_time;
	struct thread_state own;

	if (!capturer->own_key_known ||
	    thread_table_get(&capturer->table, capturer->own_key, &own) ||
	    own.identity.tid != capturer->own_tid)
		return;
	scan_time->own_in_ns = (int64_t)own.sched.in_ns;
	if ((int64_t)own.wake.wake_ns >= tick_ns)
		scan_time->own_wake_ns = (int64_t)own.wake.wake_ns;
	scan_time->own_cpu = own.sched.cpu;
}

static void offline_read(struct capturer *capturer)
{
	const int cpus = capturer->wants.kernel->host.cpus_possible;
	struct live_capture *capture = capturer->capture;

	if (!host_cpus_offline(capturer->online, capture->offline, cpus))
		return;
	capture->scan_time.offline = capture->offline;
	capture->scan_time.offline_count = (uint32_t)cpus;
}

/* Makes the records what they were at the scan time, as they have a thread's last switches only.
 * Where that can't be done, the scan time is when they were read. */
static void scan_time_take(struct capturer *capturer, int64_t tick_ns)
{
	struct live_capture *capture = capturer->capture;

	if (!scan_time_end(&capturer->wants.kernel->scan_time, &capturer->moved)) {
		capturer->moved_count += capturer->wants.kernel->scan_time.rings != NULL;
		/* without rings they are not of the tick, but of now */
		if (capture->irqs && capturer->wants.kernel->scan_time.rings)
			memset(capture->irqs, 0,
			       (size_t)capturer->wants.kernel->host.cpus_possible *
				       sizeof(*capture->irqs));
		return;
	}
	capture->scan_time.now_ns = tick_ns;
	for (size_t i = 0; i < capture->count; i++) {
		struct captured *copy = &capture->threads[i];
		const struct thread_sched *sched = &copy->record.sched;
		const struct scan_time_row *row;
		uint64_t *slot;

		if ((int64_t)(sched->on_cpu ? sched->in_ns : sched->out_ns) < tick_ns)
			continue;
		copy->moved = true;
		slot = index_find(&capturer->moved, copy->record.key);
		row = slot ? (const struct scan_time_row *)(uintptr_t)*slot : NULL;
		if (row && row->sched.tid == sched->tid)
			scan_time_restore(row, &copy->record);
	}
}

/* Checks when system calls began: when the record says so, unless the thread has begun another one
 * since. */
static void calls_check(struct capturer *capturer)
{
	struct live_capture *capture = capturer->capture;

	for (size_t i = 0; i < capture->count; i++) {
		struct captured *copy = &capture->threads[i];
		struct thread_state again = {0};

		if (!copy->record.sched.on_cpu)
			continue;
		thread_table_get(&capturer->table, copy->record.key,
				 &again); /* zeroes: it is gone */
		copy->switched = again.sched.sequence_done != copy->record.sched.sequence_done;
		if (copy->record.call_ns)
			record_call_check(&copy->record, &again);
	}
	realtime_limit(capturer->realtime);
}

static bool registers_due(const struct capturer *capturer, const struct thread_state *record)
{
	const struct capture_wants *wants = &capturer->wants;
	bool ambiguous;

	return record->identity.known & IDENTITY_NAME &&
	       registers_lacking(&wants->kernel->requester, record) && !record_is_kthread(record) &&
	       filter_wants_state(wants->filter,
				  record_state(record, &capturer->capture->scan_time, &ambiguous));
}

static void registers_fill_some(struct capturer *capturer, struct thread_state *const *records,
				uint32_t count)
{
	const struct capture_wants *wants = &capturer->wants;

	pthread_mutex_lock(capturer->requesting);
	registers_fill(&wants->kernel->requester, &capturer->table, records, count);
	pthread_mutex_unlock(capturer->requesting);
	realtime_limit(capturer->realtime);
}

/* Requests the registers of the copies from that index on. */
static void registers_request(struct capturer *capturer, size_t from)
{
	struct live_capture *capture = capturer->capture;
	struct thread_state *records[REQUESTS_MAX];
	uint32_t count = 0;

	for (size_t i = from; capturer->wants.registers && i < capture->count; i++) {
		struct captured *copy = &capture->threads[i];

		copy->requested = registers_due(capturer, &copy->record);
		if (!copy->requested)
			continue;
		records[count++] = &copy->record;
		if (count < REQUESTS_MAX)
			continue;
		registers_fill_some(capturer, records, count);
		count = 0;
	}
	if (count)
		registers_fill_some(capturer, records, count);
}

static bool asleep_passes(void *to, const struct thread_state *record, uint32_t key)
{
	struct capturer *capturer = to;

	limit_now_and_then(capturer, ++capturer->capture->passed);
	return index_find(&capturer->awake, key) || refuses(capturer, record);
}

/* Copies the threads that have slept all the time. */
static void asleep_copy(struct capturer *capturer)
{
	const struct thread_visitor visitor = {asleep_passes, record_copy, capturer};
	size_t from = capturer->capture->count;
	bool end;

	thread_table_rewind(&capturer->table);
	thread_table_walk(&capturer->table, &visitor, UINT32_MAX, &end);
	registers_request(capturer, from);
}

/* Has the next scan copy the threads again that may change without a wake-up. */
static void awake_turn_over(struct capturer *capturer)
{
	const struct live_capture *capture = capturer->capture;
	struct index copied = capturer->awake;

	capturer->awake = capturer->copied;
	capturer->copied = copied;
	index_empty(&capturer->awake);
	for (size_t i = 0; i < capture->count; i++)
		if (capture->threads[i].moved || !record_settled(&capture->threads[i].record))
			index_put(&capturer->awake, capture->threads[i].record.key, NULL);
}

/* Copies requests in flight, right after the records: a request that ends wakes the thread that
 * waits for it. */
static void block_take(struct capturer *capturer)
{
	struct kernel *kernel = capturer->wants.kernel;
	struct live_capture *capture = capturer->capture;

	capture->block.count = 0;
	if (capturer->wants.block &&
	    !block_reader_read(&capturer->block, kernel->compiled.maps[KERNEL_MAP_BLOCK],
			       capturer->wants.block_batch))
		block_flights_take(&capture->block, &capturer->block);
}

/* Notes what interrupts the CPUs handled at the scan time, before more come than are kept. */
static void irqs_take(struct capturer *capturer, int64_t tick_ns)
{
	const struct kernel *kernel = capturer->wants.kernel;
	struct live_capture *capture = capturer->capture;

	if (!capturer->wants.irqs)
		return;
	if (!capture->irqs)
		capture->irqs =
			memory_get((size_t)kernel->host.cpus_possible * sizeof(*capture->irqs));
	irqs_read(kernel->compiled.maps[KERNEL_MAP_IRQS], kernel->host.cpus_possible,
		  kernel->scan_time.rings ? tick_ns : capture->scan_time.now_ns, capture->irqs);
}

/* Copies stacks: first those that may change at any time, as kept ones stay. */
static void stacks_take(struct capturer *capturer, bool has_capacity)
{
	const struct capture_wants *wants = &capturer->wants;
	struct live_capture *capture = capturer->capture;
	const struct kept_scan_time scan_time = {
		.now_ns = capture->scan_time.now_ns,
		.short_of_memory = !has_capacity,
		.lost_lately =
			capture->scan_time.now_ns - capturer->stacks_lost_ns < LOST_LATELY_NS,
		.cpus = wants->kernel->host.cpus,
		.period_ns = wants->period_ns};

	stack_copies_empty(&capture->copies);
	kept_stacks_seek(wants->kept, &scan_time, &capture->kept);
	if (wants->stacks_copy && has_capacity) {
		pthread_mutex_lock(capturer->requesting);
		if (wants->stacks_copy(wants->stacks_copier, &capturer->table, wants->filter,
				       capture))
			capturer->stacks_lost_ns = scan_time.now_ns;
		pthread_mutex_unlock(capturer->requesting);
	}
	kept_stacks_copy(wants->kept, &capture->kept);
	cpu_sampler_take(wants->cpu_stacks, capturer->wanted_cpus, &capture->looked);
}

void capture_take(struct capturer *capturer, struct live_capture *capture, int64_t tick_ns,
		  bool stacks)
{
	const struct compile_result *compiled = &capturer->wants.kernel->compiled;

	capturer->capture = capture;
	capturer->tick_ns = tick_ns;
	capture->scan_time = (struct live_scan_time){
		.now_ns = clock_monotonic_ns(),
		.ticks = capture->ticks,
		.registers_known = compiled->stack_registers != 0,
		.registers_marked = compiled->registers_kept & REGISTERS_MARKED,
		.of_proc = capturer->wants.proc,
	};
	irqs_take(capturer, tick_ns);
	awake_copy(capturer);
	block_take(capturer);
	own_times_read(capturer, tick_ns);
	offline_read(capturer);
	if (!capturer->looked)
		cpus_look(capturer);
	calls_check(capturer);
	scan_time_take(capturer, tick_ns);
	registers_request(capturer, 0);
	stacks_take(capturer, stacks);
	memset(capturer->wanted_cpus, 0, (size_t)capturer->wants.kernel->host.cpus_possible);
	realtime_limit(capturer->realtime);
	capture->time_us = clock_utc_of_us(capture->scan_time.now_ns);
	if (capture->whole)
		asleep_copy(capturer);
	awake_turn_over(capturer);
}
