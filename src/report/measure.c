/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/measure.h"
#include "report/tally.h"
#include "report/value.h"

#define AT(member) offsetof(struct measures, member)

const struct column measure_columns[] = {
	{"avg_thr", "AVG_THR",
	 "threads of the group on average: seconds / time; with --raw: samples / scans",
	 KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, AT(avg_thr)},
	{"seconds", "SECONDS",
	 "exact time of the group's threads, shared out by their samples; with --raw: time that "
	 "its samples stand for",
	 KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, AT(seconds)},
	{"share", "SHARE",
	 "seconds of the group among those of all, in percent; with --raw: samples", KIND_PERMILLE,
	 ROLE_MEASURE, 0, 5, AT(share)},
	{"error", "ERROR", "standard error of seconds, by how often threads were seen anew",
	 KIND_THOUSANDTHS, ROLE_MEASURE, 0, 7, AT(error)},
	{"samples", "SAMPLES", "samples of the group", KIND_NUMBER, ROLE_MEASURE, 0, 7,
	 AT(samples)},
	{"cpu_s", "CPU_S", "exact seconds on a CPU, of all threads of the group, sampled or not",
	 KIND_THOUSANDTHS, ROLE_MEASURE, NEED_TOTALS, 8, AT(cpu_s)},
	{"runq_s", "RUNQ_S", "exact seconds waiting for a CPU", KIND_THOUSANDTHS, ROLE_MEASURE,
	 NEED_TOTALS, 8, AT(runq_s)},
	{"dwait_s", "DWAIT_S", "exact seconds in state D", KIND_THOUSANDTHS, ROLE_MEASURE,
	 NEED_TOTALS, 8, AT(dwait_s)},
	{"sleep_s", "SLEEP_S", "exact seconds in state S", KIND_THOUSANDTHS, ROLE_MEASURE,
	 NEED_TOTALS | NEED_SLEEP, 8, AT(sleep_s)},
	{"csw_per_s", "CSW_PER_S", "context switches per second", KIND_HUNDREDTHS, ROLE_MEASURE,
	 NEED_TOTALS, 9, AT(csw_per_s)},
	{"runq_avg_us", "RUNQ_AVG_US", "average wait for a CPU, per time that a thread got one",
	 KIND_NUMBER, ROLE_MEASURE, NEED_TOTALS, 11, AT(runq_avg_us)},
	{"forks", "FORKS", "processes forked, by the name and user of the parent", KIND_NUMBER,
	 ROLE_MEASURE, NEED_PROCESSES, 7, AT(forks)},
	{"execs", "EXECS", "programs executed, by the new name", KIND_NUMBER, ROLE_MEASURE,
	 NEED_PROCESSES, 7, AT(execs)},
	{"exits", "EXITS", "processes that exited", KIND_NUMBER, ROLE_MEASURE, NEED_PROCESSES, 7,
	 AT(exits)},
	{"dead_cpu_s", "DEAD_CPU_S", "CPU seconds of threads that ended, over their whole lives",
	 KIND_THOUSANDTHS, ROLE_MEASURE, NEED_PROCESSES, 10, AT(dead_cpu_s)},
	{"new_threads", "NEW_THREADS",
	 "threads made in processes, by the name and user of the thread that made them",
	 KIND_NUMBER, ROLE_MEASURE, NEED_PROCESSES, 11, AT(new_threads)},
	{"hardirq_s", "HARDIRQ_S", "seconds of hardware interrupts on the CPU, whoever was there",
	 KIND_THOUSANDTHS, ROLE_MEASURE, NEED_INTERRUPTS, 9, AT(hardirq_s)},
	{"softirq_s", "SOFTIRQ_S",
	 "seconds of software interrupts on the CPU, with those that ksoftirqd handles",
	 KIND_THOUSANDTHS, ROLE_MEASURE, NEED_INTERRUPTS, 9, AT(softirq_s)},
	{"steal_s", "STEAL_S", "seconds in which the hypervisor ran others than this CPU",
	 KIND_THOUSANDTHS, ROLE_MEASURE, NEED_INTERRUPTS, 7, AT(steal_s)},
	{"threads", "THREADS", "threads of the group on average, as avg_thr; -: none", KIND_THREADS,
	 ROLE_MEASURE, 0, 7, AT(avg_thr)},
	{"on_thr", "ON", "of these: on a CPU", KIND_THREADS, ROLE_MEASURE, 0, 4, AT(state_thr[0])},
	{"rq_thr", "RQ", "of these: waiting for a CPU", KIND_THREADS, ROLE_MEASURE, 0, 4,
	 AT(state_thr[1])},
	{"d_thr", "D", "of these: in state D", KIND_THREADS, ROLE_MEASURE, 0, 4, AT(state_thr[2])},
	{"s_thr", "S", "of these: in state S", KIND_THREADS, ROLE_MEASURE, 0, 4, AT(state_thr[3])},
	{"longest_ns", "LONGEST", "longest time in RQ, D or S so far, of a thread of the group",
	 KIND_NS, ROLE_MEASURE, 0, 7, AT(longest_ns)},
	{"program", "PROGRAM",
	 "name of the threads, of one user and container, with the process id or the number of "
	 "processes: groups by commsum, user and container",
	 KIND_TEXT, ROLE_MEASURE, NEED_COMMSUM | NEED_USER | NEED_CGROUP_NAMES, 14, AT(program)},
	{"waits_for", "WAITS FOR",
	 "what the group waits for most of the time: as waits_on, in short; a CPU ...", KIND_TEXT,
	 ROLE_MEASURE, NEED_WAITS_ONSUM | NEED_BLOCK | NEED_BLOCKER, 20, AT(waits_for)},
	{"mostly_in", "MOSTLY IN",
	 "system call with most of the group's time, or a kernel thread's work queue; user code, "
	 "page "
	 "fault, kernel thread",
	 KIND_TEXT, ROLE_MEASURE, NEED_SYSCALL | NEED_WORKQUEUE, 9, AT(mostly_in)},
	{"main_chain", "CHAIN",
	 "chain of most of the group's time, as the column chain: whom it waits for in the end",
	 KIND_TEXT, ROLE_MEASURE, NEED_CHAIN, 24, AT(main_chain)},
	{"main_file", "FILE",
	 "path of the file that most of the group's time is about, as filename or filenamesum",
	 KIND_TEXT, ROLE_MEASURE, NEED_FILENAMESUM, 20, AT(main_file)},
	{"function", "FUNCTION", "ufunc with most of the group's time", KIND_TEXT, ROLE_MEASURE,
	 NEED_USTACK, 16, AT(function)},
};

/* Measures that are made of parts. */
/* clang-format off */
static const struct part_measure part_measures[] = {
	{offsetof(struct measures, state_thr[0]), NULL, "state"},
	{offsetof(struct measures, state_thr[1]), NULL, "state"},
	{offsetof(struct measures, state_thr[2]), NULL, "state"},
	{offsetof(struct measures, state_thr[3]), NULL, "state"},
	{offsetof(struct measures, longest_ns), NULL, "state"},
	{offsetof(struct measures, program), "commsum,user,container", "comm,pid"},
	{offsetof(struct measures, mostly_in), NULL, "state,kthread,syscall"},
	{offsetof(struct measures, main_chain), NULL, "chain"},
	{offsetof(struct measures, main_file), NULL, "filename,filenamesum"},
	{offsetof(struct measures, function), NULL, "ufunc"},
	{offsetof(struct measures, waits_for), NULL,
	 "state,kthread,syscall,waits_on,waits_onsum,io_dev,blocker_kind"},
};
/* clang-format on */

const struct part_measure *part_measure_of(const struct column *column)
{
	size_t count = sizeof(part_measures) / sizeof(part_measures[0]);

	for (size_t i = 0; i < count; i++)
		if (column->role == ROLE_MEASURE && part_measures[i].offset == column->offset)
			return &part_measures[i];
	return NULL;
}

#define SUM_OF(member, need)                                            \
	{                                                               \
		.kind = KIND_NUMBER, .role = ROLE_SUM, .needs = (need), \
		.offset = offsetof(struct sample, member)               \
	}

const struct column measure_sums[MEASURE_SUMS] = {
	[SUM_CPU_US] = SUM_OF(sums.cpu_us, NEED_TOTALS),
	[SUM_RUNQ_US] = SUM_OF(sums.runq_us, NEED_TOTALS),
	[SUM_DWAIT_US] = SUM_OF(sums.dwait_us, NEED_TOTALS),
	[SUM_SLEEP_US] = SUM_OF(sums.sleep_us, NEED_TOTALS),
	[SUM_VCSW] = SUM_OF(sums.vcsw, NEED_TOTALS),
	[SUM_IVCSW] = SUM_OF(sums.ivcsw, NEED_TOTALS),
	[SUM_FORKS] = SUM_OF(sums.forks, NEED_PROCESSES),
	[SUM_EXECS] = SUM_OF(sums.execs, NEED_PROCESSES),
	[SUM_EXITS] = SUM_OF(sums.exits, NEED_PROCESSES),
	[SUM_DEAD_CPU_US] = SUM_OF(sums.dead_cpu_us, NEED_PROCESSES),
	[SUM_NEW_THREADS] = SUM_OF(sums.new_threads, NEED_PROCESSES),
	[SUM_HARDIRQ_US] = SUM_OF(sums.hardirq_us, NEED_INTERRUPTS),
	[SUM_SOFTIRQ_US] = SUM_OF(sums.softirq_us, NEED_INTERRUPTS),
	[SUM_STEAL_US] = SUM_OF(sums.steal_us, NEED_INTERRUPTS),
};

const size_t measure_column_count = sizeof(measure_columns) / sizeof(measure_columns[0]);

static int64_t scaled(int64_t number, int64_t times, int64_t by)
{
	return number == ABSENT ? ABSENT : ratio(number, times, by);
}

static void exact_fill(struct measures *measures, const union value *sums,
		       const struct tally *tally)
{
	int64_t switches = sum(sums[SUM_VCSW].number, sums[SUM_IVCSW].number);

	measures->cpu_s = scaled(sums[SUM_CPU_US].number, 1000, US_PER_SECOND);
	measures->runq_s = scaled(sums[SUM_RUNQ_US].number, 1000, US_PER_SECOND);
	measures->dwait_s = scaled(sums[SUM_DWAIT_US].number, 1000, US_PER_SECOND);
	measures->sleep_s = scaled(sums[SUM_SLEEP_US].number, 1000, US_PER_SECOND);
	measures->dead_cpu_s = scaled(sums[SUM_DEAD_CPU_US].number, 1000, US_PER_SECOND);
	measures->csw_per_s = scaled(switches, 100 * US_PER_SECOND, tally->elapsed_us);
	/* a thread has entered a CPU as often as it has left one */
	measures->runq_avg_us =
		switches > 0 ? scaled(sums[SUM_RUNQ_US].number, 1, switches) : ABSENT;
	measures->forks = sums[SUM_FORKS].number;
	measures->execs = sums[SUM_EXECS].number;
	measures->exits = sums[SUM_EXITS].number;
	measures->new_threads = sums[SUM_NEW_THREADS].number;
	measures->hardirq_s = scaled(sums[SUM_HARDIRQ_US].number, 1000, US_PER_SECOND);
	measures->softirq_s = scaled(sums[SUM_SOFTIRQ_US].number, 1000, US_PER_SECOND);
	measures->steal_s = scaled(sums[SUM_STEAL_US].number, 1000, US_PER_SECOND);
}

struct measures measures_of(int64_t samples, int64_t weight_us, const union value *sums,
			    const struct tally *tally)
{
	struct measures measures = {
		.samples = samples,
		.avg_thr = tally_avg_thr(tally, tally->shared_us ? weight_us : samples),
		.seconds = ratio(weight_us, 100, US_PER_SECOND),
		.share = tally_share(tally, tally->shared_us ? weight_us : samples),
		.error = ABSENT,
		.longest_ns = ABSENT,
	};

	if (sums)
		exact_fill(&measures, sums, tally);
	return measures;
}

bool measure_sums_idle(const union value *sums)
{
	for (int i = 0; i < MEASURE_SUMS; i++)
		if (i != SUM_SLEEP_US && sums[i].number != ABSENT && sums[i].number)
			return false;
	return true;
}
