/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/findings.h"
#include "base/clock.h"
#include "report/value.h"

#define SAMPLES_LEAST 4	     /* fewer may be chance */
#define BUSY_PERCENT 85	     /* CPUs are full from here on: interrupts are of no thread */
#define NEIGHBOUR_PERCENT 70 /* of the time that threads wait behind others */
#define BUSY_THREAD 80	     /* percent of a CPU, or it waits for something, too */
#define PRIORITY_PATIENT 30  /* nice 10; idle is more */
#define SHORT_US 20000	     /* waits that nobody notices */
#define LATE_US 100000	     /* an answer that a user notices */
#define LOCK_LEAST 200 /* per mille of the time that short waits for locks are a problem from */
#define LONG_US US_PER_SECOND	/* unanswered, stopped or in D for that long is no service time */
#define IDLE_US (600 * LONG_US) /* who waited so long for an answer expects none soon */
#define SLOW_AGE_US 10000	/* half of 20 ms: a request that is seen is half over */
#define SLOW_FLASH_US 2500	/* the same of a device that has no rotating disks */
#define REFUSED_LEAST 2		/* connections in an interval */
#define FORKS_LEAST 10000	/* a second and CPU, in hundredths */
#define NEW_THREADS_LEAST 50000
#define SWITCHES_LEAST 5000000
#define CPUS_ASSUMED 2	   /* where their number is not known */
#define THREADS_LEAST 500  /* made more than ended a second, in hundredths */
#define MORE_LEAST 500	   /* goroutines, likewise */
#define TAKEN_LEAST 20	   /* percent of full CPUs that interrupts take */
#define TAKEN_ONE_LEAST 50 /* of one CPU, while others are idle */
#define GC_LEAST 10	   /* percent of the time that a JVM's threads are stopped */
#define UNSEEN_LEAST 250   /* per mille of the time */

static int64_t per_mille(const struct findings *findings, int64_t us)
{
	return ratio(us, 1000, findings->total_us);
}

bool finding_is_one(const struct finding *finding, enum finding_party party)
{
	const struct finding_name *first = finding_first(finding, party);

	return finding->parties[party].count == 1 && first->threads <= 1;
}

static bool is_enough(const struct finding *finding, const struct findings *findings)
{
	return finding->samples >= SAMPLES_LEAST &&
	       per_mille(findings, finding->weight_us) >= FINDING_SHARE_LEAST &&
	       ratio(finding->weight_us, 10, findings->elapsed_us) >= 1;
}

/* Average number of threads, in hundredths. */
static int64_t threads_of(const struct findings *findings, int64_t us)
{
	return ratio(us, 100, findings->elapsed_us);
}

/* Time that CPUs were busy, also for threads that a filter left out. */
int64_t findings_busy_us(const struct findings *findings)
{
	int64_t busy_us = findings->status->busy_us;

	return busy_us == ABSENT || busy_us < findings->on_us ? findings->on_us : busy_us;
}

/* True as well if it is not known how many CPUs there are, as of a CSV. */
static bool cpus_are_full(const struct findings *findings)
{
	return findings->cpus == ABSENT ||
	       ratio(findings_busy_us(findings), 100, findings->cpus * findings->elapsed_us) >=
		       BUSY_PERCENT;
}

/* What samples show is doubtful unless the kernel counted the group as throttled meanwhile, which a
 * recording does not tell. */
static bool holds_quota(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && (finding->quota || findings->status->quotas_more ||
						!findings->source || !findings->source->host);
}

static bool holds_deadlock(const struct finding *finding, const struct findings *findings)
{
	(void)findings;
	return finding->samples >= SAMPLES_LEAST && finding->longest_us >= LATE_US;
}

static bool holds_long(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && finding->longest_us >= LONG_US;
}

/* Stopped for most of that time, and not now and then, as by strace. */
static bool holds_stopped(const struct finding *finding, const struct findings *findings)
{
	int64_t longest_us = finding->longest_us < findings->elapsed_us ? finding->longest_us
									: findings->elapsed_us;

	return holds_long(finding, findings) && finding->weight_us * 2 >= longest_us;
}

static bool holds_enough(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings);
}

bool finding_holds_lock(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) &&
	       (finding->longest_us >= SHORT_US ||
		per_mille(findings, finding->weight_us) >= LOCK_LEAST);
}

/* A holder without a CPU, whose priority is less than that of a thread that waits for it. */
static bool holds_inversion(const struct finding *finding, const struct findings *findings)
{
	return finding_holds_lock(finding, findings) && finding_doing(finding) == STATE_RQ &&
	       finding->waiter_priority != ABSENT &&
	       finding->holder_priority > finding->waiter_priority;
}

static bool holds_io_limit(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && finding->limit;
}

static bool holds_slow_disk(const struct finding *finding, const struct findings *findings)
{
	const struct finding_name *device = finding_first(finding, PARTY_THINGS);
	const struct source *source = findings->source;
	bool flash = source && source->host && device &&
		     source->host->rotates(source, device->name) == 0;

	return is_enough(finding, findings) &&
	       finding_age_us(finding) >= (flash ? SLOW_FLASH_US : SLOW_AGE_US);
}

static bool holds_stuck(const struct finding *finding, const struct findings *findings)
{
	(void)findings;
	return finding->samples >= SAMPLES_LEAST && finding->longest_us >= LONG_US;
}

static bool holds_noticed(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && finding->longest_us >= SHORT_US;
}

int64_t finding_priority(const struct findings *findings, const struct finding_name *name)
{
	const struct source *source = findings->source;

	return source && source->host && name && name->tid != ABSENT
		       ? source->host->priority(source, name->tid)
		       : ABSENT;
}

/* Time of those who may wait: their low priority says that nobody is in a hurry for them. */
static int64_t patient_us(const struct finding *finding, const struct findings *findings)
{
	const struct keyed *waiters = &finding->parties[PARTY_WAITERS];
	int64_t us = 0;

	for (size_t i = 0; i < waiters->count; i++) {
		const struct finding_name *name = (struct finding_name *)waiters->rows + i;

		if (finding_priority(findings, name) >= PRIORITY_PATIENT)
			us = sum(us, name->weight_us);
	}
	return us;
}

static bool holds_cpus(const struct finding *finding, const struct findings *findings)
{
	int64_t rq_us = findings->rq_us - patient_us(finding, findings);

	return is_enough(finding, findings) && cpus_are_full(findings) &&
	       threads_of(findings, rq_us) >= 30 &&
	       ratio(rq_us, 10, findings->on_us + findings->rq_us) >= 1;
}

/* One other group has the CPUs most of the time: its own threads hardly wait. */
static bool holds_neighbour(const struct finding *finding, const struct findings *findings)
{
	const struct finding_name *group = finding_first(finding, PARTY_THINGS);

	return group && holds_cpus(finding, findings) &&
	       ratio(group->weight_us, 100, finding->weight_us - finding->symptom_us) >=
		       NEIGHBOUR_PERCENT;
}

/* The time that the culprit was on a CPU, in percent; ABSENT: it was not among the samples. */
int64_t finding_busy(const struct finding *finding, const struct findings *findings)
{
	const struct finding_name *culprit = finding_first(finding, PARTY_CULPRITS);
	const uint64_t *on_us =
		culprit ? index_find(&findings->busy, (uint64_t)culprit->tid) : NULL;

	return on_us ? ratio((int64_t)*on_us, 100, findings->elapsed_us) : ABSENT;
}

/* A thread with a CPU of its own waits for none, wherever others run. */
static bool holds_uneven_cpus(const struct finding *finding, const struct findings *findings)
{
	return holds_noticed(finding, findings) && !cpus_are_full(findings) &&
	       threads_of(findings, findings->rq_us) >= 50 &&
	       ratio(findings->rq_us, 4, findings->on_us + findings->rq_us) >= 1;
}

static bool holds_busy_thread(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && finding_busy(finding, findings) >= BUSY_THREAD &&
	       (threads_of(findings, finding->weight_us) >= 100 || finding->longest_us >= LATE_US);
}

static bool holds_server(const struct finding *finding, const struct findings *findings)
{
	return holds_long(finding, findings) && finding->longest_us < IDLE_US;
}

static bool holds_kernel(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) && cpus_are_full(findings) &&
	       findings->kernel_us * 2 >= findings_busy_us(findings);
}

static int64_t cpus_of(const struct findings *findings)
{
	return findings->cpus == ABSENT ? CPUS_ASSUMED : findings->cpus;
}

static bool holds_forks(const struct finding *finding, const struct findings *findings)
{
	return finding->rate >= FORKS_LEAST * cpus_of(findings);
}

static bool holds_new_threads(const struct finding *finding, const struct findings *findings)
{
	return finding->rate >= NEW_THREADS_LEAST * cpus_of(findings);
}

/* CPUs with time to spare can afford it. */
static bool holds_switches(const struct finding *finding, const struct findings *findings)
{
	return findings->cpus != ABSENT && cpus_are_full(findings) &&
	       finding->rate >= SWITCHES_LEAST * findings->cpus;
}

static bool holds_listen(const struct finding *finding, const struct findings *findings)
{
	(void)findings;
	return finding->samples >= REFUSED_LEAST;
}

/* Old enough to be noticed, and the process does something else meanwhile: one that is idle does
 * not want the data. A connection that is not accepted is always late. */
static bool holds_unread(const struct finding *finding, const struct findings *findings)
{
	const struct source_unread *unread = finding->unread;
	int64_t busy_us = finding_doing_us(finding);

	return (unread->late >= SAMPLES_LEAST || unread->oldest_us >= LONG_US) &&
	       (busy_us || findings->of_all) &&
	       (unread->late_unaccepted || busy_us * 2 >= findings->elapsed_us);
}

/* A JVM, or a Go program, also stops its threads for other reasons. */
static bool holds_gc(const struct finding *finding, const struct findings *findings)
{
	const struct source_runtime *runtime = finding->runtime;

	(void)findings;
	return runtime->known_us >= US_PER_SECOND &&
	       ratio(runtime->gc_us, 100, runtime->known_us) >= GC_LEAST &&
	       ratio(runtime->stopped_us, 100, runtime->known_us) >= GC_LEAST;
}

/* Go's runtime: more at once than ever before, in most of the seconds. A start, or a load that
 * grows, ends soon. */
static bool holds_goroutines(const struct finding *finding, const struct findings *findings)
{
	const struct source_runtime *go = finding->runtime;

	(void)findings;
	return go->is_go && go->known_us >= 3 * US_PER_SECOND && go->seconds >= 3 &&
	       go->grown_seconds * 5 >= go->seconds * 4 &&
	       ratio(go->grown, 100 * US_PER_SECOND, go->known_us) >= MORE_LEAST;
}

static bool holds_threads(const struct finding *finding, const struct findings *findings)
{
	int64_t grown = findings->threads_last - findings->threads_first;
	int64_t average = findings->thread_scans ? findings->threads_sum / findings->thread_scans -
							   findings->threads_first
						 : 0;

	/* a burst, as of a start, is no growth: threads that grow all the time are on average half
	 * as many more as at the end */
	return finding->rate >= THREADS_LEAST && findings->elapsed_us >= 2 * LONG_US &&
	       findings->threads_jump * 2 <= grown && average * 3 >= grown &&
	       average * 3 <= grown * 2;
}

int64_t findings_taken_us(const struct findings *findings, int64_t taken_us[CPU_USE_COUNT],
			  int64_t *cpu)
{
	const struct source_status *status = findings->status;
	bool full = cpus_are_full(findings);
	int64_t most_us = 0;

	*cpu = ABSENT;
	memset(taken_us, 0, CPU_USE_COUNT * sizeof(*taken_us));
	for (size_t i = 0; i < status->taken_count; i++) {
		const struct source_cpu *one = &status->taken[i];
		int64_t us = 0;

		for (int use = 0; use < CPU_USE_COUNT; use++) {
			us += one->taken_us[use];
			if (full)
				taken_us[use] += one->taken_us[use];
		}
		if (full) {
			most_us += us;
		} else if (us > most_us) {
			most_us = us;
			*cpu = one->cpu;
			memcpy(taken_us, one->taken_us, sizeof(one->taken_us));
		}
	}
	return most_us;
}

/* Threads wait for CPUs, and neither a neighbour nor what is made too often says why. */
static bool holds_interrupts(const struct finding *finding, const struct findings *findings)
{
	const struct finding *found = findings->found.rows;
	int64_t taken_us[CPU_USE_COUNT], cpu, us = findings_taken_us(findings, taken_us, &cpu);
	int64_t of = cpu == ABSENT ? cpus_of(findings) : 1;
	bool waits = false;

	(void)finding;
	for (size_t i = 0; i < findings->found.count; i++)
		waits |= found[i].held && found[i].row->takes == takes_cpus && !found[i].row->thing;
	return waits && ratio(us, 100, of * findings->elapsed_us) >=
				(cpu == ABSENT ? TAKEN_LEAST : TAKEN_ONE_LEAST);
}

static bool holds_unseen(const struct finding *finding, const struct findings *findings)
{
	return per_mille(findings, finding->weight_us) >= UNSEEN_LEAST &&
	       threads_of(findings, finding->weight_us) >= 50;
}

/* True if a thread that waits is in the limit's group, or that is not known. */
static bool limit_is_of(const struct source_io_limit *limit, const struct finding *finding,
			const struct findings *findings)
{
	const struct keyed *waiters = &finding->parties[PARTY_WAITERS];
	const struct source *source = findings->source;

	if (!source || !source->host)
		return true;
	for (size_t i = 0; i < waiters->count; i++)
		if (source->host->io_group_has(
			    source, ((struct finding_name *)waiters->rows)[i].tid, limit->path))
			return true;
	return false;
}

const struct source_io_limit *finding_limit(const struct finding *finding,
					    const struct findings *findings, int64_t percent)
{
	const struct finding_name *device =
		finding->row->thing == device_of ? finding_first(finding, PARTY_THINGS) : NULL;
	const struct source_status *status = findings->status;

	for (size_t i = 0; i < status->io_limit_count; i++) {
		const struct source_io_limit *limit = &status->io_limits[i];
		int64_t allowed = ratio(limit->limit, findings->elapsed_us, US_PER_SECOND);

		if ((!device || is_text(device->name, limit->device)) && allowed > 0 &&
		    ratio(limit->used, 100, allowed) >= percent &&
		    limit_is_of(limit, finding, findings))
			return limit;
	}
	return NULL;
}

/* Of what is concluded from counts, which do not say whom they are of; and of devices, whose
 * requests may be old because many are made at once. */
static bool always_in_doubt(const struct finding *finding, const struct findings *findings)
{
	(void)finding;
	(void)findings;
	return true;
}

/* The priority is that of one of those who wait. */
static bool several_in_doubt(const struct finding *finding, const struct findings *findings)
{
	(void)findings;
	return !finding_is_one(finding, PARTY_WAITERS);
}

/* A limit that is not used up may hold requests back as well, for some of the time. */
static bool requests_in_doubt(const struct finding *finding, const struct findings *findings)
{
	for (size_t i = 0; i < findings->status->absent_count; i++)
		if (findings->status->absent[i].needs & NEED_BLOCK)
			return true;
	return finding_limit(finding, findings, 0);
}

/* The rows. A case belongs to the first row that takes it. If that row does not hold for the sum of
 * the finding's cases, the next row with the same condition of cases decides; if none holds, they
 * are no problem. What looks alike but is no problem stands above each row. */
/* clang-format off */
const struct finding_row finding_rows[] = {
	/* a cycle that a timeout or a signal may end (root_why: cycle) */
	{"deadlock", "threads that hold locks wait for each other, for ever", "locks", true, false, takes_deadlock, key_tid, NULL, holds_deadlock, NULL,
	 "{waiters} {wait} in a deadlock, for ever|; {longest} so far",
	 "--chains"},
	/* a lock whose holder is at work */
	{"lost_lock", "threads wait for a lock that nobody can release", "locks", true, false, takes_lost_lock, key_waits_on, thing_waits_on, holds_deadlock, always_in_doubt,
	 "{waiters} {wait} for a lock that nobody can release|: {thing}|; {longest} so far",
	 "-g comm,pid,waits_on,start_time --filter why=lock"},
	/* processes that request something of each other, and hold no lock */
	{"cycle", "processes wait for requests of each other", "locks", true, false, takes_cycle, key_tid, NULL, holds_long, always_in_doubt,
	 "{waiters} {wait} for each other, in a cycle|, {for} so far",
	 "--chains"},
	/* a stopped job that nobody waits for; a debugger's short stops */
	{"stopped", "threads wait for a process that is stopped or traced", "stopped processes", true, false, takes_stopped, key_pid, NULL, holds_stopped, NULL,
	 "{waiters} {wait} for {culprit}, which {doing}|, {for}",
	 "{process}"},
	/* a group that is throttled while nobody in it has to wait for long */
	{"quota", "threads wait for the CPU quota of their control group", "quotas", false, false, takes_quota, key_end, thing_end, holds_quota, NULL,
	 "{waiters} {wait} for the CPU quota of {thing}|{throttled}|{symptoms}",
	 "--cgroup {thing} -g comm,state,runq_why"},
	/* real-time threads that stay within their budget */
	{"budget", "threads wait because their real-time or deadline budget is used up", "quotas", false, false, takes_budget, key_end, thing_end, holds_enough, NULL,
	 "{waiters} {wait} because the {thing} is used up|; {longest} at most|{symptoms}",
	 "-g comm,state,runq_why,policy"},
	/* a holder in a run queue whose priority is that of who waits */
	{"inversion", "threads wait for one of lower priority, which gets no CPU", "locks", true, false, takes_lock, key_lock, thing_lock, holds_inversion, several_in_doubt,
	 "{waiters} {wait} for {culprit}, whose priority is lower|: {priorities}|; it {doing}|; it has {thing}|; {longest} at most",
	 "-p {pid} -g comm,state,priority,cpu,chain"},
	/* a busy lock that is held for less than anybody notices */
	{"lock", "threads wait for the holder of a lock", "locks", true, false, takes_lock, key_lock, thing_lock, finding_holds_lock, NULL,
	 "{waiters} {wait} for {thing}, held by {culprit}|, which {doing}|; {longest} at most",
	 "{process}"},
	/* page cache that kswapd alone reclaims */
	{"memory", "threads wait for memory: reclaim, swap, a limit", "memory", false, false, takes_memory, key_waits_on, thing_waits_on, holds_enough, NULL,
	 "{waiters} {wait} for memory: {thing}|; {longest} at most|{symptoms}",
	 "-g comm,waits_on,kfuncs --filter state=D"},
	/* a limit that is set and not used up */
	{"io_limit", "threads wait for a device because of an I/O limit", "disks", false, false, takes_disk, key_device, device_of, holds_io_limit, always_in_doubt,
	 "{waiters} {wait} for {thing}, held back by the I/O limit {limit}|{symptoms}",
	 "-g cgroup,comm,io_dev,io_op --filter state=D"},
	/* a device that is busy with many quick requests */
	{"slow_disk", "threads wait for a device that answers late", "disks", false, false, takes_disk, key_device, device_of, holds_slow_disk, always_in_doubt,
	 "{waiters} {wait} for {thing}, which is slow|: half of it for requests {age} old|{evicted}|{others}|{symptoms}",
	 "-g comm,filename,io_dev,io_op --filter state=D"},
	/* a few reads of a program that starts */
	{"disk", "threads wait for a device that is busy", "disks", false, false, takes_disk, key_device, device_of, holds_enough, always_in_doubt,
	 "{waiters} {wait} for {thing}, which is busy|{evicted}|{others}|{symptoms}",
	 "-g comm,filename,io_dev,io_op --filter state=D"},
	/* a limit of another group: the kernel does not say whom it holds back */
	{"io_limit", "threads wait for a device because of an I/O limit", "disks", false, false, takes_unready, key_unready, thing_unready, holds_io_limit, always_in_doubt,
	 "{waiters} {wait}, held back by the I/O limit {limit}|, in {thing}",
	 "-g cgroup,comm,syscall,io_dev --filter state=D"},
	/* waits in D that end and begin again, as of a copy */
	{"stuck", "threads stay in D, for a second and longer", "waits in D", false, false, takes_unready, key_unready, thing_unready, holds_stuck, NULL,
	 "{waiters} {wait} in D, {for} so far: {thing}",
	 "-g comm,pid,syscall,waits_on,wchan,kfuncs --filter state=D"},
	/* short locks of the kernel */
	{"d_wait", "threads wait in D, but not for a request of their own to a device", "waits in D", false, false, takes_unready, key_unready, thing_unready, holds_noticed, requests_in_doubt,
	 "{waiters} {wait} in D, but not for a request of their own to a device: {things}|; {longest} at most",
	 "-g comm,syscall,waits_on,wchan,kfuncs --filter state=D"},
	/* a server of files, or of page faults, that answers soon */
	{"file", "threads wait for a file, or a page of memory, that a process serves", "files", false, false, takes_file, key_unready, thing_unready, holds_noticed, NULL,
	 "{waiters} {wait} for a file or a page of memory|, {longest} at most: {things}",
	 "-g comm,pid,syscall,filename,state_us"},
	/* a thread that polls for work while nobody waits for it */
	{"sleeper", "threads wait for one that sleeps on a timer", "servers", true, false, takes_sleeper, key_pid, NULL, holds_noticed, NULL,
	 "{waiters} {wait} for {culprit}, which sleeps on a timer|{unaccepted}|; {longest} at most|{symptoms}",
	 "-p {pid} -a --stacks"},
	/* groups that wait for each other */
	{"neighbour", "threads wait for CPUs that another control group has", "CPUs", false, false, takes_cpus, key_one, thing_neighbour, holds_neighbour, NULL,
	 "{waiters} {wait} for a CPU behind another control group: {thing}|{runners}|; {longest} at most|{symptoms}",
	 "-g comm,cgroup,neighbour,oncpu_comm"},
	/* a queue that is short beside the work that is done */
	{"cpus", "threads wait for a CPU", "CPUs", false, false, takes_cpus, key_one, NULL, holds_cpus, NULL,
	 "{waiters} {wait} for a CPU|{runners}|; {longest} at most|{symptoms}",
	 "--on-cpu"},
	/* wake-ups that meet on one CPU */
	{"uneven_cpus", "threads wait for a CPU while others are idle", "CPUs", false, false, takes_cpus, key_one, NULL, holds_uneven_cpus, always_in_doubt,
	 "{waiters} {wait} for a CPU while CPUs are idle|, behind {culprit}|; {longest} at most|{symptoms}",
	 "-g comm,cpu,state,cpus_allowed_list"},
	/* a server that works for its clients, with time to spare */
	{"busy_thread", "threads wait for one that is on a CPU all the time", "servers", true, false, takes_busy_thread, key_tid, NULL, holds_busy_thread, NULL,
	 "{waiters} {wait} for {culprit}, which is at {busy} of a CPU|{unaccepted}|; {longest} at most|{symptoms}",
	 "-p {pid} --on-cpu --stacks"},
	/* requests that are answered; clients that wait for news, or have waited for hours */
	{"server", "threads wait for a process that does not answer", "servers", true, false, takes_server, key_server, thing_server, holds_server, NULL,
	 "{waiters} {wait} for {culprit}, which {answered} for {longest}|{unaccepted}|; {it} {doing}|{symptoms}",
	 "{process}"},
	/* system calls of a host that has CPUs to spare */
	{"kernel", "CPUs are full, mostly with work of the kernel", "system calls", false, false, takes_kernel, key_one, thing_call, holds_kernel, NULL,
	 "CPUs are full, {kernel} of that in the kernel|: {things}|, by {waiters}",
	 "--on-cpu -g comm,syscall,kfunc"},
	/* a queue that was full once, as at a start */
	{"accept_queue", "attempts to connect are dropped: the accept queue of a listener is full", "connections", false, true, takes_none, NULL, NULL, holds_listen, NULL,
	 "{count} attempts to connect were dropped: the accept queue of {thing} is full|; clients try again after 1 s, 2 s, 4 s ...",
	 "--chains"},
	/* data that a process which is idle does not want to read, or that has just come */
	{"unread", "requests wait unread in sockets, or connections to be accepted", "connections", false, true, takes_none, NULL, NULL, holds_unread, NULL,
	 "{unread}|{pool}",
	 "{process}"},
	/* goroutines that end; a burst of them, as at a start */
	{"goroutines", "more goroutines are begun than end", "goroutines", false, true, takes_none, NULL, NULL, holds_goroutines, NULL,
	 "{rate} more goroutines a second are begun than end in {culprit}|, {goroutines} by now",
	 "--goroutines -p {pid}"},
	/* a collector that works beside the program's threads */
	{"gc", "a JVM or a Go program stops its threads to collect garbage", "garbage", false, true, takes_none, NULL, NULL, holds_gc, NULL,
	 "Collection of garbage stops the {java_threads} threads of {culprit} {stopped} of the time|: {collections}",
	 "{process}"},
	/* a build, or a shell script */
	{"forks", "very many processes are made", "forks", false, true, takes_none, NULL, NULL, holds_forks, NULL,
	 "{rate} processes are made a second|, most by {culprit}|{symptoms}",
	 "--trace exec"},
	/* a server that makes a thread for each request */
	{"new_threads", "very many threads are made", "threads", false, true, takes_none, NULL, NULL, holds_new_threads, NULL,
	 "{rate} threads are made a second|, most by {culprit}|{symptoms}",
	 "-a -g comm,pid,num_threads"},
	/* requests that are answered one by one */
	{"switches", "threads go to sleep and are woken very often", "switches", false, true, takes_none, NULL, NULL, holds_switches, NULL,
	 "Threads go to sleep and are woken {rate} times a second|, most of {culprit}|{symptoms}",
	 "-a -g comm,waker_comm,csw_per_s --sort csw_per_s"},
	/* a pool that starts */
	{"threads", "more threads are made than end", "threads", false, true, takes_none, NULL, NULL, holds_threads, NULL,
	 "{rate} more threads a second are made than end|, most by {culprit}|, now {threads}",
	 "-a -g comm,pid,num_threads"},
	/* a busy network of a host whose threads get their CPUs */
	{"interrupts", "interrupts, or the hypervisor, take CPU time that threads wait for", "interrupts", false, true, takes_none, NULL, NULL, holds_interrupts, always_in_doubt,
	 "Interrupts or the hypervisor take CPU time that threads wait for: {taken}|{symptoms}",
	 "-g cpu,seconds,interrupts"},
	/* short sleeps and runs between two scans, in which other threads are seen */
	{"unseen", "much of the time was not seen by any scan", "unseen", false, true, takes_none, NULL, NULL, holds_unseen, always_in_doubt,
	 "{share} of the time was not seen|: no scan met its threads in that state",
	 "-F 200"},
};
/* clang-format on */

const size_t finding_row_count = sizeof(finding_rows) / sizeof(finding_rows[0]);

const struct finding_row *finding_row_find(const char *name)
{
	const struct finding_row *row = finding_rows;

	while (strcmp(row->name, name) != 0)
		row++;
	return row;
}

const struct finding_row *finding_row_of_counts(const char *name)
{
	for (size_t i = 0; i < finding_row_count; i++)
		if (finding_rows[i].takes == takes_none && !strcmp(finding_rows[i].name, name))
			return &finding_rows[i];
	return NULL;
}

void findings_describe(struct text *text)
{
	text_add_string(text, "\nFindings, for --findings and --when 'finding=NAME':\n");
	for (const struct finding_row *row = finding_rows; row < finding_rows + finding_row_count;
	     row++) {
		if (row != finding_row_find(row->name))
			continue;
		text_add_format(text, "  %-21s     %s\n", row->name, row->help);
	}
}
