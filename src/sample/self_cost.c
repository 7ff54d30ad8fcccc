/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/self_cost.h"
#include "sample/sample.h"

static int64_t known_difference(int64_t now, int64_t before)
{
	return now == ABSENT || before == ABSENT ? ABSENT : counted_since(now, before);
}

static int64_t known_sum(int64_t a, int64_t b)
{
	return a == ABSENT || b == ABSENT ? ABSENT : a + b;
}

void self_cost_subtract(struct self_cost *now, const struct self_cost *before)
{
	now->at_ns -= before->at_ns;
	now->cpu_ns -= before->cpu_ns;
	now->scans -= before->scans;
	now->window_ns = known_difference(now->window_ns, before->window_ns);
	now->kept_count = known_difference(now->kept_count, before->kept_count);
	for (size_t i = 0; i < now->program_count; i++) {
		struct self_program *program = &now->programs[i];

		program->ns = known_difference(program->ns, before->programs[i].ns);
		program->runs = known_difference(program->runs, before->programs[i].runs);
		program->skipped = known_difference(program->skipped, before->programs[i].skipped);
	}
}

struct self_program self_cost_programs(const struct self_cost *cost)
{
	struct self_program all = {.name = "all"};

	for (size_t i = 0; i < cost->program_count; i++) {
		const struct self_program *program = &cost->programs[i];

		all.ns = known_sum(all.ns, program->ns);
		all.runs = known_sum(all.runs, program->runs);
		all.skipped = known_sum(all.skipped, program->skipped);
		all.jited_bytes = known_sum(all.jited_bytes, program->jited_bytes);
	}
	return all;
}

int64_t self_cost_kernel_bytes(const struct self_cost *cost)
{
	int64_t all = cost->programs_bytes;

	for (size_t i = 0; i < cost->map_count; i++)
		all = known_sum(all, cost->maps[i].kernel_bytes);
	return all;
}
