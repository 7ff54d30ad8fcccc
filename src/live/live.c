/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live host as a source of scans:
 *
 *   kernel's thread state array --> record --> wanted? --> sample --> lookups --> scan
 *
 * The filter is asked before anything is looked up.
 */
#include "live/live.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/priority.h"
#include "base/progress.h"
#include "live/live_account.h"
#include "live/live_describe.h"
#include "live/stacks/live_dictionary.h"
#include "live/live_groups.h"
#include "live/live_grow.h"
#include "live/live_host.h"
#include "live/live_look.h"
#include "live/live_options.h"
#include "live/live_state.h"
#include "live/live_trace.h"
#include "proc/proc.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENT_BYTES_MAX (16u << 20)	   /* of names, before lookups begin anew, */
#define COMMS_BYTES_MAX (2u << 20)	   /* the same of names of threads */
#define LENT_STACKS_BYTES_MAX (32u << 20)  /* or these and stacks, where there are any */
#define FIRST_SCAN_NS (NS_PER_SECOND / 20) /* by then every CPU's clock has ticked once */

/* Who is wanted in the next scan although only a wake-up changes what it does, and who is awake
 * and was not in this one. */
static void capture_return(struct live *live)
{
	struct live_capture *capture = live->capture;

	live->capture = NULL;
	if (capture)
		sampler_return(live->sampler, capture, &live->keys_next, live->filter);
}

/* The first scan looks everything up: on a full host it would take as long as the start. */
static int scan_read(struct live *live)
{
	struct priority before;
	int err;

	if (live->scan_count)
		return live_scan_read(live);
	priority_raise(&before, !live->config.no_realtime);
	err = live_scan_read(live);
	priority_restore(&before);
	return err;
}

static int scan_deliver(struct live *live, struct scan *scan, struct error *e)
{
	int err;

	progress_end();
	live->moment = live->capture->moment;
	live->keep_house = live->moment.now_ns - live->housekept_ns >= HOUSEKEEPING_NS;
	live->part = (struct scan){
		.time_us = live->capture->time_us,
		.weight_us = (live->moment.now_ns - live->previous_ns) / NS_PER_US,
		.samples = live->samples,
	};
	live->previous_ns = live->moment.now_ns;
	err = scan_read(live);
	*scan = live->part;
	scan->threads = live->threads;
	if (live->part_err && live->part_err != -EOWNERDEAD)
		return live->part_err;
	if (err)
		return error_set(e, -err, EXIT_FAILED,
				 "the thread state array can't be read any more: %s",
				 strerror(-err));
	/* asked after the scan: what it saw was alive */
	if (live->keep_house && !share_alive(&live->kernel.share))
		return error_set(
			e, EOWNERDEAD, EXIT_FAILED,
			"the tsnap that shared '%s' has ended, and its programs with it, as "
			"links can't be pinned here",
			live->kernel.share.directory.name);
	live->scan_count++;
	return 1;
}

static int live_next(struct source *source, struct scan *scan, struct error *e)
{
	struct live *live = (struct live *)source;
	int err = live_grow(live);

	if (!err)
		err = sampler_take(live->sampler, &live->realtime, &live->capture);
	if (err)
		return err;
	live->totals.read_ns = clock_monotonic_ns(); /* all of the copy */
	err = scan_deliver(live, scan, e);
	live->totals.read_ns = 0;
	capture_return(live);
	return err;
}

static bool lent_crowded(const struct live *live)
{
	return names_lent_bytes() >= (live->stacks.needs ? LENT_STACKS_BYTES_MAX : LENT_BYTES_MAX);
}

static bool live_crowded(const struct source *source)
{
	return lent_crowded((const struct live *)source) || names_comms_bytes() >= COMMS_BYTES_MAX;
}

/* The first scan after that looks all up again: every few hours at most, unless a program renames
 * its threads all the time. */
static void live_release(struct source *source)
{
	struct live *live = (struct live *)source;
	bool lent = lent_crowded(live);
	bool comms = names_comms_bytes() >= COMMS_BYTES_MAX;

	if (!lent && !comms)
		return;
	lookup_free(live->lookup);
	if (lent && live->stacks.needs)
		live_stacks_forget_words(live);
	if (lent)
		names_lent_clear();
	if (comms)
		names_comms_clear();
	live->lookup = live_lookup_new(live);
}

static void live_close(struct source *source)
{
	struct live *live = (struct live *)source;

	progress_end();
	sampler_end(live->sampler);
	live_self_close(&live->self);
	kernel_close(&live->kernel);
	live_cpu_stacks_close(&live->cpu_stacks);
	live_kept_close(&live->kept);
	live_copies_close(&live->copies);
	live_stacks_done(&live->stacks);
	lookup_free(live->lookup);
	live_seed_done(&live->seed);
	totals_done(&live->totals);
	live_account_done(live);
	live_block_done(&live->block);
	live_chains_free(live->chains);
	python_gils_done(&live->gils);
	live_host_done(&live->host);
	index_clear(&live->doubts);
	index_clear(&live->awake);
	index_clear(&live->crowds);
	index_clear(&live->awake_next);
	index_clear(&live->keys_next);
	live_sleepers_clear(&live->sleepers);
	proc_values_room_done(&live->proc_values);
	text_done(&live->chosen);
	text_done(&live->remarks);
	live_processes_done(&live->processes);
	free(live);
}

/* The parent, as /proc shows it. */
static uint32_t keeper_find(uint32_t own_pid)
{
	struct proc_stat stat;

	return proc_stat_read(PROC, own_pid, own_pid, &stat) ? 0 : (uint32_t)stat.ppid;
}

static int sampling_begin(struct live *live, int64_t due_ns)
{
	const struct sampler_options options = {
		.wants = {.kernel = &live->kernel,
			  .cpu_stacks = &live->cpu_stacks.sampler,
			  .kept = &live->kept.stacks,
			  .stacks_copy = live_stacks_of_moment(live) ? live_copies_make : NULL,
			  .stacks_copier = &live->copies,
			  .filter = live->filter,
			  .all = live->idle_wanted,
			  .refused = live->config.descendants || live->translated,
			  .blockers = live->needs & (NEEDS_CHAINS | NEED_RUNQ_WHY),
			  .registers = live->needs & NEED_SYSCALL,
			  .block = live->needs & NEED_BLOCK,
			  .block_batch = fact_has(&live->kernel.facts, FACT_MAP_BATCH),
			  .period_ns = live->period_ns,
			  .own_pid = live->own_pid,
			  .keeper_pid = live->keeper_pid},
		.realtime = live->realtime,
		.period_ns = live->period_ns,
		.due_ns = due_ns,
		.registers_early = live->probe_needs & NEEDS_REGISTERS,
	};

	return sampler_begin(&live->sampler, &options);
}

static unsigned int sandbox_uses(const struct live *live)
{
	uint64_t needs = live->config.loads_more ? ~0ull : live->needs;
	unsigned int uses = SANDBOX_SAMPLES | sandbox_kernel_use();

	if (live->config.writes)
		uses |= SANDBOX_WRITES;
	if (needs & (NEED_KSTACK | NEED_WAKER_STACK))
		uses |= SANDBOX_STACKS;
	if (needs & (NEED_CONNECTION | NEED_WAITS | NEED_WHY) || live->work_wanted)
		uses |= SANDBOX_NAMESPACES;
	if (live->translated)
		uses |= SANDBOX_IDS;
	return uses;
}

/* After the start, before the first look at what others have written. */
static void live_sandbox(struct live *live)
{
	if (live->config.no_sandbox)
		text_add_string(&live->chosen, "sandbox: none (--no-sandbox)\n");
	else if (!strcmp(live->kernel.compiled.types_source, "kheaders"))
		text_add_string(&live->chosen,
				"sandbox: none (kernel types from kheaders: a larger "
				"map takes tar again)\n");
	else
		sandbox_enter(sandbox_uses(live), &live->chosen);
}

/* So that a scan never waits for a page of its own to be read from disk. */
static void live_lock(struct live *live)
{
	int err = memory_lock();

	if (err)
		text_add_format(&live->chosen, "memory: not locked (%s)\n",
				err == -EPERM ? "ulimit -l is too small" : strerror(-err));
	else
		text_add_string(&live->chosen, "memory: locked\n");
}

static int live_start(struct live *live, struct error *e)
{
	int64_t due_ns;
	const struct probe_row *clock;
	struct kernel_options options;
	int err;

	live_kernel_options(&live->config, live->probe_needs, &options);
	live->totals.begun_ns = options.attach ? 0 : clock_monotonic_ns();
	err = kernel_open(&live->kernel, &options, e);
	if (err)
		return err;
	live->attached_ns = clock_monotonic_ns();
	live->stacks.modules.without_tables = !fact_has(&live->kernel.facts, FACT_UNWINDER);
	live_cpu_stacks_open(live);
	live_kept_open(live);
	live_copies_open(live);
	live_chosen_describe(&live->config, &live->kernel, options.groups, &live->chosen);
	text_add_format(&live->chosen, "stacks on CPU: %s\n",
			live_cpu_stacks_way(&live->cpu_stacks));
	text_add_format(&live->chosen, "stacks of the moment: %s\n", live_kept_way(live));
	live->moment.registers_marked = live->kernel.compiled.registers_marked;
	live->moment.registers_known = live->kernel.compiled.stack_registers != 0;
	live->own_pid = (uint32_t)live->kernel.host.own_pid;
	live->keeper_pid = live->config.kept ? keeper_find(live->own_pid) : 0;
	live->translated = live->kernel.compiled.pids_translated;
	live->proc_whole = !access(PROC "/1", F_OK);
	/* the records of who is attached to hold them, but for those that wait for theirs; the
	 * first scan sorts out which do */
	progress_step("looking for the threads there are");
	if (!options.attach || live->translated)
		err = live_seed_all(&live->seed, &live->kernel, e);
	if (!err)
		err = live_share_begin(live, &options, e);
	if (err)
		return err;
	clock = live->kernel.plan.chosen[GROUP_CLOCK];
	live->period_ns = NS_PER_SECOND / live->config.rate_hz;
	live->housekept_ns = clock_monotonic_ns();
	due_ns = live->housekept_ns;
	if (!clock || clock->kind != PROBE_LOOK)
		due_ns += live->period_ns < FIRST_SCAN_NS ? live->period_ns : FIRST_SCAN_NS;
	live->previous_ns = due_ns - live->period_ns;
	if (live->previous_ns < live->attached_ns) /* exact times begin then */
		live->previous_ns = live->attached_ns;
	live->housekept_ns -= HOUSEKEEPING_NS; /* the first scan looks at everything */
	live_account_begin(live);
	if (live->config.self)
		live_self_open(&live->self, &live->kernel, live->own_cpu_start_ns);
	if (live->config.traces)
		latency_reader_begin(&live->kernel.latency, live->config.distributions,
				     clock_monotonic_ns());
	progress_end();
	live_lock(live);
	live_sandbox(live);
	cpu_quotas_init(&live->host.quotas, PROC);
	io_limits_init(&live->host.io_limits, PROC);
	cgroup_mount_find(&live->host.groups, PROC, ""); /* no controller: v2 */
	if (live->stacks.needs & NEED_USTACK)
		parsers_describe(live->stacks.parsers, live->config.no_sandbox, &live->chosen);
	err = sampling_begin(live, due_ns);
	return err ? error_set(e, -err, EXIT_FAILED, "no thread can be started to sample: %s",
			       strerror(-err))
		   : 0;
}

struct lookup *live_lookup_new(struct live *live)
{
	struct lookup *lookup = lookup_new(PROC);

	lookup_set_daemon_ports(lookup, live->config.daemon_ports);
	lookup_set_runtime_locks(lookup, live_gil_find, live);
	return lookup;
}

/* All of the start that takes time. */
static int live_begin(struct live *live, uint64_t needs, struct error *e)
{
	struct filter *filter = live->filter;
	int err = live_processes_find(&live->processes, &live->config, filter, &live->remarks, e);

	live->filter_needs = filter_needs(filter);
	live->needs = needs | live->filter_needs;
	if (live->needs & NEED_BLOCKER)
		live->optional_needs = (NEED_BLOCK | NEED_WAKER) & ~live->needs;
	live->needs |= live->optional_needs;
	live->probe_needs = live->needs & ~(filter->no_samples ? NEEDS_REGISTERS : 0);
	live_stacks_init(&live->stacks, PROC, live->needs, live->config.python,
			 live->config.no_sandbox);
	live->idle_wanted = filter_wants_idle(filter);
	live->work_wanted = filter_wants_work(filter);
	return err ? err : live_start(live, e);
}

int live_open(const struct live_config *config, struct filter *filter, uint64_t needs,
	      struct source **source, struct error *e)
{
	struct live *live = memory_get(sizeof(*live));
	struct priority before; /* on a full host the start would take many seconds */
	int err;

	live->source = (struct source){.next = live_next,
				       .account = live_account,
				       .release = live_release,
				       .crowded = live_crowded,
				       .describe = live_describe,
				       .close = live_close,
				       .traced = live_traced,
				       .stacks_end = live_dictionary_end,
				       .stacks_anew = live_dictionary_anew,
				       .events = live_events,
				       .look = live_look};
	progress_begin();
	live->config = *config;
	live->filter = filter;
	live->own_cpu_start_ns = clock_cpu_ns();
	compile_result_init(&live->kernel.compiled, 0); /* no descriptor is 0 */
	live->lookup = live_lookup_new(live);
	realtime_init(&live->realtime, !config->no_realtime);
	priority_raise(&before, !config->no_realtime);
	err = live_begin(live, needs, e);
	priority_restore(&before);
	if (err) {
		live_close(&live->source);
		return err;
	}
	*source = &live->source;
	return 0;
}
