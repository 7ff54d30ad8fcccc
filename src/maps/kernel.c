/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/kernel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"
#include "kernel/bpf_call.h"
#include "kernel/bpf_cost.h"
#include "kernel/host.h"
#include "maps/process_totals.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MIN 16384
#define OWN_ROOM 4 /* times as many records in own memory, where unused ones take none */
#define CLOCK_LATE_NS (2 * NS_PER_SECOND) /* a tick comes at least once a second */

static bool kernel_has(void *of, const struct probe_row *row)
{
	struct kernel *kernel = of;

	return probe_offered(&kernel->features, row, NULL);
}

static int proc_check(const struct host *host, struct error *e)
{
	const char *why = host_proc_lacks(host);

	if (!why)
		return 0;
	if (host->own_pid_err == -ENOENT)
		return error_set(e, ENOENT, EXIT_HOST_CANNOT, "%s: mount -t proc proc /proc", why);
	return error_set(e, -host->own_pid_err, EXIT_HOST_CANNOT, "readlink of /proc/self: %s",
			 why);
}

/* Checks that BPF works, which also raises the limit that maps count against, before 5.11. */
static int bpf_check(struct kernel *kernel, struct error *e)
{
	const char *why = kernel->features.why[FEATURE_BPF];
	int err;

	if (feature_has(&kernel->features, FEATURE_BPF))
		return 0;
	err = error_of_words(why);
	/* privileges, lockdown and filters refuse with these alone */
	if (err && err != EPERM && err != EACCES && err != ENOSYS)
		return error_set(e, err, EXIT_FAILED, "BPF does not work here (%s)", why);
	if (!kernel->host.root && !kernel->host.cap_bpf)
		return error_set(e, EPERM, EXIT_HOST_CANNOT, "this user may not use BPF (%s): %s",
				 why, feature_rows[FEATURE_BPF].remedy);
	if (kernel->host.lockdown[0] && strcmp(kernel->host.lockdown, "none") != 0)
		return error_set(e, EPERM, EXIT_HOST_CANNOT,
				 "kernel lockdown is '%s' and BPF is forbidden (%s): only a "
				 "boot without lockdown (lockdown=none, secure boot off) helps",
				 kernel->host.lockdown, why);
	if (kernel->host.seccomp && (kernel->host.cap_bpf || kernel->host.cap_admin))
		return error_set(e, EPERM, EXIT_HOST_CANNOT,
				 "BPF does not work here (%s), and a filter of system calls "
				 "(seccomp) is in force: have it allow bpf and perf_event_open "
				 "(seccomp=unconfined, or a profile that knows CAP_BPF)",
				 why);
	return error_set(e, EPERM, EXIT_HOST_CANNOT,
			 "BPF does not work here (%s): in a container give it CAP_BPF, "
			 "CAP_PERFMON and CAP_SYS_PTRACE (or CAP_SYS_ADMIN) and a higher "
			 "memory limit (ulimit -l)",
			 why);
}

int kernel_plan(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	int result;

	host_read(&kernel->host);
	result = features_take_away(&kernel->features, options->without, e);
	if (!result)
		result = proc_check(&kernel->host, e);
	if (!result)
		result = bpf_check(kernel, e);
	if (!result)
		result = probe_plan_make(options->groups, kernel_has, kernel, &kernel->plan, e);
	if (!result)
		own_probes_plan(options->own, &kernel->plan);
	return result;
}

static uint32_t threads_max(const struct host *host, const struct kernel_options *options)
{
	int64_t wanted = host_threads_count() * 3 / 2, limit = host_threads_limit(host);

	if (options->threads_max)
		return (uint32_t)options->threads_max;
	if (wanted < THREADS_MIN)
		wanted = THREADS_MIN;
	return (uint32_t)(wanted < limit ? wanted : limit);
}

static struct compile_request request_of(struct kernel *kernel,
					 const struct kernel_options *options)
{
	return (struct compile_request){
		.host = &kernel->host,
		.features = &kernel->features,
		.types_choice = options->types_choice,
		.btf_file = options->btf_file,
		.offsets_file = options->offsets_file,
		.cache_path = options->cache_path,
		.programs_file = options->programs_file,
		.write_programs = options->write_programs,
		.latency_control = options->takes_over ? options->takes_over->control : -1,
		.knobs = {
			.threads_max = threads_max(&kernel->host, options),
			.cpus_max = (uint32_t)kernel->host.cpus_possible,
			.parts = options->parts,
			.latency_kinds = options->latency_kinds,
			.trace_pids = options->trace_pids,
			.trace_tids = options->trace_tids,
			.trace_calls = options->trace_calls,
			.own = options->own,
			.turn_first = latency_turn_after(options->takes_over),
			.thread_flags = kernel_thread_flags_of(kernel->host.kernel_code),
			.block_argument =
				options->groups >> GROUP_BLOCK_ISSUE & 1 &&
				feature_has(&kernel->features, FEATURE_BLOCK_QUEUE_ARGUMENT),
			.slower_ns = options->slower_ns,
			.read_into_map = feature_has(&kernel->features, FEATURE_READ_INTO_MAP),
			.probe_read_kernel =
				feature_has(&kernel->features, FEATURE_PROBE_READ_KERNEL),
			.thread_slots = feature_has(&kernel->features, FEATURE_THREAD_SLOTS),
			.process_totals = options->process_totals,
		}};
}

static void kernel_clear(struct kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	compile_result_init(&kernel->compiled, 0);
}

int kernel_layout(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	struct compile_request request;
	int result;

	kernel_clear(kernel);
	host_read(&kernel->host);
	result = features_take_away(&kernel->features, options->without, e);
	if (result)
		return result;
	request = request_of(kernel, options);
	return compile_child_run(&request, &kernel->compiled, e);
}

/* Reports why the kernel does not offer the group's last probe, which is the oldest. */
static int latency_refuse(struct kernel *kernel, enum probe_group group, struct error *e)
{
	const struct probe_row *last = probe_rows;
	const char *missing = "";

	for (size_t i = 0; i < probe_row_count; i++)
		if (probe_rows[i].gives == group)
			last = &probe_rows[i];
	probe_offered(&kernel->features, last, &missing);
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "--trace: there is no probe for '%s', which this kind needs: %s: %s; "
			 "tsnap --check says more",
			 probe_group_rows[group].name, missing,
			 feature_has(&kernel->features, last->wants)
				 ? "tracefs does not show it"
				 : kernel->features.why[last->wants]);
}

static int latency_check(struct kernel *kernel, const struct kernel_options *options,
			 struct error *e)
{
	for (int group = 0; group < GROUP_COUNT; group++)
		if (options->latency_groups >> group & 1 && !kernel->plan.chosen[group])
			return latency_refuse(kernel, (enum probe_group)group, e);
	return 0;
}

/* Only a raw tracepoint shows what stack its waker is on, and only mapped rings are cheap. */
static int wakes_check(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	const struct probe_row *row = kernel->plan.chosen[GROUP_WAKE];

	if (!(options->parts >> PART_WAKES & 1) ||
	    (feature_has(&kernel->features, FEATURE_THREAD_SLOTS) && row &&
	     (row->kind == PROBE_RAW_TRACEPOINT || row->kind == PROBE_TYPED_TRACEPOINT)))
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "--critical-path needs raw tracepoints (4.17) and maps that can be mapped "
			 "(5.5), which this kernel lacks; tsnap --check says more");
}

/* Only a raw tracepoint gives both threads of a switch, and only mapped slots are cheap. */
static int work_check(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	const struct probe_row *row = kernel->plan.chosen[GROUP_SWITCH];

	if (!(options->latency_kinds >> LATENCY_WORK & 1) ||
	    (feature_has(&kernel->features, FEATURE_THREAD_SLOTS) && row &&
	     (row->kind == PROBE_RAW_TRACEPOINT || row->kind == PROBE_TYPED_TRACEPOINT)))
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "--trace work needs raw tracepoints (4.17) and maps that can be mapped "
			 "(5.5), which this kernel lacks; tsnap --check says more");
}

/* After the calibration. */
static int work_call_check(const struct kernel *kernel, const struct kernel_options *options,
			   struct error *e)
{
	if (!(options->latency_kinds >> LATENCY_WORK & 1) || kernel->compiled.stack_registers)
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "--trace work: it was not found where this kernel saves the registers of "
			 "a system call; tsnap --check says more");
}

/* After the types were found. Without these members the programs note nothing. */
static int incidents_check(const struct kernel *kernel, const struct kernel_options *options,
			   struct error *e)
{
	if (!(options->latency_groups >> GROUP_END & 1) ||
	    field_sets_there(&kernel->compiled.layout, FIELDS_END))
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "--trace incidents: the kernel types lack members of task_struct and "
			 "signal_struct that it needs: give another source");
}

static int kernel_make(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	struct compile_request request;
	int result = kernel_plan(kernel, options, e);

	if (!result)
		result = latency_check(kernel, options, e);
	if (!result)
		result = wakes_check(kernel, options, e);
	if (!result)
		result = work_check(kernel, options, e);
	if (result)
		return result;
	probe_clear_stale();
	if (options->share)
		result = share_directory_make(&kernel->share.directory, options->share,
					      &kernel->share_cleared, e);
	if (result)
		return result;
	request = request_of(kernel, options);
	request.plan = &kernel->plan;
	result = compile_child_run(&request, &kernel->compiled, e);
	if (!result)
		result = work_call_check(kernel, options, e);
	return result ? result : incidents_check(kernel, options, e);
}

static int kernel_adopt(struct kernel *kernel, const struct kernel_options *options,
			struct error *e)
{
	int result;

	host_read(&kernel->host);
	result = proc_check(&kernel->host, e);
	if (!result)
		result = bpf_check(kernel, e);
	return result ? result
		      : share_adopt(&kernel->share, options->attach, &kernel->host,
				    &kernel->compiled, &kernel->plan, e);
}

static int maps_open(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	const int *maps = kernel->compiled.maps;
	struct thread_maps threads = {maps[KERNEL_MAP_THREADS], maps[KERNEL_MAP_SLOTS],
				      maps[KERNEL_MAP_FREE],
				      feature_has(&kernel->features, FEATURE_MAP_BATCH)};
	bool mapped = maps[KERNEL_MAP_SLOTS] >= 0;
	int result = thread_table_init(&kernel->table, &threads, kernel->compiled.threads_max);

	if (!result)
		result = changed_reader_init(
			&kernel->changed,
			kernel->plan.chosen[GROUP_WAKE] ? maps[KERNEL_MAP_SAMPLING] : -1,
			maps[KERNEL_MAP_CHANGED], kernel->host.cpus_possible, mapped);
	if (!result && !options->attach) /* the rows of scan times are the owner's */
		result =
			scan_time_rows_init(&kernel->scan_time, maps[KERNEL_MAP_SAMPLING],
					    maps[KERNEL_MAP_SCAN_TIME], kernel->host.cpus_possible);
	if (!result)
		result = held_reader_init(&kernel->held, maps[KERNEL_MAP_HELD],
					  kernel->compiled.threads_max);
	if (result)
		return error_set(e, -result, EXIT_FAILED,
				 "the thread state array can't be mapped: %s", strerror(-result));
	result = latency_reader_init(&kernel->latency, maps[KERNEL_MAP_LATENCY],
				     &maps[KERNEL_MAP_LATENCY_ONE], &maps[KERNEL_MAP_SLOTS_ONE],
				     kernel->host.cpus_possible,
				     feature_has(&kernel->features, FEATURE_MAP_BATCH));
	kernel->latency.first = latency_turn_after(options->takes_over);
	if (result)
		return error_set(e, -result, EXIT_FAILED, "the histograms can't be mapped: %s",
				 strerror(-result));
	result = event_reader_init(&kernel->events, maps[KERNEL_MAP_EVENTS],
				   kernel->host.cpus_possible, mapped);
	if (result)
		return error_set(e, -result, EXIT_FAILED, "the events can't be mapped: %s",
				 strerror(-result));
	result = wake_reader_init(&kernel->wakes, maps[KERNEL_MAP_WAKES],
				  kernel->host.cpus_possible, kernel->compiled.stack_registers);
	if (result)
		return error_set(e, -result, EXIT_FAILED, "the wake-ups can't be mapped: %s",
				 strerror(-result));
	result = idle_keys_init(&kernel->idle_keys, maps[KERNEL_MAP_WORK],
				kernel->compiled.threads_max);
	if (result)
		return error_set(e, -result, EXIT_FAILED, "the idle keys can't be mapped: %s",
				 strerror(-result));
	result = register_requester_init(&kernel->requester,
					 kernel->compiled.programs[GROUP_REQUEST],
					 maps[KERNEL_MAP_SAMPLING], maps[KERNEL_MAP_REQUESTS]);
	if (result == -EBUSY)
		return error_set(
			e, EBUSY, EXIT_FAILED,
			"%d tsnap processes, the maximum, already sample with these probes",
			REQUESTERS_MAX);
	if (!result)
		result = register_requester_add_stacks(&kernel->requester,
						       kernel->compiled.programs[GROUP_STACK],
						       maps[KERNEL_MAP_STACK_REQUESTS]);
	return result ? error_set(e, -result, EXIT_FAILED,
				  "the registers can't be read on demand: %s", strerror(-result))
		      : 0;
}

struct own_record {
	uint32_t own_tid; /* tid as /proc shows it */
	uint32_t tid;	  /* tid as the kernel has it */
};

static bool own_record_passes(void *to, const struct thread_state *record, uint32_t key)
{
	const struct own_record *own = to;

	(void)key;
	return !(record->identity.known & IDENTITY_FULL) || record->identity.tid != own->own_tid;
}

static void own_record_meet(void *to, const struct thread_state *record)
{
	((struct own_record *)to)->tid = record->sched.tid;
}

/* Returns the tid that this thread has in the kernel, from its record: the probes were attached
 * before the thread was made. 0: not known (the map was full). */
static uint32_t own_tid(struct kernel *kernel)
{
	struct own_record own = {(uint32_t)kernel->host.own_pid, 0};
	const struct thread_visitor visitor = {own_record_passes, own_record_meet, &own};
	bool end;

	if (!kernel->compiled.pids_translated)
		return own.own_tid;
	thread_table_walk(&kernel->table, &visitor, UINT32_MAX, &end);
	return own.tid;
}

static int kernel_begin(struct kernel *kernel, const struct kernel_options *options,
			struct error *e)
{
	int result;

	kernel_clear(kernel);
	result = options->attach ? kernel_adopt(kernel, options, e)
				 : kernel_make(kernel, options, e);
	if (!result)
		result = maps_open(kernel, options, e);
	if (result)
		return result;
	if (options->attach) {
		kernel->compiled.own_tid = own_tid(kernel);
		return 0;
	}
	result = thread_table_clear(&kernel->table);
	if (!result)
		result = process_totals_begin(kernel->compiled.maps[KERNEL_MAP_PROCESSES]);
	if (result)
		return error_set(e, -result, EXIT_FAILED,
				 "the thread state array can't be filled: %s", strerror(-result));
	progress_step("attaching its BPF programs");
	return probe_attach(&kernel->plan, kernel->compiled.programs, options->rate_hz,
			    &kernel->links, kernel->left_out, sizeof(kernel->left_out), e);
}

int kernel_open(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	int result = kernel_begin(kernel, options, e);
	struct kernel_options others = *options;
	struct text without = {0};
	struct error taken = *e;
	int second;

	if (!kernel->links.taken || !feature_has(&kernel->features, FEATURE_KPROBE))
		return result;
	/* tsnap itself may have taken the tracepoint, for a map that is too small */
	kernel_close(kernel);
	*e = (struct error){0};
	text_add_format(&without, "%s%stracepoint", options->without ? options->without : "",
			options->without ? "," : "");
	others.without = text_string(&without);
	second = kernel_begin(kernel, &others, e);
	text_done(&without);
	if (second != -ENOTSUP) {
		error_done(&taken);
		return second;
	}
	/* the requested probes need tracepoints, which the kernel has */
	error_done(e);
	*e = taken;
	return result;
}

int kernel_open_without(struct kernel *kernel, const struct kernel_options *options,
			bool (*lasts)(const struct thread_state *record), struct error *e)
{
	int result;

	kernel_clear(kernel);
	register_requester_init(&kernel->requester, -1, -1, -1);
	host_read(&kernel->host);
	result = proc_check(&kernel->host, e);
	for (int i = 0; !result && i < FEATURE_COUNT; i++)
		if (i != FEATURE_UNWINDER)
			result = features_take_away(&kernel->features, feature_rows[i].name, e);
	if (result)
		return result;
	kernel->compiled.threads_max = options->threads_max
					       ? (uint32_t)options->threads_max
					       : OWN_ROOM * threads_max(&kernel->host, options);
	result = thread_table_init_own(&kernel->table, kernel->compiled.threads_max, lasts);
	return result ? error_set(e, -result, EXIT_FAILED,
				  "there is no memory for the thread state array: %s",
				  strerror(-result))
		      : 0;
}

int kernel_publish(struct kernel *kernel, const struct kernel_options *options, struct error *e)
{
	if (!options->share)
		return 0;
	return share_publish(&kernel->share, &kernel->host, &kernel->compiled, &kernel->plan,
			     &kernel->links, feature_has(&kernel->features, FEATURE_PINNED_LINKS),
			     e);
}

void kernel_close(struct kernel *kernel)
{
	probe_detach(&kernel->links);
	changed_reader_done(&kernel->changed);
	scan_time_rows_done(&kernel->scan_time);
	held_reader_done(&kernel->held);
	latency_reader_done(&kernel->latency);
	event_reader_done(&kernel->events);
	wake_reader_done(&kernel->wakes);
	idle_keys_done(&kernel->idle_keys);
	register_requester_done(&kernel->requester);
	if (kernel->table.store)
		thread_table_done(&kernel->table);
	share_leave(&kernel->share);
	compile_result_done(&kernel->compiled);
}

/* Reads the only entry of a per-CPU array: one value for each possible CPU, each rounded up to 8
 * bytes. */
static int cpu_values_read(int map, void *values)
{
	uint32_t zero = 0;

	return map < 0 || bpf_lookup_elem(map, &zero, values) ? -ENOENT : 0;
}

/* Attaches late perf clocks again: a clock that is late where a thread runs ended when its CPU went
 * offline, or never began there. */
static void clocks_renew(struct kernel *kernel, const unsigned char *wanted,
			 const struct cpu_tick *ticks)
{
	int64_t now_ns = clock_monotonic_ns();

	if (!kernel->links.clock_count || now_ns - kernel->clocks_looked_ns < CLOCK_LATE_NS)
		return;
	kernel->clocks_looked_ns = now_ns;
	for (int cpu = 0; cpu < kernel->host.cpus_possible; cpu++)
		if (wanted[cpu] && now_ns - (int64_t)ticks[cpu].tick_ns > CLOCK_LATE_NS)
			probe_clock_attach(&kernel->links, cpu);
}

int kernel_ticks_read(struct kernel *kernel, const unsigned char *wanted, struct cpu_tick *ticks)
{
	const struct probe_row *row = kernel->plan.chosen[GROUP_CLOCK];

	/* a CPU that went offline keeps its last look */
	for (int cpu = 0; row && row->kind == PROBE_LOOK && cpu < kernel->host.cpus_possible; cpu++)
		if (wanted[cpu])
			bpf_call_run_on_cpu(kernel->compiled.programs[GROUP_CLOCK], cpu);
	_Static_assert(sizeof(struct cpu_tick) % 8 == 0, "per-CPU values are rounded up to 8");
	if (cpu_values_read(kernel->compiled.maps[KERNEL_MAP_TICKS], ticks))
		return 0;
	clocks_renew(kernel, wanted, ticks);
	return kernel->host.cpus_possible;
}

bool kernel_memory_read(struct kernel *kernel, struct memory_look *looks)
{
	_Static_assert(sizeof(struct memory_look) % 8 == 0, "per-CPU values are rounded up to 8");
	return !cpu_values_read(kernel->compiled.maps[KERNEL_MAP_MEMORY], looks);
}

void kernel_look_at(struct kernel *kernel, int64_t tid, uint64_t address)
{
	uint32_t key = (uint32_t)tid;

	if (kernel->compiled.maps[KERNEL_MAP_LOOK_AT] >= 0)
		bpf_update_elem(kernel->compiled.maps[KERNEL_MAP_LOOK_AT], &key, &address, 0);
}

struct probe_counters kernel_counters(struct kernel *kernel)
{
	_Static_assert(sizeof(struct probe_counters) % 8 == 0,
		       "per-CPU values are rounded up to 8");
	size_t cpus = (size_t)kernel->host.cpus_possible;
	struct probe_counters *counters = memory_get(cpus * sizeof(*counters)), sum = {0};

	sum.map_full = thread_table_unfit(&kernel->table);

	if (!cpu_values_read(kernel->compiled.maps[KERNEL_MAP_COUNTERS], counters))
		for (size_t i = 0; i < cpus; i++) {
			sum.map_full += counters[i].map_full;
			sum.latency_full += counters[i].latency_full;
			sum.block_full += counters[i].block_full;
			sum.block_unseen += counters[i].block_unseen;
			sum.probe_unread += counters[i].probe_unread;
			sum.probe_stacks += counters[i].probe_stacks;
		}
	free(counters);
	return sum;
}

int kernel_bpf_cost(struct kernel *kernel, uint64_t *ns, uint64_t *runs)
{
	uint64_t ns_sum = 0, runs_sum = 0;

	for (int group = 0; group < GROUP_COUNT; group++) {
		struct program_cost cost;

		if (kernel->compiled.programs[group] < 0 ||
		    program_cost_read(kernel->compiled.programs[group], &cost) || cost.runs < 0)
			continue;
		ns_sum += (uint64_t)cost.ns;
		runs_sum += (uint64_t)cost.runs;
	}
	if (!runs_sum)
		return -ENODATA;
	*ns = ns_sum;
	*runs = runs_sum;
	return 0;
}
