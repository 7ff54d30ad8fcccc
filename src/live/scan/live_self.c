/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_self.h"
#include "base/clock.h"
#include "kernel/bpf_cost.h"
#include "base/host_file.h"
#include "kernel/task_query.h"
#include "sample/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(GROUP_COUNT + 2 <= SELF_PROGRAMS_MAX, "room for each program");
_Static_assert(KERNEL_MAP_COUNT + 3 <= SELF_MAPS_MAX, "room for each map");

void live_self_open(struct live_self *self, struct kernel *kernel, int64_t cpu_ns)
{
	*self = (struct live_self){
		.requested = true,
		.start_cpu_ns = clock_cpu_ns() - cpu_ns,
		.child_cpu_ns = clock_children_cpu_ns(),
	};
	self->stats = bpf_stats_open(&kernel->features, &self->uncounted_why);
}

void live_self_close(struct live_self *self)
{
	if (self->requested && self->stats >= 0)
		close(self->stats);
	*self = (struct live_self){0};
}

static int64_t number_or_absent(int64_t number)
{
	return number < 0 ? ABSENT : number;
}

static void program_add(struct self_cost *cost, const char *name, const char *kind, int program)
{
	struct program_cost reported = {.ns = -1, .runs = -1, .skipped = -1, .jited_bytes = -1};
	bool counted = !cost->uncounted_why;
	int64_t bytes = bpf_memory_bytes(program);

	program_cost_read(program, &reported);
	cost->programs_bytes =
		bytes < 0 || cost->programs_bytes == ABSENT ? ABSENT : cost->programs_bytes + bytes;
	cost->programs[cost->program_count++] = (struct self_program){
		.name = name,
		.kind = kind,
		.ns = counted ? number_or_absent(reported.ns) : ABSENT,
		.runs = counted ? number_or_absent(reported.runs) : ABSENT,
		.skipped = number_or_absent(reported.skipped),
		.jited_bytes = number_or_absent(reported.jited_bytes),
	};
}

static void map_add(struct self_cost *cost, const char *name, int64_t bytes)
{
	cost->maps[cost->map_count++] =
		(struct self_map){.name = name, .kernel_bytes = number_or_absent(bytes)};
}

/* Adds the costs of stacks on CPUs. The rings are no map, but memory of the kernel as well. */
static void sampler_add(struct self_cost *cost, const struct cpu_sampler *sampler)
{
	if (!sampler->rings)
		return;
	if (sampler->program >= 0) {
		program_add(cost, "cpu_sample", probe_kind_names[PROBE_LOOK], sampler->program);
		map_add(cost, "cpu_events", bpf_memory_bytes(sampler->events));
	}
	map_add(cost, "cpu_rings", (int64_t)cpu_sampler_ring_bytes(sampler));
}

/* Adds the costs of stacks that switches keep. */
static void kept_add(struct self_cost *cost, const struct kept_stacks *kept)
{
	cost->window_ns = cost->kept_count = ABSENT;
	if (!kept->rings)
		return;
	cost->window_ns = kept->open_ns;
	cost->kept_count = (int64_t)kept->kept_count;
	map_add(cost, "kept_rings", (int64_t)kept_stacks_ring_bytes(kept));
}

/* Returns the bytes of a line such as "VmRSS:\t    3456 kB"; ABSENT: there is none. */
static int64_t status_bytes(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? 1024 * strtoll(line + strlen(key), NULL, 10) : ABSENT;
}

/* Returns the parsers' own memory, without what they share with others: RssAnon, since 4.5. */
static int64_t parsers_bytes(void)
{
	int64_t bytes = 0, own;

	for (int slot = 0; slot < PARSER_SLOTS; slot++) {
		char path[32], status[4096] = "";

		snprintf(path, sizeof(path), "/proc/%u/status", parsers_pid(slot));
		host_file_read(path, status, sizeof(status));
		own = status_bytes(status, "\nRssAnon:");
		bytes += own == ABSENT ? 0 : own;
	}
	return bytes;
}

void live_self_describe(const struct live_self *self, const struct kernel *kernel,
			const struct cpu_sampler *sampler, const struct kept_stacks *kept,
			const struct parsers *parsers, uint64_t scans, struct self_cost *cost)
{
	char status[4096] = "";
	int64_t bytes;

	*cost = (struct self_cost){.requested = self->requested};
	if (!self->requested)
		return;
	host_file_read("/proc/self/status", status, sizeof(status));
	cost->at_ns = clock_monotonic_ns();
	cost->cpu_ns = clock_cpu_ns() + parsers_cpu_ns(parsers);
	cost->scans = (int64_t)scans;
	cost->start_cpu_ns = self->start_cpu_ns;
	cost->child_cpu_ns = self->child_cpu_ns;
	bytes = parsers_bytes();
	cost->resident_bytes = status_bytes(status, "\nVmRSS:") + bytes;
	cost->resident_most_bytes = status_bytes(status, "\nVmHWM:") + bytes;
	cost->uncounted_why = self->uncounted_why;
	for (int group = 0; group < GROUP_COUNT; group++)
		if (kernel->plan.chosen[group] && kernel->compiled.programs[group] >= 0)
			program_add(cost, kernel->plan.chosen[group]->name,
				    probe_kind_names[kernel->plan.chosen[group]->kind],
				    kernel->compiled.programs[group]);
	if (task_query_program() >= 0)
		program_add(cost, "locks", probe_kind_names[PROBE_LOOK], task_query_program());
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		if (kernel->compiled.maps[map] >= 0)
			map_add(cost, kernel_map_rows[map].name,
				bpf_memory_bytes(kernel->compiled.maps[map]));
	sampler_add(cost, sampler);
	kept_add(cost, kept);
}
