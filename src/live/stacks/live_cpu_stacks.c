/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_cpu_stacks.h"
#include "live/live_state.h"
#include "base/clock.h"

#include <errno.h>

#define KERNEL_CODE(major, minor) ((uint32_t)(major) << 16 | (minor) << 8)
#define TICK_WAIT_SHARE 4 /* a tick is waited for one part in so many of a beat */
#define TICK_WAIT_LEAST_NS (2 * NS_PER_MS)
#define TICK_WAIT_MOST_NS (20 * NS_PER_MS)
#define KERNEL_NAMES_FIRST_NS (500 * NS_PER_MS) /* that the first scan waits for them */

/* By what the kernel offers. -ENOTSUP: nothing. */
static int way_choose(struct live *live, enum cpu_sampler_way *way)
{
	struct facts *facts = &live->context.kernel.facts;

	*way = fact_has(facts, FACT_RUN_ON_CPU) ? SAMPLE_BY_PROGRAM : SAMPLE_BY_TIMER;
	/* cpu_sampler.h tells why */
	if (*way == SAMPLE_BY_TIMER &&
	    live->context.kernel.host.kernel_code >= KERNEL_CODE(6, 16) &&
	    live->context.kernel.host.kernel_code < KERNEL_CODE(6, 18))
		return -ENOTSUP;
	if (!fact_has(facts, FACT_CPU_SAMPLES))
		return facts->state[FACT_CPU_SAMPLES] == FACT_FORBIDDEN ? -EPERM : -ENOTSUP;
	/* perf tells ids of tsnap's own namespace */
	return live->context.kernel.host.pid_depth == 1 ? 0 : -ENOTSUP;
}

static int64_t tick_wait_ns(int64_t rate_hz)
{
	int64_t wait_ns = NS_PER_SECOND / rate_hz / TICK_WAIT_SHARE;

	return wait_ns < TICK_WAIT_LEAST_NS  ? TICK_WAIT_LEAST_NS
	       : wait_ns > TICK_WAIT_MOST_NS ? TICK_WAIT_MOST_NS
					     : wait_ns;
}

/* What the look at a CPU writes samples to, if that is this tsnap's; or -1. */
static int events_map(const struct live *live)
{
	const struct probe_row *row = live->context.kernel.plan.chosen[GROUP_CLOCK];

	return row && row->kind == PROBE_LOOK && !live->context.config.attach
		       ? live->context.kernel.compiled.maps[KERNEL_MAP_LOOKED]
		       : -1;
}

void live_cpu_stacks_open(struct live *live)
{
	struct live_cpu_stacks *stacks = &live->cpu_stacks;
	struct cpu_sampler_options options = {
		.cpus_possible = live->context.kernel.host.cpus_possible,
		.user = live->stacks.needs & NEED_USTACK,
		.kernel = live->stacks.needs & NEED_KSTACK,
		.frame_pointers = live->context.config.frame_pointers,
		.stack_bytes = live->context.config.stack_bytes,
		.wait_ns = tick_wait_ns(live->context.config.rate_hz),
		.events_map = events_map(live),
	};

	stacks->wanted =
		live->stacks.needs && filter_wants_state(live->context.wants.filter, DOING_ON);
	if (!stacks->wanted)
		return;
	stacks->err = way_choose(live, &options.way);
	if (!stacks->err)
		stacks->err = cpu_sampler_open(&stacks->sampler, &options);
	if (!stacks->err && options.kernel)
		stack_names_want_kernel(live->stacks.names);
}

void live_cpu_stacks_move(struct live *live)
{
	cpu_sampler_move(&live->cpu_stacks.sampler, events_map(live));
}

void live_cpu_stacks_close(struct live_cpu_stacks *stacks)
{
	cpu_sampler_close(&stacks->sampler);
}

static uint32_t user_take(struct live *live, const struct thread_state *record,
			  const struct cpu_sample *seen)
{
	static struct stack_walk walk;
	struct live_stacks *stacks = &live->stacks;
	const struct stack_thread thread = live_stack_thread(live, record);

	if (seen->registers_known)
		unwinder_walk_copied(&stacks->unwinder, &thread, &seen->registers, seen->stack,
				     seen->stack_bytes, &walk);
	else if (seen->user_count)
		unwinder_walk_chain(&stacks->unwinder, &thread, seen->user, seen->user_count,
				    &walk);
	else
		return STACK_NONE;
	live_stacks_unread(live, &record->identity, walk_error(&walk), 0);
	return stack_of_walk(&stacks->table, &walk);
}

const struct kernel_symbols *live_kernel_symbols(struct live *live)
{
	struct live_cpu_stacks *stacks = &live->cpu_stacks;
	const struct kernel_symbols *symbols = stack_names_kernel_symbols(
		live->stacks.names, live->context.now.scan_count ? 0
								 : live->context.now.moment.now_ns +
									   KERNEL_NAMES_FIRST_NS);

	stacks->names_lacking = symbols && !symbols->count;
	stacks->functions_refused = symbols ? symbols->refused : 0;
	return symbols && symbols->count ? symbols : NULL;
}

static uint32_t kernel_take(struct live *live, const struct cpu_sample *seen)
{
	static struct kernel_stack kernel;
	struct live_cpu_stacks *stacks = &live->cpu_stacks;
	const struct kernel_symbols *symbols = live_kernel_symbols(live);

	if (!symbols || !kernel_stack_of_chain(&kernel, symbols, seen->kernel, seen->kernel_count,
					       stacks->sampler.options.way == SAMPLE_BY_PROGRAM))
		return STACK_NONE;
	return stack_of_kernel(&live->stacks.table, &kernel);
}

void live_cpu_stacks_add(struct live *live, const struct thread_state *record, size_t sample)
{
	struct live_cpu_stacks *stacks = &live->cpu_stacks;
	uint32_t user = STACK_NONE, kernel = STACK_NONE;
	struct cpu_sample seen;

	if (!stacks->wanted || stacks->err)
		return;
	if (!cpu_sampler_get(&stacks->sampler, &live->context.now.capture->looked,
			     record->sched.cpu, &seen) ||
	    seen.tid != record->identity.tid || seen.time_ns < (int64_t)record->sched.in_ns) {
		stacks->gone_count += !live_stacks_add_kept(live, record, sample);
		return;
	}
	if (live->stacks.needs & NEED_USTACK)
		user = user_take(live, record, &seen);
	if (live->stacks.needs & NEED_KSTACK)
		kernel = kernel_take(live, &seen);
	live_stacks_set(live, sample, user, kernel);
}

const char *live_cpu_stacks_way(const struct live_cpu_stacks *stacks)
{
	if (!stacks->wanted)
		return "nobody asked for it";
	if (stacks->err)
		return "none";
	return stacks->sampler.options.way == SAMPLE_BY_PROGRAM ? "perf samples, by a program run"
								: "perf samples, by a timer";
}

void live_cpu_stacks_describe(const struct live *live, struct source_facts *facts)
{
	const struct live_cpu_stacks *stacks = &live->cpu_stacks;
	bool refused = stacks->err == -EPERM || stacks->err == -EACCES;

	source_facts_miss_any(
		facts,
		"samples of threads on a CPU without a stack: they had left it by then, or it gave "
		"none in time",
		stacks->gone_count);
	if (refused)
		source_facts_lack(facts,
				  "kind of fact: stacks of threads on a CPU (perf events are "
				  "refused: CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0)");
	else if (stacks->err)
		source_facts_lack(facts,
				  "kind of fact: stacks of threads on a CPU (no perf events for it "
				  "here)");
	if (stacks->functions_refused)
		source_facts_miss(facts, "functions of the kernel beyond those that tsnap keeps",
				  stacks->functions_refused)
			->standing = true;
	if (stacks->names_lacking)
		source_facts_lack(facts,
				  "kind of fact: kernel stacks of threads on a CPU (/proc/kallsyms "
				  "shows no addresses: CAP_SYSLOG, or sysctl "
				  "kernel.kptr_restrict=0)");
}
