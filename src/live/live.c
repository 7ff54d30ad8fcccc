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
#include "live/live_absent.h"
#include "live/live_account.h"
#include "live/stacks/live_dictionary.h"
#include "live/live_groups.h"
#include "live/live_grow.h"
#include "live/live_host.h"
#include "live/live_look.h"
#include "live/live_options.h"
#include "live/sampler/live_realtime.h"
#include "live/live_state.h"
#include "live/live_stay.h"
#include "live/live_trace.h"
#include "proc/proc.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"
#include "live/trace_table.h"

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

/* Why container_name is empty. */
static void containers_describe(const struct live *live, struct source_facts *facts)
{
	static const char *const words[] = {
		"containers without a name: none of the files is there in which tsnap(8) looks for "
		"it",
		"containers without a name: the files of process 1 may not be read "
		"(CAP_SYS_PTRACE, or a sandbox around tsnap), and tsnap's own have none",
	};

	for (int refused = 0; refused < 2; refused++) {
		struct source_missed *missed = source_facts_miss_any(
			facts, words[refused], lookup_unnamed_containers(live->lookup, refused));

		if (missed)
			missed->standing = missed->natural = true;
	}
}

static void scans_describe(const struct live *live, const struct sampler_facts *told,
			   struct source_facts *facts)
{
	const struct thread_table *table = &live->kernel.table;

	source_facts_miss(facts, "late scans (the one before took too long: a lower rate, or -p)",
			  told->late_count[LATE_WORK]);
	source_facts_miss(facts, "late scans (tsnap waited for a CPU, or for its output)",
			  told->late_count[LATE_WAIT]);
	source_facts_miss(facts, "late scans (the map was made larger)",
			  told->late_count[LATE_GROWTH]);
	source_facts_miss(facts, "records that kept changing while they were read",
			  table->torn_count + told->torn_count);
	source_facts_miss(facts, "scans that could not see the whole map",
			  table->unfinished_count + told->unfinished_count);
}

static void lacking_describe(const struct live *live, const struct sampler_facts *told,
			     struct source_facts *facts)
{
	const struct host *host = &live->kernel.host;

	if (live->needs & (NEED_FILE | NEED_EXE | NEED_SYSCALL) &&
	    (!host->cap_ptrace || !host->cap_read))
		source_facts_lack(facts,
				  "kind of fact: files, programs and earlier calls of other "
				  "users' threads (needs CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)");
	live_realtime_describe(&live->realtime, told->over_count, host, facts);
	if (lookup_sockets_error(live->lookup))
		source_facts_lack(facts,
				  "kind of fact: connections of sockets (the kernel does not tell "
				  "them here, by sock_diag)");
}

static void live_describe(struct source *source, struct source_facts *facts)
{
	struct live *live = (struct live *)source;
	const struct kernel *kernel = &live->kernel;
	struct probe_counters counters = kernel_counters(&live->kernel);
	struct sampler_facts told;
	struct source_missed *missed;
	uint64_t ns, runs, full = counters.map_full + live->seed.unfit_count;

	*facts = (struct source_facts){.bpf_ns = ABSENT, .bpf_runs = ABSENT};
	snprintf(facts->host, SOURCE_TEXT_SIZE, "%s", kernel->host.name);
	snprintf(facts->kernel, SOURCE_TEXT_SIZE, "%s", kernel->host.release);
	facts->cpus = kernel->host.cpus;
	facts->rate_hz = live->config.rate_hz;
	facts->own_cpu_ns =
		clock_cpu_ns() + parsers_cpu_ns(live->stacks.parsers) - live->own_cpu_start_ns;
	if (!kernel_bpf_cost(&live->kernel, &ns, &runs)) {
		facts->bpf_ns = (int64_t)ns;
		facts->bpf_runs = (int64_t)runs;
	}
	sampler_facts_read(live->sampler, &told);
	scans_describe(live, &told, facts);
	live_account_missed(live, facts);
	live_account_busy(live, facts);
	source_facts_miss(facts, "names beyond what tsnap keeps in memory", names_refused());
	live_absent_describe(kernel, live->needs & ~live->optional_needs, facts);
	lacking_describe(live, &told, facts);
	live_avoided_describe(facts);
	if (live->translated) {
		missed = source_facts_miss(
			facts,
			"threads outside of this container's pid namespace (pid and "
			"tid are those inside)",
			(uint64_t)live->other_threads);
		missed->standing = missed->natural = true;
	}
	live_stay_describe(live, facts);
	containers_describe(live, facts);
	live_host_describe(live, facts);
	live_stacks_describe(&live->stacks, facts);
	live_cpu_stacks_describe(live, facts);
	live_self_describe(&live->self, kernel, &live->cpu_stacks.sampler, &live->kept.stacks,
			   live->stacks.parsers, live->scan_count, &facts->self);
	if (live->config.traces)
		source_facts_miss(facts, "events of --trace (more threads than fit the maps)",
				  live->earlier.latency_full + counters.latency_full);
	if (kernel->compiled.maps[KERNEL_MAP_BLOCK] >= 0) {
		source_facts_miss(facts, "requests to block devices (too many in flight)",
				  live->earlier.block_full + counters.block_full);
		source_facts_miss(
			facts, "requests to block devices (the kernel ran no program at their end)",
			live->earlier.block_unseen + counters.block_unseen);
	}
	if (live->config.events)
		source_facts_miss(facts,
				  "single events (more than are read in time: a higher rate -F)",
				  kernel->events.lost_count);
	facts->chosen = text_string(&live->chosen);
	facts->remarks = text_string(&live->remarks);
	/* of such a thread nothing is traced, also where it has a place by now */
	if (live->translated || live->config.traces)
		source_facts_miss(facts,
				  "times that a thread did not fit the map (raise --max-threads)",
				  live->earlier.map_full + full);
	if (!live->translated)
		/* how many there are now, not how often one was refused */
		source_facts_miss(facts, "threads that do not fit the map (raise --max-threads)",
				  full && live->unfit_threads > 0 ? (uint64_t)live->unfit_threads
								  : live->seed.unfit_count)
			->standing = true;
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
	free(live->process_names);
	process_set_done(&live->processes);
	process_set_done(&live->chosen_threads);
	free(live);
}

static void chosen_describe(const struct live_config *config, const struct kernel *kernel,
			    unsigned int groups, struct text *to)
{
	if (kernel->share.directory.name[0])
		text_add_format(to, "%s '%s'\n", config->attach ? "attached to" : "sharing as",
				kernel->share.directory.name);
	text_add_format(to, "kernel types from %s%s\n", kernel->compiled.types_source,
			kernel->compiled.types_tried.length ? "; tried:" : "");
	text_add_string(to, text_string(&kernel->compiled.types_tried));
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = kernel->plan.chosen[group];

		if (!row && !(groups >> group & 1)) {
			text_add_format(to, "%s: nobody asked for it\n",
					probe_group_rows[group].name);
			continue;
		}
		if (!row && !probe_group_rows[group].without) {
			text_add_format(to, "%s: none; nothing is lacking, at a price\n",
					probe_group_rows[group].name);
			continue;
		}
		text_add_format(to, "%s: %s%s%s\n", probe_group_rows[group].name,
				row ? probe_kind_names[row->kind] : "none",
				row ? " on " : "; not seen: ",
				row ? row->event : probe_group_rows[group].without);
	}
	text_add_string(to, kernel->left_out);
	text_add_string(to, text_string(&kernel->compiled.output));
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
	chosen_describe(&live->config, &live->kernel, options.groups, &live->chosen);
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
	int err = live_processes_find(live, e);

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
