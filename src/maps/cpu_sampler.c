/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/cpu_sampler.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/host.h"
#include "kernel/registers.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SILENT_MAX 3	  /* silent looks: the CPU was off, which ended its event \ */
#define RECORD_BYTES 4096 /* bytes of a sample without the stack: a chain of some 130 words */
#define RECORDS 2	  /* records of that size, with a stack each, that a ring holds */
#define TIMER_NS 10000	  /* shortest period of a perf clock */
#define TIMER_SLEEP_NS (20 * NS_PER_US)

/* Loads a program that calls bpf_perf_event_output(context, events, this CPU, 8 bytes that nobody
 * reads): the event's attributes decide what the sample has. */
static int program_load(int events)
{
	const struct bpf_insn program[] = {
		BPF_STORE_IMM_(BPF_REG_10, -8, 0),
		BPF_MAP_(BPF_REG_2, events),
		BPF_OP_(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, (int)BPF_F_CURRENT_CPU),
		BPF_STACK_(BPF_REG_4, -8),
		BPF_SET_(BPF_REG_5, 8),
		BPF_CALL_(BPF_FUNC_perf_event_output),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, program,
			     sizeof(program) / sizeof(program[0]));
}

static void attr_fill(struct perf_event_attr *attr, const struct cpu_sampler_options *options)
{
	bool program = options->way == SAMPLE_BY_PROGRAM;

	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = program ? PERF_COUNT_SW_BPF_OUTPUT : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = program ? 1 : TIMER_NS,
		.sample_type = CPU_SAMPLE_TYPE,
		.disabled = !program,
		.use_clockid = 1, /* 4.1 */
		.clockid = CLOCK_MONOTONIC,
		.exclude_callchain_kernel = !options->kernel,
		.exclude_callchain_user = !options->user || !options->frame_pointers,
	};
	if (!attr->exclude_callchain_kernel || !attr->exclude_callchain_user)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (options->user && !options->frame_pointers) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = registers_sample_mask;
		attr->sample_stack_user = (uint32_t)options->stack_bytes;
	}
}

static int ring_open(struct cpu_sampler *sampler, int cpu)
{
	struct cpu_ring *ring = &sampler->rings[cpu].ring;
	int err = cpu_ring_open(ring, &sampler->attr, cpu,
				RECORDS * ((size_t)RECORD_BYTES + sampler->attr.sample_stack_user));

	sampler->rings[cpu].silent_count = 0;
	if (!err && sampler->events >= 0 &&
	    bpf_update_elem(sampler->events, &cpu, &ring->event, BPF_ANY)) {
		err = -errno;
		cpu_ring_close(ring);
	}
	return err;
}

static int way_open(struct cpu_sampler *sampler)
{
	size_t cpus = (size_t)sampler->options.cpus_possible;

	sampler->events = sampler->options.events_map;
	if (sampler->options.way != SAMPLE_BY_PROGRAM || sampler->events >= 0)
		return 0;
	sampler->events =
		bpf_call_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(int), sizeof(int), cpus);
	if (sampler->events < 0)
		return sampler->events;
	sampler->program = program_load(sampler->events);
	return sampler->program < 0 ? sampler->program : 0;
}

int cpu_sampler_open(struct cpu_sampler *sampler, const struct cpu_sampler_options *options)
{
	int cpu = 0, err;

	sampler->options = *options;
	sampler->program = sampler->events = -1;
	sampler->rings = memory_get((size_t)options->cpus_possible * sizeof(*sampler->rings));
	for (int i = 0; i < options->cpus_possible; i++)
		sampler->rings[i].ring.event = -1;
	attr_fill(&sampler->attr, options);
	host_cpus_online(&cpu, 1);
	err = way_open(sampler);
	if (!err) /* other rings are opened when they are wanted */
		err = ring_open(sampler, cpu);
	if (err)
		cpu_sampler_close(sampler);
	return err;
}

void cpu_sampler_close(struct cpu_sampler *sampler)
{
	if (!sampler->rings)
		return;
	for (int cpu = 0; cpu < sampler->options.cpus_possible; cpu++)
		cpu_ring_close(&sampler->rings[cpu].ring);
	free(sampler->rings);
	sampler->rings = NULL;
	if (sampler->program >= 0)
		close(sampler->program);
	if (sampler->events >= 0 && sampler->options.events_map < 0)
		close(sampler->events);
}

void cpu_sampler_move(struct cpu_sampler *sampler, int events_map)
{
	if (!sampler->rings || sampler->options.events_map < 0)
		return;
	sampler->options.events_map = sampler->events = events_map;
	for (int cpu = 0; cpu < sampler->options.cpus_possible; cpu++)
		if (sampler->rings[cpu].ring.event >= 0)
			bpf_update_elem(events_map, &cpu, &sampler->rings[cpu].ring.event, BPF_ANY);
}

/* Reopens the event of a CPU that was offline, which ended it silently, and opens that of a CPU
 * that came online. */
static bool ring_ready(struct cpu_sampler *sampler, int cpu)
{
	struct cpu_sampler_ring *ring = &sampler->rings[cpu];

	if (ring->silent_count >= SILENT_MAX)
		cpu_ring_close(&ring->ring);
	return ring->ring.event >= 0 || !ring_open(sampler, cpu);
}

void cpu_sampler_look(struct cpu_sampler *sampler, const unsigned char *wanted)
{
	sampler->look_ns = sampler->rings ? clock_monotonic_ns() : 0;
	for (int cpu = 0; sampler->rings && cpu < sampler->options.cpus_possible; cpu++) {
		struct cpu_ring *ring = &sampler->rings[cpu].ring;

		if (!wanted[cpu] || !ring_ready(sampler, cpu))
			continue;
		cpu_ring_clear(ring);
		if (sampler->options.way == SAMPLE_BY_TIMER)
			ioctl(ring->event, PERF_EVENT_IOC_REFRESH, 1);
		else if (sampler->program >= 0)
			bpf_call_run_on_cpu(sampler->program, cpu);
	}
}

static size_t sample_read(struct cpu_sampler *sampler, const struct cpu_ring *ring, void *record)
{
	const struct timespec pause = {0, TIMER_SLEEP_NS};
	size_t bytes;

	for (;;) {
		bytes = cpu_ring_read(ring, record);
		if (bytes || sampler->options.way == SAMPLE_BY_PROGRAM ||
		    clock_monotonic_ns() - sampler->look_ns > sampler->options.wait_ns)
			return bytes;
		nanosleep(&pause, NULL);
	}
}

static bool sample_parse(const struct cpu_sampler *sampler, const void *record, size_t bytes,
			 struct cpu_sample *sample)
{
	return bytes && !cpu_sample_parse(record, bytes, sampler->attr.sample_type,
					  sampler->attr.sample_regs_user, sample);
}

void cpu_sampler_take(struct cpu_sampler *sampler, const unsigned char *wanted,
		      struct cpu_samples *samples)
{
	int cpus = sampler->options.cpus_possible;

	if (!sampler->rings)
		return;
	if (!samples->cpus)
		samples->cpus = memory_get((size_t)cpus * sizeof(*samples->cpus));
	samples->used = 0;
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct cpu_sampler_ring *ring = &sampler->rings[cpu];
		struct cpu_record *record = &samples->cpus[cpu];
		struct cpu_sample sample;

		*record = (struct cpu_record){samples->used, 0};
		if (!wanted[cpu] || ring->ring.event < 0)
			continue;
		samples->copies = memory_grow(samples->copies, &samples->capacity,
					      samples->used + CPU_RECORD_BYTES_MAX / 8, 8);
		record->bytes = sample_read(sampler, &ring->ring, samples->copies + record->at);
		ring->silent_count = record->bytes ? 0 : ring->silent_count + 1;
		if (!sample_parse(sampler, samples->copies + record->at, record->bytes, &sample) ||
		    sample.time_ns < sampler->look_ns)
			record->bytes = 0;
		samples->used += (record->bytes + 7) / 8;
	}
}

void cpu_samples_done(struct cpu_samples *samples)
{
	free(samples->cpus);
	free(samples->copies);
	*samples = (struct cpu_samples){0};
}

bool cpu_sampler_get(const struct cpu_sampler *sampler, const struct cpu_samples *samples,
		     uint32_t cpu, struct cpu_sample *sample)
{
	return samples->cpus && cpu < (uint32_t)sampler->options.cpus_possible &&
	       sample_parse(sampler, samples->copies + samples->cpus[cpu].at,
			    samples->cpus[cpu].bytes, sample);
}

size_t cpu_sampler_ring_bytes(const struct cpu_sampler *sampler)
{
	size_t bytes = 0;

	for (int cpu = 0; sampler->rings && cpu < sampler->options.cpus_possible; cpu++)
		bytes += cpu_ring_bytes(&sampler->rings[cpu].ring);
	return bytes;
}
