/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_cpu_stacks.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/host_file.h"
#include "kernel/host.h"
#include "live/context/live_limits.h"

#include <errno.h>
#include <stdlib.h>

#define TICK_WAIT_SHARE 4 /* divisor of a period: the time to wait for a tick */
#define TICK_WAIT_LEAST_NS (2 * NS_PER_MS)
#define TICK_WAIT_MOST_NS (20 * NS_PER_MS)
#define KERNEL_NAMES_FIRST_NS (500 * NS_PER_MS) /* the first scan waits so long for names */

/* Chooses a way by what the kernel offers. 0; -ENOTSUP: nothing; or -errno of what it refuses. */
static int way_choose(struct live_stacks *stacks, enum cpu_sampler_way *way)
{
	struct features *features = &stacks->context->kernel.features;

	*way = feature_has(features, FEATURE_RUN_ON_CPU) ? SAMPLE_BY_PROGRAM : SAMPLE_BY_TIMER;
	/* cpu_sampler.h says why */
	if (*way == SAMPLE_BY_TIMER &&
	    stacks->context->kernel.host.kernel_code >= KERNEL_CODE(6, 16) &&
	    stacks->context->kernel.host.kernel_code < KERNEL_CODE(6, 18))
		return -ENOTSUP;
	if (!feature_has(features, FEATURE_CPU_SAMPLES)) {
		int err = error_of_words(features->why[FEATURE_CPU_SAMPLES]);

		return err ? -err : -ENOTSUP;
	}
	/* perf reports ids of tsnap's own namespace */
	return stacks->context->kernel.host.pid_depth == 1 ? 0 : -ENOTSUP;
}

static int64_t tick_wait_ns(int64_t rate_hz)
{
	int64_t wait_ns = NS_PER_SECOND / rate_hz / TICK_WAIT_SHARE;

	return wait_ns < TICK_WAIT_LEAST_NS  ? TICK_WAIT_LEAST_NS
	       : wait_ns > TICK_WAIT_MOST_NS ? TICK_WAIT_MOST_NS
					     : wait_ns;
}

/* Returns the map that a look at a CPU writes samples to, if that is this tsnap's; or -1. */
static int events_map(const struct live_stacks *stacks)
{
	const struct probe_row *row = stacks->context->kernel.plan.chosen[GROUP_CLOCK];

	return row && row->kind == PROBE_LOOK && !stacks->context->config.attach
		       ? stacks->context->kernel.compiled.maps[KERNEL_MAP_LOOKED]
		       : -1;
}

void live_cpu_stacks_open(struct live_stacks *stacks)
{
	struct live_cpu_stacks *cpu = &stacks->cpu;
	struct cpu_sampler_options options = {
		.cpus_possible = stacks->context->kernel.host.cpus_possible,
		.user = stacks->needs & NEED_USTACK,
		.kernel = stacks->needs & NEED_KSTACK,
		.frame_pointers = stacks->context->config.frame_pointers,
		.stack_bytes = stacks->context->config.stack_bytes,
		.wait_ns = tick_wait_ns(stacks->context->config.rate_hz),
		.events_map = events_map(stacks),
	};

	cpu->wanted = stacks->needs && filter_wants_state(stacks->context->wants.filter, STATE_ON);
	if (!cpu->wanted)
		return;
	cpu->err = way_choose(stacks, &options.way);
	if (!cpu->err)
		cpu->err = cpu_sampler_open(&cpu->sampler, &options);
	if (!cpu->err && options.kernel)
		stack_names_want_kernel(stacks->names);
}

void live_cpu_stacks_move(struct live_stacks *stacks)
{
	cpu_sampler_move(&stacks->cpu.sampler, events_map(stacks));
}

static uint32_t user_take(struct live_stacks *stacks, const struct thread_state *record,
			  const struct cpu_sample *seen)
{
	static struct stack_walk walk;
	const struct stack_thread thread = live_stack_thread(stacks, record);
	uint32_t chain = seen->user_count;

	if (seen->in_kernel && !live_registers_keep(stacks, REGISTERS_STACK)) {
		stacks->unknown_count++;
		return STACK_NONE;
	}
	/* perf follows the frame pointer that was saved */
	if (seen->in_kernel && !live_registers_keep(stacks, REGISTERS_PRESERVED) && chain)
		chain = 1;
	if (seen->registers_known)
		unwinder_walk(&stacks->unwinder, &thread, &seen->registers,
			      &(struct stack_bytes){seen->stack, seen->stack_bytes}, &walk);
	else if (chain)
		unwinder_walk_chain(&stacks->unwinder, &thread, seen->user, chain, &walk);
	else
		return STACK_NONE;
	live_stacks_unread(stacks, &record->identity, walk_error(&walk), 0);
	stacks->python.moved_count +=
		stacks->python_wanted && python_frames_lack(&stacks->python, &thread, &walk);
	return stack_of_walk(&stacks->table, &walk);
}

const struct kernel_symbols *live_kernel_symbols(struct live_stacks *stacks)
{
	struct live_cpu_stacks *cpu = &stacks->cpu;
	const struct kernel_symbols *symbols = stack_names_kernel_symbols(
		stacks->names,
		stacks->context->now.scan_count
			? 0
			: stacks->context->now.scan_time.now_ns + KERNEL_NAMES_FIRST_NS);

	cpu->names_err = symbols && !symbols->table.count ? symbols->err : 0;
	cpu->functions_refused = symbols ? symbols->table.refused : 0;
	return symbols && symbols->table.count ? symbols : NULL;
}

static uint32_t kernel_take(struct live_stacks *stacks, const struct cpu_sample *seen)
{
	static struct kernel_stack kernel;
	struct live_cpu_stacks *cpu = &stacks->cpu;
	const struct kernel_symbols *symbols = live_kernel_symbols(stacks);

	if (!symbols || !kernel_stack_of_chain(&kernel, symbols, seen->kernel, seen->kernel_count,
					       cpu->sampler.options.way == SAMPLE_BY_PROGRAM))
		return STACK_NONE;
	return stack_of_kernel(&stacks->table, &kernel);
}

bool live_cpu_stacks_add(struct live_stacks *stacks, const struct thread_state *record,
			 size_t sample)
{
	struct live_cpu_stacks *cpu = &stacks->cpu;
	uint32_t user = STACK_NONE, kernel = STACK_NONE;
	struct cpu_sample seen;

	if (!cpu->wanted || cpu->err)
		return true;
	if (!cpu_sampler_get(&cpu->sampler, &stacks->context->now.capture->looked,
			     record->sched.cpu, &seen) ||
	    seen.tid != record->identity.tid || seen.time_ns < (int64_t)record->sched.in_ns ||
	    (!record->sched.on_cpu && seen.time_ns > (int64_t)record->sched.out_ns))
		return false;
	if (stacks->needs & NEED_USTACK)
		user = user_take(stacks, record, &seen);
	if (stacks->needs & NEED_KSTACK)
		kernel = kernel_take(stacks, &seen);
	live_stacks_set(stacks, sample, user, kernel);
	return true;
}

const char *live_cpu_stacks_way(const struct live_cpu_stacks *stacks)
{
	if (!stacks->wanted)
		return "not wanted";
	if (stacks->err)
		return "none";
	return stacks->sampler.options.way == SAMPLE_BY_PROGRAM ? "perf samples, by a program run"
								: "perf samples, by a timer";
}

/* Returns the value of a sysctl; -1: it can't be read. */
static int sysctl_read(const char *path)
{
	char text[HOST_TEXT_SIZE];

	return host_file_read(path, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

/* Adds why no function of the kernel has a name: kallsyms_show_value() of kernel/ksyms_common.c
 * shows addresses with kptr_restrict=0 to those who may measure the kernel, with 1 by
 * CAP_SYSLOG. */
static void names_describe(int err, struct source_status *status)
{
	static const char what[] = "kind of data: kernel stacks of threads on a CPU";
	int restricted = sysctl_read("/proc/sys/kernel/kptr_restrict");

	if (err != -ENODATA)
		source_status_lack(status, live_limits_words(what, "/proc/kallsyms", -err));
	else if (restricted > 1)
		source_status_lack(
			status, "kind of data: kernel stacks of threads on a CPU (/proc/kallsyms "
				"shows no addresses: sysctl kernel.kptr_restrict=1)");
	else if (!restricted && sysctl_read("/proc/sys/kernel/perf_event_paranoid") > 1)
		source_status_lack(
			status, "kind of data: kernel stacks of threads on a CPU (/proc/kallsyms "
				"shows no addresses: CAP_SYSLOG, or sysctl "
				"kernel.perf_event_paranoid=1)");
	else
		source_status_lack(
			status, "kind of data: kernel stacks of threads on a CPU (/proc/kallsyms "
				"shows no addresses: CAP_SYSLOG)");
}

void live_cpu_stacks_describe(const struct live_stacks *stacks, struct source_status *status)
{
	const struct live_cpu_stacks *cpu = &stacks->cpu;
	const struct host *host = &stacks->context->kernel.host;

	source_status_miss_any(
		status,
		"samples of threads on a CPU without a stack: the thread had left the CPU, or the "
		"CPU gave none in time",
		cpu->gone_count);
	if ((cpu->err == -EPERM || cpu->err == -EACCES) && !host->cap_perfmon && !host->cap_admin)
		source_status_lack(status,
				   "kind of data: stacks of threads on a CPU (perf events are "
				   "refused: CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0)");
	else if (cpu->err == -ENOTSUP)
		source_status_lack(
			status, "kind of data: stacks of threads on a CPU (no perf events for it "
				"here)");
	else if (cpu->err)
		source_status_lack(status,
				   live_limits_words("kind of data: stacks of threads on a CPU",
						     "perf_event_open", -cpu->err));
	if (cpu->functions_refused)
		source_status_miss(status, "functions of the kernel beyond those that tsnap keeps",
				   cpu->functions_refused)
			->standing = true;
	if (cpu->names_err)
		names_describe(cpu->names_err, status);
}
