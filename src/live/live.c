/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live host as a source of scans:
 *
 *   kernel's thread state array --> record --> wanted? --> sample --> lookups --> scan
 *
 * The filter is evaluated before anything is looked up.
 */
#include "live/live.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/priority.h"
#include "base/progress.h"
#include "live/context/live_limits.h"
#include "kernel/btf_types.h"
#include "kernel/task_query.h"
#include "kernel/registers.h"
#include "live/scan/live_account.h"
#include "live/scan/live_describe.h"
#include "live/live_grow.h"
#include "live/context/live_host.h"
#include "live/scan/live_look.h"
#include "live/scan/live_own.h"
#include "live/live_options.h"
#include "live/live_proc.h"
#include "live/scan/live_parsers.h"
#include "live/scan/live_state.h"
#include "live/live_trace.h"
#include "live/trace_table.h"
#include "live/scan/live_wakeups.h"
#include "proc/cgroup.h"
#include "proc/devices.h"
#include "proc/page_cache.h"
#include "proc/proc.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bytes of transient names, and of threads' names, from which on lookups begin anew. */
#define TRANSIENT_BYTES_MAX (16u << 20)
#define TRANSIENT_STACKS_BYTES_MAX (32u << 20) /* limit where there are stacks, too */
#define COMMS_BYTES_MAX (2u << 20)
#define FIRST_SCAN_NS (NS_PER_SECOND / 20) /* every CPU's clock has ticked once by then */

/* Gives the capture back, with keys of threads that the next scan wants although only a wake-up
 * changes what they do, or that are awake and were not in this one. */
static void capture_return(struct live *live)
{
	struct live_capture *capture = live->context.now.capture;

	live->context.now.capture = NULL;
	if (capture)
		sampler_return(live->context.sampler, capture, &live->walk.keys_next,
			       live->context.wants.filter);
}

/* The first scan looks everything up: on a full host it would take as long as the start. */
static int scan_read(struct live *live)
{
	struct priority before;
	int err;

	if (live->context.now.scan_count)
		return live_scan_read(live);
	priority_raise(&before, !live->context.config.no_realtime);
	err = live_scan_read(live);
	priority_restore(&before);
	return err;
}

/* How far the clock was set forward since the scan before. While the host is suspended UTC goes on,
 * the monotonic clock does not. */
static int64_t clock_step_us(struct live *live)
{
	const struct live_capture *capture = live->context.now.capture;
	int64_t before_us = live->times.utc_ahead_us, slept_ns, step_us;

	live->times.utc_ahead_us = capture->time_us - capture->scan_time.now_ns / NS_PER_US;
	step_us = live->times.utc_ahead_us - before_us;
	if (before_us && llabs(step_us) < CLOCK_STEP_US)
		return 0;
	slept_ns = clock_boot_ns() - clock_monotonic_ns();
	step_us -= (slept_ns - live->times.slept_ns) / NS_PER_US;
	live->times.slept_ns = slept_ns;
	return before_us && llabs(step_us) >= CLOCK_STEP_US ? step_us : 0;
}

static int scan_deliver(struct live *live, struct scan *scan, struct error *e)
{
	int err;

	progress_end();
	live->context.now.scan_time = live->context.now.capture->scan_time;
	live->context.now.housekeeping =
		live->context.now.scan_time.now_ns - live->times.housekept_ns >= HOUSEKEEPING_NS;
	live->batch.scan = (struct scan){
		.time_us = live->context.now.capture->time_us,
		.scan_time_ns = live->context.now.scan_time.now_ns,
		.weight_us =
			(live->context.now.scan_time.now_ns - live->times.previous_ns) / NS_PER_US,
		.clock_step_us = clock_step_us(live),
		.samples = live->batch.samples,
	};
	live->times.previous_ns = live->context.now.scan_time.now_ns;
	err = scan_read(live);
	*scan = live->batch.scan;
	scan->threads = live->walk.threads;
	if (live->batch.err && live->batch.err != -EOWNERDEAD)
		return live->batch.err;
	if (err)
		return error_set(e, -err, EXIT_FAILED,
				 "the thread state array can't be read any more: %s",
				 strerror(-err));
	/* checked after the scan, so that the programs ran all through it */
	if (live->context.now.housekeeping && !share_alive(&live->context.kernel.share))
		return error_set(e, EOWNERDEAD, EXIT_FAILED,
				 "the tsnap that shared '%s' has ended, and its programs with it, "
				 "because links can't be pinned here",
				 live->context.kernel.share.directory.name);
	live->context.now.scan_count++;
	return 1;
}

static int live_next(struct source *source, struct scan *scan, struct error *e)
{
	struct live *live = (struct live *)source;
	int err = live_grow(live);

	live_own_check(live);
	if (!err)
		err = sampler_take(live->context.sampler, &live->realtime,
				   &live->context.now.capture);
	if (err)
		return err;
	live->context.totals.read_ns = clock_monotonic_ns(); /* the copy was read before this */
	err = scan_deliver(live, scan, e);
	live->context.totals.read_ns = 0;
	capture_return(live);
	return err;
}

static bool transient_crowded(const struct live *live)
{
	return names_transient_bytes() >=
	       (live->stacks.needs ? TRANSIENT_STACKS_BYTES_MAX : TRANSIENT_BYTES_MAX);
}

static bool live_crowded(const struct source *source)
{
	return transient_crowded((const struct live *)source) ||
	       names_comms_bytes() >= COMMS_BYTES_MAX;
}

/* Drops names once they take much memory. The first scan after that looks all up again: every few
 * hours at most, unless a program renames its threads all the time. */
static void live_release(struct source *source)
{
	struct live *live = (struct live *)source;
	bool transient = transient_crowded(live);
	bool comms = names_comms_bytes() >= COMMS_BYTES_MAX;

	if (!transient && !comms)
		return;
	episodes_forget_samples(&live->episodes);
	lookup_free(live->context.lookup);
	if (transient && live->stacks.needs)
		live_stacks_forget_words(&live->stacks);
	if (transient)
		names_transient_clear();
	if (comms)
		names_comms_clear();
	live->context.lookup = live_lookup_new(live);
}

static void live_close(struct source *source)
{
	struct live *live = (struct live *)source;

	progress_end();
	sampler_end(live->context.sampler);
	live_self_close(&live->self);
	live_own_end(live);
	live_kernel_end(live);
	kernel_close(&live->context.kernel);
	live_stacks_done(&live->stacks);
	lookup_free(live->context.lookup);
	live_seed_done(&live->context.seed);
	totals_done(&live->context.totals);
	live_accounts_done(&live->accounts);
	live_block_done(&live->context.now.block);
	live_chains_free(live->chains);
	live_wakeups_done(&live->wakeups);
	runtime_locks_done(&live->runtime_locks);
	live_parsers_end(&live->context);
	live_host_done(&live->host);
	live_held_done(&live->held);
	cgroup_events_done(&live->cgroup_events);
	dns_queries_done(&live->queries);
	episodes_clear(&live->episodes);
	free(live->walk.arrived_ns);
	index_clear(&live->walk.ambiguous);
	index_clear(&live->walk.awake);
	index_clear(&live->walk.crowds);
	index_clear(&live->walk.awake_next);
	index_clear(&live->walk.keys_next);
	proc_values_pool_done(&live->batch.proc_values);
	text_done(&live->chosen);
	text_done(&live->remarks);
	live_processes_done(&live->processes);
	free(live);
}

/* Returns the parent's pid, as /proc shows it. */
static uint32_t keeper_find(uint32_t own_pid)
{
	struct proc_stat stat;

	return proc_stat_read(PROC, own_pid, own_pid, &stat) ? 0 : (uint32_t)stat.ppid;
}

static int sampling_begin(struct live *live, int64_t due_ns)
{
	const struct sampler_options options = {
		.wants = {.kernel = &live->context.kernel,
			  .proc = live->context.proc,
			  .cpu_stacks = &live->stacks.cpu.sampler,
			  .kept = &live->stacks.kept.stacks,
			  .stacks_copy = live->stacks.needs ? live_copies_make : NULL,
			  .stacks_copier = &live->stacks.copies,
			  .filter = live->context.wants.filter,
			  .all = live->context.wants.idle,
			  .refused =
				  live->context.config.descendants || live->context.view.translated,
			  .blockers = live->context.wants.needs & (NEEDS_SETTLED & ~NEEDS_STACKS),
			  .registers = live->context.wants.needs & NEED_SYSCALL,
			  .block = live->context.wants.needs & NEED_BLOCK,
			  .irqs = live->context.wants.needs & NEED_IRQ,
			  .memory = live->context.wants.needs & (NEED_TRACE | NEED_CONTEXT),
			  .block_batch =
				  feature_has(&live->context.kernel.features, FEATURE_MAP_BATCH),
			  .period_ns = live->context.period_ns,
			  .own_pid = live->context.view.own_pid,
			  .keeper_pid = live->context.view.keeper_pid},
		.realtime = live->realtime,
		.period_ns = live->context.period_ns,
		.due_ns = due_ns,
		.registers_early = live->context.wants.probe_needs & NEEDS_REGISTERS,
	};

	return sampler_begin(&live->context.sampler, &options);
}

static unsigned int sandbox_uses(const struct live *live)
{
	uint64_t needs = live->context.config.loads_more ? ~0ull : live->context.wants.needs;
	unsigned int uses = SANDBOX_SAMPLES | sandbox_kernel_use();

	if (live->context.config.writes)
		uses |= SANDBOX_WRITES;
	if (needs & (NEED_KSTACK | NEED_WAKER_STACK))
		uses |= SANDBOX_STACKS;
	if (needs & (NEED_CONNECTION | NEED_WAITS | NEED_WAIT_CLASS | NEED_NET | NEED_SERVES) ||
	    live->context.wants.work)
		uses |= SANDBOX_NAMESPACES;
	/* not for columns that --top may show later: whoever has descriptors can write */
	if (live->context.wants.needs & NEED_CACHE)
		uses |= SANDBOX_CACHE;
	if (live->context.view.translated)
		uses |= SANDBOX_IDS;
	return uses;
}

/* Enters the sandbox: after the start, before the first look at what others have written. */
static void live_sandbox(struct live *live)
{
	struct text words = {0}, why = {0};

	if (live->context.wants.needs & NEED_CACHE)
		page_cache_allow();
	if (live->context.config.no_sandbox) {
		text_add_string(&words, "sandbox: none (--no-sandbox)\n");
	} else if (!strcmp(live->context.kernel.compiled.types_source, "kheaders")) {
		text_add_string(&words, "sandbox: none (kernel types from kheaders: a larger map "
					"takes tar again)\n");
	} else {
		live_limits_explain(-sandbox_enter(sandbox_uses(live), &words), &why);
		/* who forbids these calls wants a process with few rights, which tsnap is not */
		if (why.length)
			text_add_format(&live->remarks, "%.*s; %s\n", (int)words.length - 1,
					text_string(&words), text_string(&why));
	}
	text_add_string(&live->chosen, text_string(&words));
	text_done(&words);
	text_done(&why);
}

/* Locks the process's memory, so that a scan never waits for a page of its own to be read from
 * disk. */
static void live_lock(struct live *live)
{
	int err = memory_lock();

	if (err)
		text_add_format(&live->chosen, "memory: not locked (%s)\n",
				err == -EPERM ? "ulimit -l is too small" : strerror(-err));
	else
		text_add_string(&live->chosen, "memory: locked\n");
}

/* Begins the totals of a thread. Their present values are not this sampler's to report: the
 * thread's first row has what it did since this sampler came. */
static void totals_begin(void *to, const struct thread_state *record)
{
	struct live *live = to;
	struct thread_state completed;
	struct live_totals totals;
	struct sample sample;
	enum thread_state_kind state;
	bool ambiguous;

	if (live->context.view.translated &&
	    (!(record->identity.known & IDENTITY_FULL) || !record->identity.tid))
		return;
	/* completed as live_scan does it, so that it is the same thread there */
	record = live_seed_whole(record, &completed);
	if (!record)
		return;
	state = record_state(record, &live->context.now.scan_time, &ambiguous);
	record_sample(record, &live->context.now.scan_time, state, &sample);
	record_totals(record, &live->context.now.scan_time, state, &totals);
	totals_take(&live->context.totals, &totals, &sample);
}

/* --share and --attach. After kernel_open(): makes good what an attached sampler has not seen, or
 * lets others attach. */
static int share_begin(struct live *live, const struct kernel_options *options, struct error *e)
{
	const struct share *share = &live->context.kernel.share;
	int err;

	if (options->attach) {
		live->context.now.scan_time.now_ns = clock_monotonic_ns();
		if (live->context.wants.needs & NEED_TOTALS)
			thread_table_scan(&live->context.kernel.table, totals_begin, live);
		return 0;
	}
	err = kernel_publish(&live->context.kernel, options, e);
	if (err)
		return err;
	if (live->context.kernel.share_cleared)
		text_add_format(
			&live->remarks,
			"'%s' was left by a tsnap that was killed: removed and started again\n",
			options->share);
	if (share->needs_owner)
		text_add_format(
			&live->remarks,
			"links can't be pinned here: others can attach to '%s' only as long "
			"as this tsnap runs\n",
			options->share);
	return 0;
}

static void look_set(void *of, int64_t tid, uint64_t address)
{
	struct live *live = of;

	kernel_look_at(&live->context.kernel, tid, address);
}

static int live_start(struct live *live, struct error *e)
{
	int64_t due_ns;
	const struct probe_row *clock;
	struct kernel_options options;
	int err;

	live_kernel_options(&live->context.config, live->context.wants.filter,
			    live->context.wants.probe_needs, &options);
	live->context.totals.begun_ns = options.attach ? 0 : clock_monotonic_ns();
	err = live_own_begin(live, e);
	if (!err)
		err = live_kernel_begin(live, &options, e);
	if (err)
		return err;
	live->accounts.attached_ns = clock_monotonic_ns();
	live->stacks.modules.without_tables =
		!feature_has(&live->context.kernel.features, FEATURE_UNWINDER);
	live_stacks_open(&live->stacks);
	live_chosen_describe(&live->context.config, &live->context.kernel, options.groups,
			     &live->chosen);
	live_stacks_ways(&live->stacks, &live->chosen);
	live->context.now.scan_time.registers_marked =
		live->context.kernel.compiled.registers_kept & REGISTERS_MARKED;
	live->context.now.scan_time.registers_known =
		live->context.kernel.compiled.stack_registers != 0;
	live->context.view.own_pid = (uint32_t)live->context.kernel.host.own_pid;
	live->context.view.keeper_pid =
		live->context.config.kept ? keeper_find(live->context.view.own_pid) : 0;
	live->context.view.translated = live->context.kernel.compiled.pids_translated;
	live->context.view.proc_whole = !access(PROC "/1", F_OK);
	/* an attached sampler finds threads in the records of the one that shares, but for threads
	 * that wait for a record; the first scan sorts out which do */
	progress_step("looking for the threads there are");
	if (!live->context.proc && (!options.attach || live->context.view.translated))
		err = live_seed_all(&live->context.seed, &live->context.kernel, e);
	btf_kernel_forget();
	if (!err)
		err = share_begin(live, &options, e);
	if (err)
		return err;
	clock = live->context.kernel.plan.chosen[GROUP_CLOCK];
	live->context.period_ns = NS_PER_SECOND / live->context.config.rate_hz;
	live->times.housekept_ns = clock_monotonic_ns();
	due_ns = live->times.housekept_ns;
	if (!clock || clock->kind != PROBE_LOOK)
		due_ns += live->context.period_ns < FIRST_SCAN_NS ? live->context.period_ns
								  : FIRST_SCAN_NS;
	live->times.previous_ns = due_ns - live->context.period_ns;
	if (live->times.previous_ns < live->accounts.attached_ns) /* exact times begin then */
		live->times.previous_ns = live->accounts.attached_ns;
	live->context.totals.reported_ns = live->times.previous_ns;
	live->times.housekept_ns -= HOUSEKEEPING_NS; /* the first scan looks at everything */
	live_accounts_begin(&live->accounts, &live->context);
	if (live->context.config.self)
		live_self_open(&live->self, &live->context.kernel, live->times.own_cpu_start_ns);
	if (live->context.config.traces)
		latency_reader_begin(&live->context.kernel.latency,
				     live->context.config.distributions, clock_monotonic_ns());
	progress_end();
	live_lock(live);
	live_sandbox(live);
	live_host_init(&live->host, &live->context);
	if (live->stacks.needs & NEED_USTACK)
		parsers_describe(live->context.parsers, live->context.config.no_sandbox,
				 &live->chosen);
	err = sampling_begin(live, due_ns);
	/* where processes are few (pids.max), samples matter more than names of functions */
	if (err == -EAGAIN && live->context.parsers) {
		parsers_give_up(live->context.parsers, err);
		err = sampling_begin(live, due_ns);
	}
	if (!err)
		live_parsers_start(&live->context);
	return err ? error_set(e, -err, EXIT_FAILED, "the sampling thread can't be started: %s",
			       strerror(-err))
		   : 0;
}

struct lookup *live_lookup_new(struct live *live)
{
	struct lookup *lookup = lookup_new(PROC);

	waits_set_daemon_ports(lookup_waits(lookup), live->context.config.daemon_ports);
	lookup_set_container_reader(lookup, live_container_read, &live->context);
	lookup_set_task_reader(lookup, task_query_ids);
	waits_set_runtime_locks(lookup_waits(lookup), runtime_lock_find, &live->runtime_locks);
	apps_set_parser(lookup_apps(lookup), live_parser(&live->context, PARSER_MEMORY));
	apps_set_pointer_reader(lookup_apps(lookup), task_query_thread_pointer);
	apps_set_look_setter(lookup_apps(lookup), look_set, live);
	if (live->context.config.hides_texts)
		apps_hide_texts(lookup_apps(lookup));
	return lookup;
}

/* Does all of the start that takes time. */
static int live_begin(struct live *live, uint64_t needs, struct error *e)
{
	struct filter *filter = live->context.wants.filter;
	int err = live_processes_find(&live->processes, &live->context.config, filter,
				      &live->remarks, e);

	live->context.wants.filter_needs = filter_needs(filter);
	live->context.wants.needs = needs | live->context.wants.filter_needs |
				    trace_needs_of(live->context.config.traces);
	if (live->context.wants.needs & (NEED_BLOCKER | NEED_PATH))
		live->context.wants.optional_needs =
			(NEED_BLOCK | NEED_WAKER) & ~live->context.wants.needs;
	live->context.wants.needs |= live->context.wants.optional_needs;
	live->context.wants.probe_needs =
		live->context.wants.needs & ~(filter->no_samples ? NEEDS_REGISTERS : 0);
	live_parsers_begin(&live->context);
	apps_set_parser(lookup_apps(live->context.lookup),
			live_parser(&live->context, PARSER_MEMORY));
	runtime_locks_init(&live->runtime_locks, PROC, live_parser(&live->context, PARSER_MEMORY));
	live_stacks_init(&live->stacks, &live->context, &live->source, live->batch.samples);
	live->context.wants.idle = filter_wants_idle(filter);
	live->context.wants.work = filter_wants_work(filter);
	return err ? err : live_start(live, e);
}

static void account_of_source(struct source *source, account_callback *take, void *to)
{
	struct live *live = (struct live *)source;

	/* a sweep goes by what scans have marked: an account marks anew */
	if (live->context.wants.needs & NEED_PROCESSES && live->context.wants.needs & NEED_TOTALS)
		live->walk.sweep = false;
	live_accounts_report(&live->accounts, take, to);
}

static int traced_of_source(struct source *source, bool all, uint64_t needs, trace_callback *take,
			    void *to, struct error *e)
{
	struct live *live = (struct live *)source;

	return live_traced(&live->context, &live->stacks, all, needs, take, to, e);
}

static void events_of_source(struct source *source, bool all, uint64_t needs, event_callback *take,
			     void *to)
{
	struct live *live = (struct live *)source;

	live_events(&live->context, &live->stacks, &live->queries, all, needs, take, to);
	live_cgroup_events(&live->context, &live->cgroup_events, take, to);
}

static int64_t wakeups_of_source(struct source *source, wake_callback *take, void *to)
{
	struct live *live = (struct live *)source;

	return live_wakeups_take(&live->wakeups, &live->context, take, to);
}

static void follow_of_source(struct source *source, int64_t tid)
{
	live_wakeups_follow(&((struct live *)source)->wakeups, tid);
}

static void settle_of_source(struct source *source)
{
	episodes_settle(&((struct live *)source)->episodes);
}

static void stacks_end_of_source(struct source *source)
{
	live_dictionary_end(&((struct live *)source)->stacks);
}

static void stacks_anew_of_source(struct source *source)
{
	live_dictionary_anew(&((struct live *)source)->stacks);
}

static int64_t priority_of_source(const struct source *source, int64_t tid)
{
	struct sched_param param;
	int policy = sched_getscheduler((pid_t)tid) & ~SCHED_RESET_ON_FORK, nice;

	(void)source;
	if (policy < 0) /* no such thread */
		return ABSENT;
	if (policy == SCHED_IDLE)
		return 60;
	if (!sched_getparam((pid_t)tid, &param) && param.sched_priority)
		return -1 - param.sched_priority;
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)tid);
	return errno ? ABSENT : 20 + nice;
}

static bool io_group_has_of_source(const struct source *source, int64_t tid, const char *path)
{
	char text[4096];
	size_t length, outer = strlen(path);
	const char *group = NULL;

	(void)source;
	if (proc_file_read(PROC, 0, tid, "cgroup", text, sizeof(text)) > 0 &&
	    !(group = cgroup_of_controller(text, "blkio", &length)))
		group = cgroup_of_controller(text, "io", &length);
	return group && length >= outer && !strncmp(group, path, outer) &&
	       (length == outer || group[outer] == '/');
}

static int64_t rotates_of_source(const struct source *source, const char *device)
{
	(void)source;
	return device_rotates(BLOCK_CLASS, device);
}

static const struct host_source host_source = {
	.account = account_of_source,
	.settle = settle_of_source,
	.release = live_release,
	.crowded = live_crowded,
	.rotates = rotates_of_source,
	.priority = priority_of_source,
	.io_group_has = io_group_has_of_source,
	.stacks_end = stacks_end_of_source,
	.stacks_anew = stacks_anew_of_source,
	.traced = traced_of_source,
	.events = events_of_source,
	.wakeups = wakeups_of_source,
	.follow = follow_of_source,
	.look = live_look,
};

int live_open(const struct live_config *config, struct filter *filter, uint64_t needs,
	      struct source **source, struct error *e)
{
	struct live *live = memory_get(sizeof(*live));

	live_held_init(&live->held);
	struct priority before; /* on a full host the start would take many seconds */
	int err;

	live->source = (struct source){.next = live_next,
				       .describe = live_describe,
				       .close = live_close,
				       .host = &host_source};
	live->episodes.source = &live->source;
	progress_begin();
	live->context.config = *config;
	live->context.wants.filter = filter;
	live->times.own_cpu_start_ns = clock_cpu_ns();
	live->times.own_start_ns = clock_monotonic_ns();
	compile_result_init(&live->context.kernel.compiled, 0); /* no descriptor is 0 */
	live->context.lookup = live_lookup_new(live);
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
