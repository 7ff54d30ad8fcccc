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

#define RINGS_BYTES (16u << 20) /* bytes of the rings of all CPUs */
#define RING_LEAST_BYTES (256u << 10)
#define RING_MOST_BYTES (4u << 20)
#define TAKEN_BYTES_MAX (8u << 20) /* bytes of samples that one scan takes */
#define LEAD_LEAST_NS NS_PER_MS
#define LEAD_MOST_NS (10 * NS_PER_MS)
#define LEAD_MOST_SHARE 5   /* lead, at most: the period divided by this */
#define LEAD_LEAST_SHARE 20 /* lead, at least: the period divided by this, or LEAD_LEAST_NS */
/* Switches of a CPU in a window up to which the window may grow. The number is smaller where scans
 * follow each other faster than KEPT_FEW_PERIOD_NS. */
#define KEPT_FEW 32
#define KEPT_FEW_LOST 64 /* KEPT_FEW where threads wait for a CPU for longer than such a window */
#define KEPT_FEW_PERIOD_NS (50 * NS_PER_MS)

/* Side of the scan time on which a thread's stacks were kept. */
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

/* Opens rings of CPUs that came online: the event of a CPU that was offline has ended silently.
 * Returns the first error, or 0. */
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

static void window_set(const struct kept_stacks *stacks, int64_t from_ns, int64_t until_ns)
{
	struct capture_window window = {.from_ns = (__u64)from_ns, .until_ns = (__u64)until_ns};
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
static void lead_adapt(struct kept_stacks *stacks, const struct kept_scan_time *scan_time)
{
	int64_t period_ns = scan_time->period_ns;
	int64_t most_ns = least(period_ns / LEAD_MOST_SHARE, LEAD_MOST_NS);
	int64_t least_ns = least(period_ns / LEAD_LEAST_SHARE, LEAD_LEAST_NS);
	uint64_t seen = stacks->seen_count,
		 few = (scan_time->lost_lately ? KEPT_FEW_LOST : KEPT_FEW) *
		       (uint64_t)scan_time->cpus * (uint64_t)least(period_ns, KEPT_FEW_PERIOD_NS) /
		       KEPT_FEW_PERIOD_NS;
	int64_t lead_ns = kept_stacks_lead_ns(stacks);

	if (stacks->cut_short)
		lead_ns /= 2; /* the number of switches is not known */
	else
		lead_ns = seen <= few ? lead_ns * 3 / 2 : (int64_t)((uint64_t)lead_ns * few / seen);
	lead_ns = least(lead_ns, most_ns);
	stacks->lead_ns = lead_ns > least_ns ? lead_ns : least_ns;
}

void kept_stacks_begin(struct kept_stacks *stacks, int64_t from_ns, int64_t until_ns)
{
	if (!stacks->rings)
		return;
	stacks->window_ns = from_ns;
	stacks->until_ns = until_ns;
	window_set(stacks, from_ns, until_ns);
}

/* Reads thread and time of the sample at that position, from its head only. */
static bool head_read(const struct kept_stacks *stacks, const struct cpu_ring *ring, uint64_t at,
		      size_t bytes, struct kept_stack_id *id, int64_t *time_ns)
{
	struct perf_event_header header;
	struct cpu_sample_head head;
	size_t raw;

	if (bytes < sizeof(head))
		return false;
	cpu_ring_copy(ring, at, &head, sizeof(head));
	memcpy(&header, &head.header, sizeof(header));
	raw = cpu_sample_raw_at(&head, stacks->attr.sample_type);
	if (header.type != PERF_RECORD_SAMPLE || raw > bytes || bytes - raw < sizeof(*id))
		return false;
	cpu_ring_copy(ring, at + raw, id, sizeof(*id));
	*time_ns = (int64_t)head.time;
	return true;
}

/* Notes the sample, unless one of the same thread and side is nearer to the scan time. */
static void found_add(struct kept_taken *taken, const struct kept_found *found, uint32_t tid,
		      int64_t scan_time_ns)
{
	enum side side = found->time_ns > scan_time_ns ? SIDE_AFTER : SIDE_BEFORE;
	struct kept_found *other;
	bool added;
	uint64_t *slot = index_put(&taken->samples, sample_key(tid, side), &added);

	if (added) {
		taken->found = memory_grow(taken->found, &taken->found_capacity,
					   taken->found_count + 1, sizeof(*taken->found));
		*slot = taken->found_count++;
		taken->found[*slot] = *found;
		taken->found_bytes += found->bytes;
		return;
	}
	other = &taken->found[*slot];
	if (side == SIDE_BEFORE ? other->time_ns <= found->time_ns
				: other->time_ns >= found->time_ns) {
		taken->found_bytes += found->bytes - other->bytes;
		*other = *found;
	}
}

static void ring_seek(struct kept_stacks *stacks, int cpu, const struct kept_scan_time *scan_time,
		      struct kept_taken *taken)
{
	const struct cpu_ring *ring = &stacks->rings[cpu];
	uint64_t begin = cpu_ring_begin(ring), at = begin;
	struct kept_stack_id id;

	while (taken->found_bytes < TAKEN_BYTES_MAX) {
		struct kept_found found = {.cpu = cpu, .at = at, .slot = SIZE_MAX};

		found.bytes = cpu_ring_next(ring, begin, &at);
		if (!found.bytes)
			return;
		if (!cpu_ring_kept(ring, at)) {
			stacks->cut_short = true;
			return;
		}
		if (!head_read(stacks, ring, found.at, found.bytes, &id, &found.time_ns))
			continue;
		if (found.time_ns < stacks->window_ns)
			return;
		stacks->seen_count++;
		found.sequence = id.sequence;
		if (!scan_time->short_of_memory ||
		    found.time_ns > scan_time->now_ns - LEAD_LEAST_NS)
			found_add(taken, &found, id.tid, scan_time->now_ns);
	}
}

static void window_end(struct kept_stacks *stacks)
{
	int64_t now_ns = clock_monotonic_ns();

	window_set(stacks, 0, 0);
	stacks->open_ns +=
		(now_ns < stacks->until_ns ? now_ns : stacks->until_ns) - stacks->window_ns;
	stacks->until_ns = stacks->window_ns;
}

void kept_stacks_seek(struct kept_stacks *stacks, const struct kept_scan_time *scan_time,
		      struct kept_taken *taken)
{
	if (!stacks->rings)
		return;
	window_end(stacks);
	index_empty(&taken->samples);
	taken->found_count = taken->found_bytes = taken->used = 0;
	stacks->seen_count = 0;
	stacks->cut_short = false;
	for (int cpu = 0; cpu < stacks->options.cpus_possible; cpu++)
		if (stacks->rings[cpu].event >= 0)
			ring_seek(stacks, cpu, scan_time, taken);
	stacks->kept_count += stacks->seen_count;
	lead_adapt(stacks, scan_time);
}

void kept_stacks_copy(const struct kept_stacks *stacks, struct kept_taken *taken)
{
	if (!stacks->rings)
		return;
	taken->bytes = memory_grow(taken->bytes, &taken->capacity, taken->found_bytes, 1);
	for (size_t i = 0; i < taken->found_count; i++) {
		struct kept_found *found = &taken->found[i];
		const struct cpu_ring *ring = &stacks->rings[found->cpu];

		if (found->bytes > taken->capacity - taken->used)
			return;
		cpu_ring_copy(ring, found->at, taken->bytes + taken->used, found->bytes);
		if (!cpu_ring_kept(ring, found->at + found->bytes))
			continue;
		found->slot = taken->used;
		taken->used += found->bytes;
	}
}

size_t kept_taken_bytes(const struct kept_taken *taken)
{
	return taken->capacity + taken->found_capacity * sizeof(*taken->found);
}

void kept_taken_done(struct kept_taken *taken)
{
	free(taken->found);
	free(taken->bytes);
	index_clear(&taken->samples);
	*taken = (struct kept_taken){0};
}

static const struct kept_found *found_get(const struct kept_taken *taken, uint32_t tid,
					  uint64_t sequence)
{
	for (enum side side = SIDE_BEFORE; side <= SIDE_AFTER; side++) {
		const uint64_t *slot = index_find(&taken->samples, sample_key(tid, side));

		if (slot && taken->found[*slot].sequence == sequence)
			return &taken->found[*slot];
	}
	return NULL;
}

bool kept_stacks_known(const struct kept_taken *taken, uint32_t tid, uint64_t sequence)
{
	return found_get(taken, tid, sequence) != NULL;
}

bool kept_stacks_find(const struct kept_stacks *stacks, const struct kept_taken *taken,
		      uint32_t tid, uint64_t sequence, struct cpu_sample *sample)
{
	const struct kept_found *found = found_get(taken, tid, sequence);

	return found && found->slot != SIZE_MAX &&
	       !cpu_sample_parse(taken->bytes + found->slot, found->bytes, stacks->attr.sample_type,
				 stacks->attr.sample_regs_user, sample);
}

size_t kept_stacks_ring_bytes(const struct kept_stacks *stacks)
{
	size_t bytes = 0;

	for (int cpu = 0; stacks->rings && cpu < stacks->options.cpus_possible; cpu++)
		bytes += cpu_ring_bytes(&stacks->rings[cpu]);
	return bytes;
}
