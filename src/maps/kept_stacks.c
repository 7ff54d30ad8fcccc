/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/kept_stacks.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/host.h"
#include "kernel/record.h"
#include "kernel/registers.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RINGS_BYTES (16u << 20) /* of all CPUs, */
#define RING_LEAST_BYTES (256u << 10)
#define RING_MOST_BYTES (2u << 20)
#define TAKEN_BYTES_MAX (8u << 20) /* of one scan */
#define LEAD_LEAST_NS NS_PER_MS
#define LEAD_MOST_NS (10 * NS_PER_MS)
#define LEAD_MOST_SHARE 5   /* of a period at most one part in so many, */
#define LEAD_LEAST_SHARE 20 /* and at least, if that is less than LEAD_LEAST_NS */
/* Switches of a CPU in a window: as long as there are no more it may grow. Fewer where scans come
 * faster than this. */
#define KEPT_FEW 32
#define KEPT_FEW_PERIOD_NS (50 * NS_PER_MS)

/* A thread's stacks before a scan's moment, and after it. */
enum side { SIDE_BEFORE, SIDE_AFTER };

static uint64_t sample_key(uint32_t tid, enum side side)
{
	return (uint64_t)tid << 1 | side;
}

static void attr_fill(struct perf_event_attr *attr, const struct kept_stacks_options *options)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = CPU_SAMPLE_TYPE | PERF_SAMPLE_RAW,
		.use_clockid = 1, /* 4.1 */
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1, /* 4.7 */
		.watermark = 1,	     /* nobody is to be woken at a switch */
		.wakeup_watermark = INT32_MAX,
		.exclude_callchain_user = 1,
	};
	if (options->kernel)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (options->user) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = registers_sample_mask;
		attr->sample_stack_user = (uint32_t)options->user_bytes;
	}
}

static size_t ring_bytes(const struct kept_stacks *stacks)
{
	size_t bytes = RINGS_BYTES / (size_t)stacks->options.cpus_possible;

	return bytes < RING_LEAST_BYTES	 ? RING_LEAST_BYTES
	       : bytes > RING_MOST_BYTES ? RING_MOST_BYTES
					 : bytes;
}

static int event_install(const struct kept_stacks *stacks, int cpu)
{
	int event = stacks->rings[cpu].event;

	return bpf_update_elem(stacks->options.events_map, &cpu, &event, BPF_ANY) ? -errno : 0;
}

static int ring_open(struct kept_stacks *stacks, int cpu)
{
	struct cpu_ring *ring = &stacks->rings[cpu];
	int err = cpu_ring_open(ring, &stacks->attr, cpu, ring_bytes(stacks));

	if (!err)
		err = event_install(stacks, cpu);
	if (err)
		cpu_ring_close(ring);
	return err;
}

/* The event of a CPU that was off is gone, without a word. The first error, or 0. */
static int rings_renew(struct kept_stacks *stacks)
{
	int count = stacks->options.cpus_possible, *list = memory_get((size_t)count * sizeof(int));
	bool *online = memory_get((size_t)count * sizeof(*online));
	int err = 0;

	count = host_cpus_online(list, count);
	for (int i = 0; i < count; i++) {
		int cpu = list[i];

		if (cpu >= stacks->options.cpus_possible)
			continue;
		online[cpu] = true;
		if (stacks->online[cpu])
			continue;
		cpu_ring_close(&stacks->rings[cpu]);
		err = err ? err : ring_open(stacks, cpu);
	}
	free(list);
	free(stacks->online);
	stacks->online = online;
	return err;
}

int kept_stacks_open(struct kept_stacks *stacks, const struct kept_stacks_options *options)
{
	size_t cpus = (size_t)options->cpus_possible;
	int err;

	if (options->events_map < 0 || options->window_map < 0)
		return -ENOTSUP;
	stacks->options = *options;
	stacks->rings = memory_get(cpus * sizeof(*stacks->rings));
	stacks->online = memory_get(cpus * sizeof(*stacks->online));
	for (size_t i = 0; i < cpus; i++)
		stacks->rings[i].event = -1;
	attr_fill(&stacks->attr, options);
	err = rings_renew(stacks);
	if (err)
		kept_stacks_close(stacks);
	return err;
}

void kept_stacks_renew(struct kept_stacks *stacks)
{
	int64_t now_ns = clock_monotonic_ns();

	if (!stacks->rings || now_ns - stacks->renewed_ns < NS_PER_SECOND)
		return;
	stacks->renewed_ns = now_ns;
	rings_renew(stacks);
}

void kept_stacks_close(struct kept_stacks *stacks)
{
	for (int cpu = 0; stacks->rings && cpu < stacks->options.cpus_possible; cpu++)
		cpu_ring_close(&stacks->rings[cpu]);
	free(stacks->rings);
	free(stacks->online);
	*stacks = (struct kept_stacks){0};
}

void kept_stacks_move(struct kept_stacks *stacks, int events_map, int window_map)
{
	if (!stacks->rings)
		return;
	stacks->options.events_map = events_map;
	stacks->options.window_map = window_map;
	for (int cpu = 0; cpu < stacks->options.cpus_possible; cpu++)
		if (stacks->rings[cpu].event >= 0)
			event_install(stacks, cpu);
}

static void window_set(const struct kept_stacks *stacks, int64_t until_ns)
{
	struct capture_window window = {.until_ns = (__u64)until_ns};
	uint32_t zero = 0;

	bpf_update_elem(stacks->options.window_map, &zero, &window, BPF_ANY);
}

int64_t kept_stacks_lead_ns(const struct kept_stacks *stacks)
{
	if (!stacks->rings)
		return 0;
	return stacks->lead_ns ? stacks->lead_ns : LEAD_LEAST_NS;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The longer a window, the fewer threads have left their CPUs before it. */
static void lead_adapt(struct kept_stacks *stacks, int cpus, int64_t period_ns)
{
	int64_t most_ns = least(period_ns / LEAD_MOST_SHARE, LEAD_MOST_NS);
	int64_t least_ns = least(period_ns / LEAD_LEAST_SHARE, LEAD_LEAST_NS);
	uint64_t seen = stacks->seen_count, few = KEPT_FEW * (uint64_t)cpus *
						  (uint64_t)least(period_ns, KEPT_FEW_PERIOD_NS) /
						  KEPT_FEW_PERIOD_NS;
	int64_t lead_ns = kept_stacks_lead_ns(stacks);

	if (stacks->cut_short)
		lead_ns /= 2; /* nobody knows how many they were */
	else
		lead_ns = seen <= few ? lead_ns * 3 / 2 : (int64_t)((uint64_t)lead_ns * few / seen);
	lead_ns = least(lead_ns, most_ns);
	stacks->lead_ns = lead_ns > least_ns ? lead_ns : least_ns;
}

void kept_stacks_begin(struct kept_stacks *stacks, int64_t until_ns)
{
	if (!stacks->rings)
		return;
	stacks->window_ns = clock_monotonic_ns();
	stacks->until_ns = until_ns;
	window_set(stacks, until_ns);
}

static bool sample_parse(const struct kept_stacks *stacks, const char *record,
			 struct cpu_sample *sample, struct kept_stack_id *id)
{
	const struct perf_event_header *header = (const struct perf_event_header *)record;

	if (header->type != PERF_RECORD_SAMPLE ||
	    cpu_sample_parse(record, header->size, stacks->attr.sample_type,
			     stacks->attr.sample_regs_user, sample) ||
	    sample->raw_bytes < sizeof(*id))
		return false;
	memcpy(id, sample->raw, sizeof(*id));
	return true;
}

/* Takes the record that lies at the end of the memory, unless the thread has one that is nearer to
 * the moment. */
static void record_keep(const struct kept_stacks *stacks, struct kept_taken *taken,
			const struct cpu_sample *sample, uint32_t tid, int64_t moment_ns,
			size_t bytes)
{
	enum side side = sample->time_ns > moment_ns ? SIDE_AFTER : SIDE_BEFORE;
	struct kept_stack_id id;
	struct cpu_sample other;
	bool added;
	uint64_t *place = index_put(&taken->samples, sample_key(tid, side), &added);

	if (!added && sample_parse(stacks, taken->bytes + *place, &other, &id) &&
	    (side == SIDE_BEFORE ? other.time_ns > sample->time_ns
				 : other.time_ns < sample->time_ns))
		return;
	*place = taken->used;
	taken->used += bytes;
}

static void ring_take(struct kept_stacks *stacks, const struct cpu_ring *ring,
		      const struct kept_moment *moment, struct kept_taken *taken)
{
	uint64_t begin = cpu_ring_begin(ring), at = begin;
	struct kept_stack_id id;
	struct cpu_sample sample;
	size_t bytes;

	while (taken->used < TAKEN_BYTES_MAX) {
		taken->bytes = memory_grow(taken->bytes, &taken->capacity,
					   taken->used + CPU_RECORD_BYTES_MAX, 1);
		bytes = cpu_ring_next(ring, begin, &at, taken->bytes + taken->used);
		if (!bytes)
			return;
		if (!cpu_ring_kept(ring, at)) {
			stacks->cut_short = true;
			return;
		}
		if (!sample_parse(stacks, taken->bytes + taken->used, &sample, &id))
			continue;
		if (sample.time_ns < stacks->window_ns)
			return;
		stacks->seen_count++;
		if (!moment->little_room || sample.time_ns > moment->now_ns - LEAD_LEAST_NS)
			record_keep(stacks, taken, &sample, id.tid, moment->now_ns, bytes);
	}
}

static void window_end(struct kept_stacks *stacks)
{
	int64_t now_ns = clock_monotonic_ns();

	window_set(stacks, 0);
	stacks->open_ns +=
		(now_ns < stacks->until_ns ? now_ns : stacks->until_ns) - stacks->window_ns;
	stacks->until_ns = stacks->window_ns;
}

void kept_stacks_take(struct kept_stacks *stacks, const struct kept_moment *moment,
		      struct kept_taken *taken)
{
	if (!stacks->rings)
		return;
	window_end(stacks);
	index_empty(&taken->samples);
	taken->used = stacks->seen_count = 0;
	stacks->cut_short = false;
	for (int cpu = 0; cpu < stacks->options.cpus_possible; cpu++)
		if (stacks->rings[cpu].event >= 0)
			ring_take(stacks, &stacks->rings[cpu], moment, taken);
	stacks->kept_count += stacks->seen_count;
	lead_adapt(stacks, moment->cpus, moment->period_ns);
}

void kept_taken_done(struct kept_taken *taken)
{
	free(taken->bytes);
	index_clear(&taken->samples);
	*taken = (struct kept_taken){0};
}

bool kept_stacks_find(const struct kept_stacks *stacks, const struct kept_taken *taken,
		      uint32_t tid, uint64_t sequence, struct cpu_sample *sample)
{
	struct kept_stack_id id;
	const uint64_t *place;

	for (enum side side = SIDE_BEFORE; side <= SIDE_AFTER; side++) {
		place = index_find(&taken->samples, sample_key(tid, side));
		if (place && sample_parse(stacks, taken->bytes + *place, sample, &id) &&
		    id.sequence == sequence)
			return true;
	}
	return false;
}

size_t kept_stacks_ring_bytes(const struct kept_stacks *stacks)
{
	size_t bytes = 0;

	for (int cpu = 0; stacks->rings && cpu < stacks->options.cpus_possible; cpu++)
		bytes += cpu_ring_bytes(&stacks->rings[cpu]);
	return bytes;
}
