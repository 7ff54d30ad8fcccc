/* The live host as a source of scans:
 *
 *   kernel's thread state array --> record --> wanted? --> sample --> lookups --> scan
 *
 * The filter is asked before anything is looked up.
 */
#include "live.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "kernel/kernel.h"
#include "live_options.h"
#include "live_sample.h"
#include "live_seed.h"
#include "live_totals.h"
#include "lookup/lookup.h"
#include "lookup/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC "/proc"
#define CLOCK_RATE_MIN_HZ 20		    /* the perf clock's, so that its look is never old */
#define FIRST_SCAN_NS (NS_PER_SECOND / 20)  /* by then every CPU's clock has ticked once */
#define HOUSEKEEPING_NS (1 * NS_PER_SECOND) /* zombies, patterns, caches */
#define SWEEP_HOUSEKEEPINGS 10		    /* of forgotten totals */

struct live {
	struct source source;
	const struct config *config;
	struct filter *filter;
	unsigned int needs;
	struct kernel kernel;
	struct lookup *lookup;
	struct live_seed seed;
	struct totals_table totals;
	/* tid to switch sequence << 8 | what /proc said of it, plus one */
	struct index doubts;
	struct cpu_tick *ticks;
	struct live_moment moment;
	struct index awake, awake_next; /* tids that this scan must look at, and the next one */
	struct sample *samples;
	size_t count, capacity, threads;
	int64_t period_ns, due_ns, previous_ns, housekept_ns;
	int64_t own_cpu_start_ns;
	uint32_t own_pid;
	unsigned int housekeepings;
	bool keep_house, sweep; /* in this scan */
	uint64_t late_count;
	int64_t unfit_threads; /* in the last scan */
	struct text chosen;    /* for -v */
	char *pattern;	       /* of processes, looked for again as time goes; NULL: none */
};

static int pids_resolve(struct live *live, const char *text, struct error *e)
{
	char bad[128] = "";
	int64_t *pids = NULL;
	size_t count = 0;
	int err = proc_pids_find(PROC, text, &pids, &count, bad, sizeof(bad));

	if (err == -ENOENT)
		return error_set(e, -err, EXIT_FAILED,
				 "-p %s: no process has such a name; give ids or another pattern",
				 text);
	if (err == -ESRCH)
		return error_set(e, -err, EXIT_FAILED,
				 "-p %s: there is no process %s; see ps -e for those there are",
				 text, bad);
	if (err)
		return error_set(e, -err, EXIT_FAILED, "-p %s: %s", text, strerror(-err));
	for (size_t i = 0; i < count; i++)
		filter_add_pid(live->filter, pids[i]);
	free(pids);
	return 0;
}

/* Adds children of wanted processes until there are no more. */
static int descendant_add(void *to, int64_t pid, int64_t tid)
{
	struct live *live = to;
	struct proc_stat stat;

	if (pid != tid || index_find(&live->filter->pids, (uint64_t)pid) ||
	    proc_stat_read(PROC, pid, tid, &stat) ||
	    !index_find(&live->filter->pids, (uint64_t)stat.ppid))
		return 0;
	filter_add_pid(live->filter, pid);
	live->count++;
	return 0;
}

static void descendants_add(struct live *live)
{
	do {
		live->count = 0;
		proc_threads_walk(PROC, descendant_add, live);
	} while (live->count);
}

static int processes_find(struct live *live, struct error *e)
{
	const char *text = live->config->process;
	int err;

	if (!text)
		return 0;
	err = pids_resolve(live, text, e);
	if (err)
		return err;
	if (strspn(text, "0123456789,") != strlen(text))
		live->pattern = memory_text(text, strlen(text));
	if (live->config->descendants)
		descendants_add(live);
	return 0;
}

/* What /proc says of a thread whose record is in doubt. Asked once for each switch: unless it is
 * runnable, it stays as it is until the next one. */
static enum thread_doing doubt_resolve(struct live *live, const struct thread_state *record,
				       enum thread_doing doing)
{
	uint64_t sequence = record->sched.sequence_done << 8, *known;
	struct proc_stat stat;
	int64_t told;

	known = index_put(&live->doubts, record->identity.tid, NULL);
	if (*known >> 8 << 8 == sequence && *known & 0xff)
		return (enum thread_doing)((*known & 0xff) - 1);
	*known = 0;
	if (proc_stat_read(PROC, record->identity.tgid, record->identity.tid, &stat))
		return doing;
	told = state_of_proc_letter(stat.state);
	if (told == ABSENT)
		return doing;
	if (told != DOING_RQ)
		*known = sequence | (uint64_t)(told + 1);
	return (enum thread_doing)told;
}

/* A zombie that was waited for where no probe tells. Whether it is gone. */
static bool zombie_sweep(struct live *live, const struct thread_state *record)
{
	struct proc_stat stat;
	uint32_t tid = record->identity.tid;

	if (proc_stat_read(PROC, 0, tid, &stat) != -ENOENT)
		return false;
	thread_table_remove(&live->kernel.table, tid);
	return true;
}

static void house_keep_record(struct live *live, const struct thread_state *record)
{
	if (live->sweep)
		totals_mark(&live->totals, record->identity.tid);
	if (live->config->descendants &&
	    index_find(&live->filter->pids, record->identity.parent_tgid))
		filter_add_pid(live->filter, record->identity.tgid);
}

static void sample_fill(struct live *live, const struct thread_state *record,
			enum thread_doing doing, struct sample *sample)
{
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};

	if (live->needs & NEED_SYSCALL) {
		record_call(record, &live->moment, doing, sample, &hint.compat);
		if (record->sched.known & SCHED_SEEDED && doing != DOING_ZOMBIE &&
		    !sample->kthread && sample->syscall_nr == ABSENT)
			live_seed_call(&live->seed, sample, &hint.compat);
	}
	if (live->needs & NEED_TOTALS) {
		struct live_totals totals;

		record_totals(record, &live->moment, doing, &totals);
		totals_take(&live->totals, &totals, sample);
	}
	lookup_fill(live->lookup, sample, &hint, live->needs, live->moment.now_ns);
	sample_derive(sample, live->needs);
}

static bool sample_wanted(struct live *live, struct sample *sample)
{
	/* the user may have changed since the probes saw it */
	if (live->filter->by_user)
		lookup_fill(live->lookup, sample, &(struct lookup_hint){0}, NEED_USER,
			    live->moment.now_ns);
	return filter_accepts(live->filter, sample);
}

/* Whether only a wake-up can change what the thread does: then its being listed as woken is enough
 * to notice. */
static bool record_settled(const struct thread_state *record)
{
	bool unsure;
	struct live_moment ever = {.now_ns = INT64_MAX};
	enum thread_doing doing = record_doing(record, &ever, &unsure);

	return !record->sched.on_cpu && !unsure && !state_row(doing)->active;
}

static void record_take(void *to, const struct thread_state *record)
{
	struct live *live = to;
	struct thread_state completed;
	struct sample *sample;
	enum thread_doing doing;
	bool unsure;

	live->threads++;
	if (record->identity.tgid == live->own_pid)
		return;
	if (!(record->identity.known & IDENTITY_NAME)) {
		completed = *record;
		if (live_seed_identity(&completed))
			return;
		record = &completed;
	}
	if (live->keep_house || live->config->descendants)
		house_keep_record(live, record);
	if (!record_settled(record))
		index_put(&live->awake_next, record->identity.tid, NULL);
	doing = record_doing(record, &live->moment, &unsure);
	if (unsure)
		doing = doubt_resolve(live, record, doing);
	if (doing == DOING_ZOMBIE && live->keep_house && zombie_sweep(live, record))
		return;
	if (!live->filter->all_states && !state_row(doing)->active)
		return;
	if (live->count == live->capacity) {
		live->capacity = live->capacity ? 2 * live->capacity : 256;
		live->samples = memory_resize(live->samples, live->capacity, sizeof(*sample));
	}
	sample = &live->samples[live->count];
	record_sample(record, &live->moment, doing, sample);
	if (!sample_wanted(live, sample))
		return;
	sample_fill(live, record, doing, sample);
	live->count++;
}

/* What need not be done at every tick. */
static void house_keep(struct live *live)
{
	struct error ignored = {0};

	live->keep_house = live->moment.now_ns - live->housekept_ns >= HOUSEKEEPING_NS;
	if (!live->keep_house)
		return;
	live->housekept_ns = live->moment.now_ns;
	live->sweep = ++live->housekeepings % SWEEP_HOUSEKEEPINGS == 0;
	if (live->sweep)
		index_clear(&live->doubts);
	lookup_sweep(live->lookup, live->moment.now_ns);
	if (live->pattern)
		pids_resolve(live, live->pattern, &ignored);
	error_done(&ignored);
}

/* Sleeps until the next beat. A beat that was missed is counted, not made up for. */
static int beat_wait(struct live *live)
{
	int64_t late_ns = clock_monotonic_ns() - live->due_ns;
	int err;

	if (late_ns >= live->period_ns) {
		live->late_count += (uint64_t)(late_ns / live->period_ns);
		live->due_ns += late_ns / live->period_ns * live->period_ns;
	}
	err = clock_sleep_until(live->due_ns);
	if (!err)
		live->due_ns += live->period_ns;
	return err;
}

/* When this thread came on its CPU for this scan: whom it displaced left at that very moment. */
static int64_t own_in_ns(struct live *live)
{
	struct thread_state own;

	return thread_table_get(&live->kernel.table, live->own_pid, &own)
		       ? 0
		       : (int64_t)own.sched.in_ns;
}

static void awake_add(void *to, uint32_t tid)
{
	struct live *live = to;

	index_put(&live->awake, tid, NULL);
}

/* Hands over the records that this scan needs: all of them, or those of threads that were awake in
 * the last one or were woken since. All from time to time, should a wake-up have been missed. */
static int records_read(struct live *live)
{
	uint64_t tid, value;
	bool listed = changed_reader_take(&live->kernel.changed, awake_add, live);
	size_t at = 0;
	int err = 0;

	if (!listed || live->keep_house || live->config->all_states) {
		live->threads = 0;
		err = thread_table_scan(&live->kernel.table, record_take, live);
	} else {
		size_t threads = live->threads;

		while (index_next(&live->awake, &at, &tid, &value))
			thread_table_visit(&live->kernel.table, (uint32_t)tid, record_take, live);
		live->threads = threads;
	}
	index_clear(&live->awake);
	live->awake = live->awake_next;
	live->awake_next = (struct index){0};
	return err;
}

static int live_next(struct source *source, struct scan *scan, struct error *e)
{
	struct live *live = (struct live *)source;
	int err = beat_wait(live);
	int64_t threads;

	if (err)
		return err;
	live->moment.now_ns = clock_monotonic_ns();
	live->moment.tick_count = kernel_ticks_read(&live->kernel, live->ticks);
	live->moment.own_in_ns = own_in_ns(live);
	live->count = 0;
	house_keep(live);
	*scan = (struct scan){.time_us = clock_utc_us()};
	err = records_read(live);
	if (err)
		return error_set(e, -err, EXIT_FAILED,
				 "the thread state array can't be read any more: %s",
				 strerror(-err));
	if (live->sweep)
		totals_sweep(&live->totals);
	live->sweep = false;
	if (live->keep_house) {
		threads = host_threads_count();
		live->unfit_threads =
			threads > (int64_t)live->threads ? threads - (int64_t)live->threads : 0;
	}
	scan->weight_us = (live->moment.now_ns - live->previous_ns) / NS_PER_US;
	live->previous_ns = live->moment.now_ns;
	for (size_t i = 0; i < live->count; i++) {
		live->samples[i].time_us = scan->time_us;
		live->samples[i].weight_us = scan->weight_us;
	}
	scan->samples = live->samples;
	scan->count = live->count;
	scan->threads = live->threads;
	return 1;
}

static void missed_add_row(struct source_facts *facts, const char *what, uint64_t count)
{
	facts->missed[facts->missed_count++] = (struct source_missed){.what = what, .count = count};
}

static void live_describe(struct source *source, struct source_facts *facts)
{
	struct live *live = (struct live *)source;
	const struct kernel *kernel = &live->kernel;
	uint64_t ns, runs, full = kernel_map_full_count(&live->kernel) + live->seed.unfit_count;

	*facts = (struct source_facts){.bpf_ns = ABSENT, .bpf_runs = ABSENT};
	snprintf(facts->host, SOURCE_TEXT_SIZE, "%s", kernel->host.name);
	snprintf(facts->kernel, SOURCE_TEXT_SIZE, "%s", kernel->host.release);
	facts->cpus = kernel->host.cpus;
	facts->rate_hz = live->config->rate_hz;
	facts->own_cpu_ns = clock_cpu_ns() - live->own_cpu_start_ns;
	if (!kernel_bpf_cost(&live->kernel, &ns, &runs)) {
		facts->bpf_ns = (int64_t)ns;
		facts->bpf_runs = (int64_t)runs;
	}
	missed_add_row(facts, "late scans", live->late_count);
	missed_add_row(facts, "records that kept changing while they were read",
		       kernel->table.torn_count);
	missed_add_row(facts, "scans that could not see the whole map",
		       kernel->table.unfinished_count);
	missed_add_row(facts, "names beyond what tsnap keeps in memory", names_refused());
	facts->chosen = text_string(&live->chosen);
	if (full) {
		/* how many there are now, not how often one was refused */
		missed_add_row(facts, "threads that do not fit the map (raise --max-threads)",
			       live->unfit_threads ? (uint64_t)live->unfit_threads
						   : live->seed.unfit_count);
		facts->missed[facts->missed_count - 1].standing = true;
	}
}

static void live_close(struct source *source)
{
	struct live *live = (struct live *)source;

	kernel_close(&live->kernel);
	lookup_free(live->lookup);
	live_seed_done(&live->seed);
	totals_done(&live->totals);
	index_clear(&live->doubts);
	index_clear(&live->awake);
	index_clear(&live->awake_next);
	free(live->ticks);
	free(live->samples);
	text_done(&live->chosen);
	free(live->pattern);
	free(live);
}

void live_kernel_options(const struct config *config, struct kernel_options *options)
{
	*options = (struct kernel_options){
		.types_choice = config->kernel_types,
		.btf_file = config->btf_file,
		.offsets_file = config->offsets_file,
		.without = config->without,
		.threads_max = config->max_threads,
		.rate_hz =
			config->rate_hz > CLOCK_RATE_MIN_HZ ? config->rate_hz : CLOCK_RATE_MIN_HZ,
		.groups = (1u << GROUP_COUNT) - 1,
	};
}

static void chosen_describe(const struct kernel *kernel, struct text *to)
{
	text_add_format(to, "kernel types from %s; tried:\n%s", kernel->compiled.types_source,
			text_string(&kernel->compiled.types_tried));
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = kernel->plan.chosen[group];

		text_add_format(to, "%s: %s%s%s\n", probe_group_rows[group].name,
				row ? probe_kind_names[row->kind] : "none", row ? " on " : "",
				row ? row->event : "");
	}
	text_add_string(to, kernel->left_out);
	text_add_string(to, text_string(&kernel->compiled.output));
}

static int live_start(struct live *live, struct error *e)
{
	struct kernel_options options;
	int err;

	live_kernel_options(live->config, &options);
	err = kernel_open(&live->kernel, &options, e);
	if (err)
		return err;
	chosen_describe(&live->kernel, &live->chosen);
	live->ticks = memory_get((size_t)live->kernel.host.cpus_possible * sizeof(*live->ticks));
	live->moment.ticks = live->ticks;
	live->moment.registers_marked = live->kernel.compiled.registers_marked;
	live->moment.registers_known = live->kernel.compiled.stack_registers != 0;
	err = live_seed_all(&live->seed, &live->kernel, e);
	if (err)
		return err;
	live->period_ns = NS_PER_SECOND / live->config->rate_hz;
	live->housekept_ns = clock_monotonic_ns();
	live->due_ns = live->housekept_ns +
		       (live->period_ns < FIRST_SCAN_NS ? live->period_ns : FIRST_SCAN_NS);
	live->previous_ns = live->due_ns - live->period_ns;
	live->housekept_ns -= HOUSEKEEPING_NS; /* the first scan looks at everything */
	return 0;
}

int live_open(const struct config *config, struct filter *filter, unsigned int needs,
	      struct source **source, struct error *e)
{
	struct live *live = memory_get(sizeof(*live));
	int err;

	live->source = (struct source){live_next, live_describe, live_close};
	live->config = config;
	live->filter = filter;
	live->needs = needs;
	live->own_pid = (uint32_t)getpid();
	live->own_cpu_start_ns = clock_cpu_ns();
	live->lookup = lookup_new(PROC);
	err = processes_find(live, e);
	if (!err)
		err = live_start(live, e);
	if (err) {
		live_close(&live->source);
		return err;
	}
	*source = &live->source;
	return 0;
}
