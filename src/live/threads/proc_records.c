/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/proc_records.h"
#include "live/threads/live_sample.h"
#include "live/threads/live_seed.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "base/index.h"
#include "base/memory.h"
#include "maps/register_requester.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC "/proc"
#define STEP_THREADS 32
/* Two ticks of the slowest clock (CONFIG_HZ=100), and of a CPU without a clock (nohz_full). */
#define TICKS_NS (2 * NS_PER_SECOND / 100)
#define TICKLESS_NS (2 * NS_PER_SECOND)

/* What a walk knows of the thread in a slot. */
struct proc_record {
	uint32_t tid;  /* 0: none */
	uint32_t walk; /* the last walk that met it */
	uint64_t start_ticks;
	int64_t read_ns;		  /* time when sums were read */
	struct proc_schedstat sums, base; /* base: what is not reported */
	uint64_t voluntary_base, involuntary_base;
	bool is_older; /* the thread was there before the walk that met it first */
	bool was_on;
	bool is_lively; /* it ran lately, or may any time */
	double carry;
	char comm[THREAD_COMM_SIZE]; /* name of the thread that is_32_bit is of; empty: none */
	bool is_32_bit;
};

const char *proc_records_lack(void)
{
	struct proc_schedstat sums;
	int err = proc_schedstat_read(PROC, 0, getpid(), &sums);

	/* a kernel that does not count writes zeros */
	return err || !sums.arrivals ? "the kernel does not count how long threads wait for a CPU "
				       "(/proc/PID/schedstat, CONFIG_SCHED_INFO)"
				     : NULL;
}

bool proc_gained_is_on(const struct proc_gained *gained, double *carry, double *ahead)
{
	int64_t most_ns = gained->elapsed_ns - gained->cpu_ns, waited_ns = gained->runq_ns;
	double waited;
	bool on;

	/* it came on a CPU, and has not left it: its time there is added when it does. Else it is
	 * still waiting for one, unless its time was to be added just now */
	if (!gained->cpu_ns)
		return gained->arrivals ||
		       (gained->was_on && gained->elapsed_ns < gained->ticks_ns);
	/* it was on a CPU all the time, or has left it and come on none since */
	if (!gained->arrivals)
		return gained->cpu_ns >= gained->elapsed_ns / 2 ||
		       gained->elapsed_ns < gained->ticks_ns;
	/* a wait that began before the walk before was R then, too */
	if (waited_ns > most_ns)
		waited_ns = most_ns > 0 ? most_ns : 0;
	waited = (double)waited_ns / (double)(gained->cpu_ns + waited_ns);
	*carry += waited;
	on = *carry + *ahead < 0.5;
	*carry -= !on;
	*ahead += waited - !on;
	return on;
}

/* A number from -0.5 to 0.5, another one for each thread: of threads that are seen once, as many
 * get each state as ought to. */
static double carry_first(uint32_t tid, uint64_t start_ticks)
{
	return (double)(hash_u64(start_ticks << 24 ^ tid) >> 11) / (double)(1ull << 53) - 0.5;
}

static struct proc_record *row_of(struct proc_records *records, uint32_t key)
{
	size_t before = records->capacity;

	records->rows = memory_grow(records->rows, &records->capacity, (size_t)key + 1,
				    sizeof(*records->rows));
	memset(records->rows + before, 0, (records->capacity - before) * sizeof(*records->rows));
	return &records->rows[key];
}

/* Makes a record for a thread that has none. False: there is no slot left. */
static bool record_add(struct proc_records *records, int64_t pid, const struct proc_stat *stat,
		       uint32_t *key)
{
	struct thread_state record = {0};

	live_seed_identity(&record.identity, pid, stat);
	live_seed_state(&record.sched, stat);
	record.sched.tid = record.identity.tid;
	record.sched.sequence_done = record.sched.sequence_begun = 2;
	record.sched.in_ns = record.sched.out_ns = (uint64_t)records->now_ns;
	if (thread_table_add(records->table, &record))
		return false;
	*key = record.key;
	*row_of(records, *key) = (struct proc_record){.tid = record.sched.tid};
	return true;
}

static void row_begin(const struct proc_records *records, struct proc_record *row,
		      const struct proc_stat *stat, const struct proc_schedstat *sums)
{
	int64_t start_ns = (int64_t)stat->start_ticks * (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
	int64_t age_ns = clock_boot_ns() - start_ns;

	*row = (struct proc_record){
		.tid = (uint32_t)stat->tid,
		.start_ticks = stat->start_ticks,
		.carry = carry_first((uint32_t)stat->tid, stat->start_ticks),
		.is_older = start_ns < records->since_boot_ns,
	};
	row->read_ns = clock_monotonic_ns() - (row->is_older || age_ns < 0 ? 0 : age_ns);
	/* what it did before the first walk, or while nobody wanted it, is not reported */
	if (row->is_older)
		row->base = row->sums = *sums;
	row->was_on = row->is_older; /* if it is in R; the next walk knows more */
}

/* True if a thread can't have gained that since the walk before: it has taken over another one's id
 * by exec, with counts of its own. */
static bool is_jump(const struct proc_record *row, const struct proc_schedstat *sums)
{
	int64_t elapsed_ns = clock_monotonic_ns() - row->read_ns;

	return sums->arrivals < row->sums.arrivals || sums->cpu_ns < row->sums.cpu_ns ||
	       (int64_t)(sums->cpu_ns - row->sums.cpu_ns) > elapsed_ns + elapsed_ns / 64 + TICKS_NS;
}

/* Begins with these counts, so that the record's totals go on from where they are. */
static void row_jump(struct proc_record *row, int64_t pid, const struct proc_schedstat *sums,
		     const struct thread_sched *sched)
{
	uint64_t voluntary, involuntary;

	row->sums = *sums;
	row->base.cpu_ns = sums->cpu_ns - sched->cpu_ns;
	row->base.runq_ns = sums->runq_ns - sched->runq_ns;
	if (proc_switches_read(PROC, pid, row->tid, &voluntary, &involuntary))
		return;
	row->voluntary_base = voluntary - sched->voluntary_count;
	row->involuntary_base = involuntary - sched->involuntary_count;
}

static void switches_read(const struct proc_records *records, struct proc_record *row, int64_t pid,
			  bool first, struct thread_sched *sched)
{
	uint64_t voluntary, involuntary;

	if (!records->counts_switches ||
	    proc_switches_read(PROC, pid, row->tid, &voluntary, &involuntary))
		return;
	if (first && row->is_older) {
		row->voluntary_base = voluntary;
		row->involuntary_base = involuntary;
	}
	sched->voluntary_count = voluntary - row->voluntary_base;
	sched->involuntary_count = involuntary - row->involuntary_base;
}

static double *cpu_ahead(struct proc_records *records, int64_t cpu)
{
	size_t before = records->ahead_capacity;

	records->ahead = memory_grow(records->ahead, &records->ahead_capacity, (size_t)cpu + 1,
				     sizeof(*records->ahead));
	for (size_t i = before; i < records->ahead_capacity; i++)
		records->ahead[i] = 0;
	return &records->ahead[cpu];
}

/* Reads the call that a thread sleeps in, if it has slept on since its state was read. A short
 * sleep is over when lookups come to it. */
static void call_read(struct proc_record *row, struct thread_state *record)
{
	const struct thread_identity *identity = &record->identity;
	struct proc_syscall call;

	if (proc_syscall_read(PROC, identity->tgid, identity->tid, &call) || call.running ||
	    !proc_record_lasts(record))
		return;
	if (memcmp(row->comm, identity->comm, sizeof(row->comm)) != 0) {
		memcpy(row->comm, identity->comm, sizeof(row->comm));
		row->is_32_bit = live_seed_is_32_bit(identity->tgid);
	}
	record_put_call(record, &call, row->is_32_bit);
}

/* Makes the next record of a thread. True: it has a new number. */
static bool record_make(struct proc_records *records, struct proc_record *row, int64_t pid,
			const struct proc_stat *stat, const struct proc_schedstat *sums,
			struct thread_state *record)
{
	const struct thread_state before = *record;
	int64_t read_ns = clock_monotonic_ns();
	const struct proc_gained gained = {
		.elapsed_ns = read_ns - row->read_ns,
		.cpu_ns = (int64_t)(sums->cpu_ns - row->sums.cpu_ns),
		.runq_ns = (int64_t)(sums->runq_ns - row->sums.runq_ns),
		.arrivals = sums->arrivals - row->sums.arrivals,
		.was_on = row->was_on,
		.ticks_ns = records->ticks_ns,
	};
	bool on = stat->state == 'R' &&
		  proc_gained_is_on(&gained, &row->carry, cpu_ahead(records, stat->cpu));
	bool first = !row->walk;

	live_seed_identity(&record->identity, pid, stat);
	live_seed_state(&record->sched, stat);
	record->sched.on_cpu = on;
	record->sched.cpu_ns = sums->cpu_ns - row->base.cpu_ns;
	record->sched.runq_ns = sums->runq_ns - row->base.runq_ns;
	record->sched.kernel_voluntary = sums->arrivals;
	row->sums = *sums;
	row->read_ns = read_ns;
	row->was_on = on;
	row->is_lively = gained.arrivals || !record_settled(record);
	if (!first && !gained.arrivals && record->sched.state == before.sched.state &&
	    record->sched.exit_state == before.sched.exit_state && on == before.sched.on_cpu &&
	    !memcmp(&record->identity, &before.identity, sizeof(record->identity)))
		return false;
	if (first || gained.arrivals)
		switches_read(records, row, pid, first, &record->sched);
	record->sched.in_ns = (uint64_t)records->now_ns;
	record->sched.out_ns = (uint64_t)records->now_ns;
	/* numbers of switches in are odd */
	record->sched.sequence_done = (before.sched.sequence_done / 2 + 1) * 2 + on;
	if (records->reads_calls && record->sched.state && !record_is_kthread(record))
		call_read(row, record);
	else if (!on && !gained.arrivals && registers_there(&before)) /* woken from that call */
		record->sched.registers_sequence = record_out_sequence(record);
	return true;
}

struct walk {
	struct proc_records *records;
	const struct proc_visitor *visitor;
	uint32_t met;
};

/* Writes what the two have in different ways: all but the tid that shows that the slot is used, and
 * the key. */
static void record_write(struct proc_records *records, const struct thread_state *record)
{
	struct thread_state *to =
		thread_table_write_begin(records->table, record->key, record->sched.sequence_done);
	size_t from = offsetof(struct thread_sched, out_ns),
	       until = offsetof(struct thread_sched, tid);

	memcpy((char *)&to->sched + from, (const char *)&record->sched + from, until - from);
	to->sched.registers_sequence = record->sched.registers_sequence;
	memcpy(to->sched.registers, record->sched.registers, sizeof(to->sched.registers));
	to->identity = record->identity;
	thread_table_write_end(to);
}

static int thread_walk(void *to, int64_t pid, int64_t tid)
{
	struct walk *walk = to;
	struct proc_records *records = walk->records;
	struct thread_state record = {0};
	struct proc_schedstat sums;
	struct proc_record *row;
	struct proc_stat stat;
	uint32_t key;
	bool changed, known = !thread_table_key(records->table, (uint32_t)tid, &key);

	if (known && row_of(records, key)->walk == records->walk)
		return 0; /* met before the others */
	if (++walk->met % STEP_THREADS == 0)
		walk->visitor->step(walk->visitor->to);
	if (walk->visitor->passes(walk->visitor->to, pid, tid) ||
	    proc_stat_read(PROC, pid, tid, &stat) || stat.state == 'X' ||
	    proc_schedstat_read(PROC, pid, tid, &sums))
		return 0;
	if (!known && !record_add(records, pid, &stat, &key))
		return 0;
	row = row_of(records, key);
	if (thread_table_get(records->table, key, &record))
		return 0;
	/* the first time, or another thread has the tid */
	if (!row->walk || row->tid != (uint32_t)tid || row->start_ticks != stat.start_ticks)
		row_begin(records, row, &stat, &sums);
	else if (is_jump(row, &sums))
		row_jump(row, pid, &sums, &record.sched);
	changed = record_make(records, row, pid, &stat, &sums, &record);
	row->walk = records->walk;
	record_write(records, &record);
	if (changed)
		walk->visitor->changed(walk->visitor->to, key);
	return 0;
}

/* Meets the threads that ran lately: first, while the walk has real-time priority, as what they do
 * depends on which of them has to wait for the thread that walks. */
static void lively_walk(struct walk *walk)
{
	struct proc_records *records = walk->records;

	for (uint32_t key = 0; key < records->capacity; key++) {
		const struct thread_state *record = thread_table_mapped(records->table, key);

		if (records->rows[key].is_lively && record)
			thread_walk(walk, record->identity.tgid, records->rows[key].tid);
	}
}

/* Removes the records of threads that this walk has not met. */
static void gone_remove(struct walk *walk)
{
	struct proc_records *records = walk->records;

	for (uint32_t key = 0; key < records->capacity; key++) {
		struct proc_record *row = &records->rows[key];
		const struct thread_state gone = {.sched.tid = row->tid, .key = key};
		uint32_t now;

		if (!row->tid || row->walk == records->walk)
			continue;
		if (!thread_table_key(records->table, row->tid, &now) && now == key)
			thread_table_remove(records->table, &gone);
		*row = (struct proc_record){0};
		walk->visitor->changed(walk->visitor->to, key);
	}
}

static bool has_tickless_cpus(void)
{
	char cpus[64]; /* a blank line, or "(null)": none */

	return host_file_read("/sys/devices/system/cpu/nohz_full", cpus, sizeof(cpus)) > 0 &&
	       cpus[0] >= '0' && cpus[0] <= '9';
}

int proc_records_walk(struct proc_records *records, int64_t now_ns,
		      const struct proc_visitor *visitor)
{
	struct walk walk = {.records = records, .visitor = visitor};
	int64_t before_ns = clock_thread_cpu_ns(), boot_ns = clock_boot_ns();
	int err;

	if (!records->walk++) {
		records->since_boot_ns = boot_ns;
		records->ticks_ns = has_tickless_cpus() ? TICKLESS_NS : TICKS_NS;
	}
	records->now_ns = now_ns;
	for (size_t i = 0; i < records->ahead_capacity; i++)
		records->ahead[i] = 0;
	lively_walk(&walk);
	err = proc_threads_walk(PROC, thread_walk, &walk);
	if (!err)
		gone_remove(&walk);
	records->since_boot_ns = boot_ns;
	records->cost_ns = clock_thread_cpu_ns() - before_ns;
	return err;
}

void proc_records_done(struct proc_records *records)
{
	free(records->rows);
	free(records->ahead);
	*records = (struct proc_records){0};
}

bool proc_record_lasts(const struct thread_state *record)
{
	struct proc_schedstat sums;

	return !proc_schedstat_read(PROC, record->identity.tgid, record->identity.tid, &sums) &&
	       sums.arrivals == record->sched.kernel_voluntary;
}
