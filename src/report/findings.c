/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/findings.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/value.h"
#include "sample/wait_rule.h"
#include "sample/waits_on.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_LEAST 4	    /* fewer may be chance */
#define QUIET_PERCENT 20    /* of a CPU: what a process does that does nothing for those who wait */
#define BUSY_PERCENT 85	    /* CPUs are full from here on: interrupts are of no thread */
#define BUSY_THREAD 80	    /* percent of a CPU, or it waits for something, too */
#define PRIORITY_PATIENT 30 /* nice 10; idle is more */
#define SHORT_US 20000	    /* waits that nobody notices */
#define LATE_US 100000	    /* an answer that a user notices */
#define LOCK_LEAST 200 /* per mille of the time that short waits for locks are a problem from */
#define LONG_US US_PER_SECOND	/* unanswered, stopped or in D for that long is no service time */
#define IDLE_US (600 * LONG_US) /* who waited so long for an answer expects none soon */
#define SLOW_AGE_US 10000	/* half of 20 ms: a request that is seen is half over */
#define SLOW_FLASH_US 2500	/* the same of a device that has no rotating disks */
#define AGE_STEPS 4
#define LIMIT_PERCENT 75     /* of an I/O limit that counts as exhausted */
#define THROTTLED_PERCENT 80 /* of the time, and so nearly all waits are for the quota */
#define REFUSED_LEAST 2	     /* connections in an interval */
#define FORKS_LEAST 10000    /* a second and CPU, in hundredths */
#define NEW_THREADS_LEAST 50000
#define SWITCHES_LEAST 5000000
#define CPUS_ASSUMED 2	  /* where their number is not known */
#define THREADS_LEAST 500 /* made more than ended a second, in hundredths */
#define UNSEEN_LEAST 250  /* per mille of the time */
#define FINDINGS_MAX 4096
#define VIRTUAL_CPU "anon_inode:kvm-vcpu"

struct finding_maker {
	const char *comm;
	int64_t count;
	int64_t pid, votes; /* a process that made at least `votes` of them, if that is half */
};

/* What is known of a process, whichever of its threads. */
struct finding_process {
	int64_t pid;
	int64_t awake_us; /* exact time of its threads on a CPU, in a run queue and in D */
	int64_t made;	  /* threads that began in the report and live at its end */
	const char *name; /* of such a thread, or of the first one of the process */
};

/* A thread that holds a lock for which others wait. */
struct finding_holder {
	size_t finding;	   /* index in found */
	int64_t queued_us; /* time that the others waited while it waited for a CPU */
};

/* Groups are made of the columns of the set `findings`, and of the age of the thread's request to a
 * device, by steps. */
static const struct column age_column = {
	"io_age", "IO_AGE",   "", KIND_NUMBER,
	ROLE_KEY, NEED_BLOCK, 0,  offsetof(struct sample, io.bytes)};

/* Cases ---------------------------------------------------------------------------------------- */

static bool is_text(const char *text, const char *word)
{
	return text && word && !strcmp(text, word);
}

/* True if the root waits as a trait of enum wait_rule_trait says. */
static bool root_waits(const struct finding_case *of, enum wait_rule_trait how)
{
	return wait_class_traits(of->root.why) & how;
}

/* True if a thread that waits for the link's kind waits for a lock. */
static bool is_lock(enum edge_kind link)
{
	return edge_kinds[link].lock_add;
}

static bool is_asleep(const struct finding_case *of)
{
	return of->root.state == STATE_SLEEP || of->root.state == STATE_DISK;
}

/* The kind whose name ends (at_end) or begins the text; EDGE_NONE: none. */
static enum edge_kind kind_beside(const char *text, size_t length, bool at_end)
{
	if (at_end && length && text[length - 1] == *EDGE_DOUBT)
		length--;
	for (int kind = EDGE_NONE + 1; kind < EDGE_KIND_COUNT; kind++) {
		size_t name = strlen(edge_kinds[kind].name);

		if (length >= name &&
		    !memcmp(at_end ? text + length - name : text, edge_kinds[kind].name, name))
			return (enum edge_kind)kind;
	}
	return EDGE_NONE;
}

/* Reads the links before and after the last thread from the chain: "a socket> b io> sda". The name
 * of that thread is known, so other names can't be taken for links. */
static void chain_read(struct finding_case *of)
{
	const char *chain = of->sample->chain.text, *name = of->root.comm ? of->root.comm : "?",
		   *at, *last = NULL;
	size_t length = strlen(name);

	if (length > 2 && !strcmp(name + length - 2, " " EDGE_DOUBT))
		length -= 2;
	if (!chain)
		return;
	if (!of->rooted && !strncmp(chain, name, length))
		last = chain;
	/* what is after a link that ends the chain may have the root's name, as a thread on a CPU
	 */
	for (at = chain; of->rooted && (at = strstr(at, "> ")); at += 2)
		if (!strncmp(at + 2, name, length) && (at[2 + length] == ' ' || !at[2 + length]) &&
		    !(edge_kinds[kind_beside(chain, (size_t)(at - chain), true)].traits &
		      ENDS_CHAIN))
			last = at + 2;
	if (!last)
		return;
	if (of->rooted)
		of->link = kind_beside(chain, (size_t)(last - 2 - chain), true);
	last += length;
	if (*last != ' ')
		return;
	of->end = kind_beside(last + 1, strlen(last + 1), false);
	if (edge_kinds[of->end].traits & ENDS_CHAIN)
		of->thing = last + 1 + strlen(edge_kinds[of->end].name) + strlen("> ");
	/* which of a device and those below it is slow the chain does not tell */
	if (of->end == EDGE_IO)
		of->thing = name_transient(of->thing, strcspn(of->thing, " "));
}

/* True for a thread that waits for itself, as for a mutex that it has locked. */
static bool ends_in_itself(const struct sample *sample)
{
	return sample->chain.depth == 0 && (is_text(sample->chain.root.why, ROOT_DEADLOCK) ||
					    is_text(sample->chain.root.why, ROOT_CYCLE));
}

static struct finding_case case_of(const struct sample *sample, int64_t samples, int64_t weight_us)
{
	struct finding_case of = {
		.sample = sample,
		.samples = samples,
		.weight_us = weight_us,
		.rooted = sample->chain.text && sample->chain.depth != ABSENT &&
			  (sample->chain.depth > 0 || ends_in_itself(sample)) &&
			  (sample->chain.root.comm || sample->chain.root.pid != ABSENT),
	};

	of.root = of.rooted ? sample->chain.root
			    : (struct sample_root){.tid = sample->thread.tid,
						   .pid = sample->thread.pid,
						   .state = sample->now.state,
						   .comm = sample->thread.comm,
						   .why = sample->wait.why,
						   .waits_on = sample->wait.on,
						   .syscall = sample->call.name};
	if (of.rooted)
		of.link = sample->chain.depth <= 1 ? edge_kind_of(sample->blocker.kind) : EDGE_NONE;
	chain_read(&of);
	return of;
}

/* True if the edges call it certain who or what is waited for. */
static bool case_is_certain(const struct finding_case *of)
{
	const struct sample *sample = of->sample;

	if (of->rooted)
		return is_text(of->root.why, ROOT_DEADLOCK) ||
		       (sample->chain.depth == 1 && is_text(sample->blocker.sure, "certain"));
	return !(edge_kinds[of->end].traits & NEVER_CERTAIN) && of->root.state != STATE_SLEEP;
}

/* Conditions of cases -------------------------------------------------------------------------- */

static bool takes_deadlock(const struct finding_case *of)
{
	return of->rooted && is_text(of->root.why, ROOT_DEADLOCK);
}

static bool takes_cycle(const struct finding_case *of)
{
	return of->rooted && is_text(of->root.why, ROOT_CYCLE) && is_lock(of->link);
}

static bool takes_stopped(const struct finding_case *of)
{
	return of->rooted && (of->root.state == STATE_STOPPED ||
			      waits_on_traits(of->root.waits_on) & WAITS_FOR_THAW);
}

/* A thread that waits for a lock which nobody can release, and not for itself. */
static bool takes_lost_lock(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_SLEEP &&
	       waits_on_traits(of->root.waits_on) & WAITS_FOR_NOBODY;
}

static bool takes_quota(const struct finding_case *of)
{
	return of->root.state == STATE_RQ && of->end == EDGE_QUOTA && *of->thing == '/';
}

static bool takes_budget(const struct finding_case *of)
{
	return of->root.state == STATE_RQ && of->end == EDGE_QUOTA;
}

/* True if the root waits for a connection, or as an event loop for its clients. Threads that wait
 * for its lock meanwhile have no work either: workers take turns with it. */
static bool has_no_work(const struct finding_case *of)
{
	/* a call without a rule of its own reads what a client sends */
	return root_waits(of, WAIT_AS_SERVER) &&
	       (!of->root.syscall || wait_rule_of_call(of->root.syscall));
}

static bool takes_lock(const struct finding_case *of)
{
	return of->rooted && is_lock(of->link) && !is_text(of->root.why, ROOT_CYCLE) &&
	       !(of->sample->chain.depth == 1 && has_no_work(of));
}

static bool takes_memory(const struct finding_case *of)
{
	return waits_on_traits(of->root.waits_on) & WAITS_FOR_MEMORY;
}

/* A thread whose chain does not end at a device waits for something else, though it has a request
 * in flight. */
static const char *device_of(const struct finding_case *of)
{
	return of->end == EDGE_IO		      ? of->thing
	       : of->rooted || of->sample->chain.text ? NULL
						      : of->sample->io.dev;
}

static bool takes_disk(const struct finding_case *of)
{
	return is_asleep(of) && device_of(of);
}

/* True if a thread waits for its child, which no scan may have seen: in vfork(2), or clone(2) as
 * posix_spawn(3) calls it. */
static bool waits_for_child(const struct finding_case *of)
{
	const struct wait_rule *rule =
		of->root.syscall ? wait_rule_of_call(of->root.syscall) : NULL;

	return edge_kind_of(of->sample->blocker.kind) == EDGE_CHILD ||
	       (rule && rule->kind == WAIT_PROCESS);
}

/* A thread in D that has no request at a device, or not yet, and waits for no thread. */
static bool takes_unready(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_DISK && !waits_for_child(of);
}

static bool takes_file(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_SLEEP && root_waits(of, WAIT_FOR_FILE);
}

static bool takes_sleeper(const struct finding_case *of)
{
	return of->rooted && of->root.state == STATE_SLEEP && root_waits(of, WAIT_FOR_TIME);
}

static bool takes_cpus(const struct finding_case *of)
{
	return of->root.state == STATE_RQ;
}

static bool takes_busy_thread(const struct finding_case *of)
{
	return of->rooted && of->root.state == STATE_ON;
}

/* A server that waits for its clients alone has read all requests: it keeps the answer back until
 * another client speaks, as redis does for BLPOP. Datagrams may be lost, or refused in silence. */
static bool waits_for_news(const struct finding_case *of)
{
	return root_waits(of, WAIT_AS_SERVER) && !(waits_on_traits(of->sample->wait.on) &
						   (WAITS_FOR_ACCEPTANCE | WAITS_FOR_DATAGRAM));
}

/* A thread that waits for a process of this host has a chain, once that is found: samples before
 * that are no wait of their own. */
static bool takes_server(const struct finding_case *of)
{
	if (of->rooted)
		return !is_text(of->root.why, ROOT_CYCLE) && !waits_for_news(of);
	return of->root.state == STATE_SLEEP && root_waits(of, WAIT_AS_CLIENT) &&
	       of->root.waits_on && !(waits_on_traits(of->root.waits_on) & WAITS_FOR_PEER);
}

static bool takes_kernel(const struct finding_case *of)
{
	return of->root.state == STATE_ON && (of->root.syscall || of->sample->thread.kthread == 1);
}

static bool takes_none(const struct finding_case *of)
{
	(void)of;
	return false;
}

/* Keys and things of cases --------------------------------------------------------------------- */

static uint64_t text_key(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

static uint64_t key_one(const struct finding_case *of)
{
	(void)of;
	return 1;
}

static uint64_t key_pid(const struct finding_case *of)
{
	return (uint64_t)of->root.pid;
}

static uint64_t key_tid(const struct finding_case *of)
{
	return (uint64_t)of->root.tid;
}

/* Texts of things, which differ by case: a report is made in one thread. */
static const char *thing_end(const struct finding_case *of)
{
	return of->thing;
}

static uint64_t key_end(const struct finding_case *of)
{
	return text_key(of->thing);
}

static uint64_t key_device(const struct finding_case *of)
{
	return text_key(device_of(of));
}

static const char *thing_waits_on(const struct finding_case *of)
{
	return of->root.waits_on;
}

static uint64_t key_waits_on(const struct finding_case *of)
{
	return text_key(of->root.waits_on);
}

/* The lock that a thread waits for itself; that of others in its chain is not known by name. */
static const char *thing_lock(const struct finding_case *of)
{
	static struct text text;
	const struct edge_kind_row *kind = &edge_kinds[of->link];

	text_clear(&text);
	if (of->sample->chain.depth == 1)
		kind->lock_add(of->sample, kind->name, &text);
	return text.length ? text_string(&text) : NULL;
}

/* Locks of one kind in one process are one finding: threads that hand locks on among each other
 * share their problem. A lock that processes share is one by its name. */
static uint64_t key_lock(const struct finding_case *of)
{
	const char *lock = edge_kinds[of->link].traits & LOCK_OF_HOST ? thing_lock(of) : NULL;

	return lock ? text_key(lock) : hash_u64((uint64_t)of->root.pid) + (uint64_t)of->link;
}

/* What a thread in D waits for: its own words, or the call and its file. */
static const char *thing_unready(const struct finding_case *of)
{
	static struct text text;
	const char *file = of->sample->file.name;

	if (of->root.waits_on && *of->root.waits_on != '/')
		return of->root.waits_on;
	if (!of->root.syscall) /* a kernel thread, or a page fault that was soon over */
		return of->root.waits_on ? of->root.waits_on : "no known system call";
	text_clear(&text);
	text_add_string(&text, of->root.syscall);
	if (file)
		text_add_format(&text, " %s", file);
	return text_string(&text);
}

/* Waits in the same call are one finding, whatever the file; those of which nothing is known are
 * one for each program. */
static uint64_t key_unready(const struct finding_case *of)
{
	if (of->root.waits_on && *of->root.waits_on != '/')
		return text_key(of->root.waits_on);
	return text_key(of->root.syscall ? of->root.syscall : of->root.comm);
}

/* The other end of a connection to another host, or to a process that is not known. */
static const char *thing_server(const struct finding_case *of)
{
	static const char one[] = "1 fd: ";
	const char *text = of->rooted ? NULL : of->sample->wait.onsum;

	return text && !strncmp(text, one, strlen(one)) ? text + strlen(one) : text;
}

/* A server that has a process for each client is one finding by its name. */
static uint64_t key_server(const struct finding_case *of)
{
	if (!of->rooted)
		return text_key(thing_server(of));
	return of->root.tid == of->root.pid ? text_key(of->root.comm) : key_pid(of);
}

static const char *thing_call(const struct finding_case *of)
{
	return of->root.syscall ? of->root.syscall : "kernel threads";
}

/* Conditions of sums --------------------------------------------------------------------------- */

static int64_t per_mille(const struct findings *findings, int64_t us)
{
	return ratio(us, 1000, findings->total_us);
}

/* True if the party is one thread. */
static bool is_one(const struct finding *finding, enum finding_party party)
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

/* Short waits for a lock are a problem only if they are much of the time, as those for a GIL. */
static bool holds_lock(const struct finding *finding, const struct findings *findings)
{
	return is_enough(finding, findings) &&
	       (finding->longest_us >= SHORT_US ||
		per_mille(findings, finding->weight_us) >= LOCK_LEAST);
}

/* A holder without a CPU, whose priority is less than that of a thread that waits for it. */
static bool holds_inversion(const struct finding *finding, const struct findings *findings)
{
	return holds_lock(finding, findings) && finding_doing(finding) == STATE_RQ &&
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

static int64_t priority_of(const struct findings *findings, const struct finding_name *name)
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

		if (priority_of(findings, name) >= PRIORITY_PATIENT)
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

/* A limit of which that many percent are used up, of the finding's device if that is known; NULL:
 * none. */
static const struct source_io_limit *limit_of(const struct finding *finding,
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

/* Doubts --------------------------------------------------------------------------------------- */

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
	return !is_one(finding, PARTY_WAITERS);
}

/* A limit that is not used up may hold requests back as well, for some of the time. */
static bool requests_in_doubt(const struct finding *finding, const struct findings *findings)
{
	for (size_t i = 0; i < findings->status->absent_count; i++)
		if (findings->status->absent[i].needs & NEED_BLOCK)
			return true;
	return limit_of(finding, findings, 0);
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
	{"lock", "threads wait for the holder of a lock", "locks", true, false, takes_lock, key_lock, thing_lock, holds_lock, NULL,
	 "{waiters} {wait} for {thing} of {culprit}|, which {doing}|; {longest} at most",
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
	 "{waiters} {wait} for {thing}, which is slow|: half of it for requests {age} old|{others}|{symptoms}",
	 "-g comm,filename,io_dev,io_op --filter state=D"},
	/* a few reads of a program that starts */
	{"disk", "threads wait for a device that is busy", "disks", false, false, takes_disk, key_device, device_of, holds_enough, always_in_doubt,
	 "{waiters} {wait} for {thing}, which is busy|{others}|{symptoms}",
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
	/* short sleeps and runs between two scans, in which other threads are seen */
	{"unseen", "much of the time was not seen by any scan", "unseen", false, true, takes_none, NULL, NULL, holds_unseen, always_in_doubt,
	 "{share} of the time was not seen|: no scan met its threads in that state",
	 "-F 200"},
};
/* clang-format on */

const size_t finding_row_count = sizeof(finding_rows) / sizeof(finding_rows[0]);

static const struct finding_row *row_named(const char *name)
{
	const struct finding_row *row = finding_rows;

	while (strcmp(row->name, name) != 0)
		row++;
	return row;
}

void findings_describe(struct text *text)
{
	text_add_string(text, "\nFindings, for --findings and --when 'finding=NAME':\n");
	for (const struct finding_row *row = finding_rows; row < finding_rows + finding_row_count;
	     row++) {
		if (row != row_named(row->name))
			continue;
		text_add_format(text, "  %-21s     %s\n", row->name, row->help);
	}
}

/* Adding --------------------------------------------------------------------------------------- */

void findings_init(struct findings *findings, struct exact_times *times)
{
	struct error unsaid = {0};

	*findings = (struct findings){0};
	column_list_add(&findings->list, "findings", true, &unsaid);
	findings->list.items[findings->list.count++] = &age_column;
	group_table_init(&findings->groups, &findings->list);
	if (times && times->shared)
		group_table_split(&findings->groups, times, REST_NOWHERE);
	error_done(&unsaid);
}

uint64_t findings_needs(const void *state)
{
	const struct findings *findings = state;

	return column_list_needs(&findings->list);
}

/* Number of the step that an age is in; least age of a step. */
static int64_t age_step(int64_t us)
{
	int64_t power = 0;

	if (us == ABSENT)
		return ABSENT;
	while (us >> power > 1 && power + 1 < FINDING_AGES / AGE_STEPS)
		power++;
	return us < AGE_STEPS ? us
			      : power * AGE_STEPS + us * AGE_STEPS / (1ll << power) % AGE_STEPS;
}

static int64_t age_least_us(int64_t step)
{
	return step < AGE_STEPS
		       ? step
		       : (AGE_STEPS + step % AGE_STEPS) * (1ll << step / AGE_STEPS) / AGE_STEPS;
}

/* Notes the times of a sample or an account. */
static struct finding_process *process_add(struct findings *findings, const struct sample *sample)
{
	struct finding_process *process;

	if (sample->thread.pid == ABSENT || sample->sums.cpu_us == ABSENT)
		return NULL;
	process = keyed_put(&findings->processes, sizeof(*process), (uint64_t)sample->thread.pid,
			    NULL);
	process->awake_us =
		sum(process->awake_us,
		    sum(sample->sums.cpu_us, sum(sample->sums.runq_us, sample->sums.dwait_us)));
	return process;
}

static void maker_add(struct findings *findings, enum finding_made made,
		      const struct sample *account, int64_t count, int64_t pid)
{
	uint64_t key = (uintptr_t)account->thread.comm + hash_u64((uint64_t)account->thread.uid);
	struct finding_maker *maker;

	if (count == ABSENT || count <= 0)
		return;
	maker = keyed_put(&findings->makers[made], sizeof(*maker), key, NULL);
	maker->comm = account->thread.comm;
	maker->count = sum(maker->count, count);
	maker->votes += pid == maker->pid ? count : -count;
	if (maker->votes >= 0)
		return;
	maker->votes = -maker->votes;
	maker->pid = pid;
}

/* Adds the sample without facts that no row reads, so that it shares its group with others. */
void findings_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct findings *findings = state;
	struct sample group = *sample;

	group.io.bytes = age_step(sample->io.us);
	if (sample->wait.before_us > 0 && sample->now.state_us != ABSENT)
		group.now.state_us = sum(sample->now.state_us, sample->wait.before_us);
	if (sample->now.state == STATE_ON || sample->now.state == STATE_RQ) {
		if (sample->file.name &&
		    !strncmp(sample->file.name, VIRTUAL_CPU, strlen(VIRTUAL_CPU)))
			group.call.name = NULL; /* the guest runs, not the kernel */
		group.file.name = group.io.others = NULL;
		group.call.arg[0] = ABSENT;
	}
	group_table_add_noted(&findings->groups, &group, note);
	process_add(findings, sample);
	maker_add(findings, MADE_SWITCHES, sample, sample->sums.vcsw, sample->thread.pid);
}

void findings_add_account(void *state, const struct sample *account)
{
	struct findings *findings = state;
	struct finding_process *process = process_add(findings, account);

	if (process && (account->thread.tid == account->thread.pid ||
			account->thread.start_ns >= findings->began_ns)) {
		process->pid = account->thread.pid;
		process->made += account->thread.start_ns >= findings->began_ns;
		if (account->thread.tid == account->thread.pid || !process->name)
			process->name = account->thread.comm;
	}
	if (account->thread.tid == ABSENT)
		findings->ended_us = sum(findings->ended_us,
					 sum(account->sums.cpu_us,
					     sum(account->sums.runq_us, account->sums.dwait_us)));
	maker_add(findings, MADE_PROCESSES, account, account->sums.forks, account->makers.fork_pid);
	maker_add(findings, MADE_THREADS, account, account->sums.new_threads,
		  account->makers.thread_pid);
	maker_add(findings, MADE_SWITCHES, account, account->sums.vcsw, account->thread.pid);
}

void findings_end_scan(struct findings *findings, int64_t threads)
{
	int64_t grown = threads - findings->threads_last;

	if (!threads)
		return;
	if (!findings->threads_first) {
		findings->threads_first = threads;
		findings->began_ns = clock_boot_ns();
	} else if (grown > findings->threads_jump)
		findings->threads_jump = grown;
	findings->threads_last = threads;
	findings->threads_sum += threads;
	findings->thread_scans++;
}

/* Finding -------------------------------------------------------------------------------------- */

/* Adds time to the name in a list. One of several names with the same summary stands for it alone
 * only. list: a number of the list, for counting its threads. */
static void name_add(struct findings *findings, struct keyed *names, uint64_t list,
		     struct finding_name add, const char *summary)
{
	uint64_t key = text_key(summary);
	struct finding_name *row;
	bool added;

	row = keyed_put(names, sizeof(*row), key, &added);
	if (added)
		*row = (struct finding_name){.name = add.name, .pid = add.pid, .tid = add.tid};
	if (row->name != add.name)
		row->name = summary;
	if (row->pid != add.pid)
		row->pid = ABSENT;
	row->weight_us = sum(row->weight_us, add.weight_us);
	if (add.tid == ABSENT)
		return;
	index_put(&findings->thread_ids, hash_u64(hash_u64((uint64_t)add.tid + list) + key),
		  &added);
	row->threads += added;
}

static void party_add(struct findings *findings, struct finding *finding, enum finding_party party,
		      struct finding_name add, const char *summary)
{
	uint64_t at = (uint64_t)(finding - (struct finding *)findings->found.rows);

	name_add(findings, &finding->parties[party], ((at + 1) * PARTY_COUNT + party) << 32, add,
		 summary);
}

static struct finding_name name_of_sample(const struct finding_case *of)
{
	return (struct finding_name){.name = of->sample->thread.comm,
				     .pid = of->sample->thread.pid,
				     .tid = of->sample->thread.tid,
				     .weight_us = of->weight_us};
}

/* Adds what the culprit does. */
static void doing_add(struct findings *findings, struct finding *finding,
		      const struct finding_case *of)
{
	int state = of->root.state >= 0 && of->root.state < STATE_COUNT ? (int)of->root.state
									: STATE_COUNT;
	struct finding_name named = {
		.name = of->root.syscall, .pid = ABSENT, .tid = ABSENT, .weight_us = of->weight_us};

	finding->doing_us[state] = sum(finding->doing_us[state], of->weight_us);
	party_add(findings, finding, PARTY_CALLS, named, named.name);
	named.name = of->root.waits_on;
	if (of->root.state == STATE_RQ)
		named.name = of->end == EDGE_CPU ? name_transient_string(of->thing) : NULL;
	party_add(findings, finding, PARTY_AWAITED, named, named.name);
}

static void parties_add(struct findings *findings, struct finding *finding,
			const struct finding_case *of)
{
	const struct sample *sample = of->sample;
	const char *thing = finding->row->thing ? finding->row->thing(of) : NULL;
	struct finding_name named = {.pid = ABSENT, .tid = ABSENT, .weight_us = of->weight_us};

	if (thing) {
		named.name = name_transient_string(thing);
		party_add(findings, finding, PARTY_THINGS, named, named.name);
	}
	if (of->rooted && !finding->row->of_roots) {
		finding->symptom_us = sum(finding->symptom_us, of->weight_us);
		return;
	}
	if (waits_on_traits(sample->wait.on) & WAITS_FOR_ACCEPTANCE)
		finding->unaccepted_us = sum(finding->unaccepted_us, of->weight_us);
	party_add(findings, finding, PARTY_WAITERS, name_of_sample(of), sample->thread.commsum);
	if (of->rooted) {
		named = (struct finding_name){.name = of->root.comm,
					      .pid = of->root.pid,
					      .tid = of->root.tid,
					      .weight_us = of->weight_us};
		party_add(findings, finding, PARTY_CULPRITS, named, named.name);
		doing_add(findings, finding, of);
	} else if (sample->blocker.oncpu_comm || sample->io.others) {
		named.name =
			sample->blocker.oncpu_comm ? sample->blocker.oncpu_comm : sample->io.others;
		named.pid = sample->blocker.pid;
		named.tid = sample->blocker.tid;
		party_add(findings, finding, PARTY_CULPRITS, named, named.name);
	}
}

static void finding_add(struct findings *findings, struct finding *finding,
			const struct finding_case *of)
{
	const struct sample *sample = of->sample;

	finding->samples += of->samples;
	finding->weight_us = sum(finding->weight_us, of->weight_us);
	if (case_is_certain(of) && (!of->rooted || finding->row->of_roots))
		finding->certain_us = sum(finding->certain_us, of->weight_us);
	/* how long others wait for the problem's own threads is not how long these wait; some
	 * kinds wake up every few ms, and wait on */
	if ((!of->rooted || finding->row->of_roots) &&
	    !(edge_kinds[of->link].traits & SLEEPS_BRIEFLY) &&
	    sample->now.state_us > finding->longest_us)
		finding->longest_us = sample->now.state_us;
	if (sample->io.bytes >= 0 && sample->io.bytes < FINDING_AGES)
		finding->ages_us[sample->io.bytes] =
			sum(finding->ages_us[sample->io.bytes], of->weight_us);
	parties_add(findings, finding, of);
	if (of->rooted && of->weight_us > finding->chain_us) {
		finding->chain = sample->chain.text;
		finding->link = of->link;
		finding->chain_us = of->weight_us;
	}
}

static struct finding *finding_put(struct findings *findings, const struct finding_row *row,
				   uint64_t key)
{
	struct finding *finding;
	bool added = false;

	key = hash_u64(key + hash_u64((uint64_t)(row - finding_rows)));
	finding = findings->found.count < FINDINGS_MAX
			  ? keyed_put(&findings->found, sizeof(*finding), key, &added)
			  : keyed_find(&findings->found, sizeof(*finding), key);
	if (added)
		*finding = (struct finding){.row = row};
	return finding;
}

/* Notes that chains which begin like this one lead on to the finding; 0: to different ones. */
static void through_add(struct findings *findings, const struct finding *finding,
			const struct finding_case *of)
{
	uint64_t to = (uint64_t)(finding - (struct finding *)findings->found.rows) + 1, *through;
	const char *chain = of->sample->chain.text;
	bool added;

	for (const char *at = chain; of->rooted && (at = strstr(at, "> ")); at += 2) {
		size_t length = (size_t)(at - chain);
		enum edge_kind link = kind_beside(chain, length, true);

		if (link == EDGE_NONE)
			continue;
		length -= strlen(edge_kinds[link].name) + (at[-1] == *EDGE_DOUBT) + 1;
		through = index_put(&findings->through, hash_bytes(chain, length), &added);
		*through = added || *through == to ? to : 0;
	}
}

/* Adds the case to the finding that takes it. */
static void case_add(struct findings *findings, const struct finding_case *of)
{
	const struct finding_row *row = finding_rows;
	struct finding *finding;

	while (row < finding_rows + finding_row_count && !row->takes(of))
		row++;
	finding = row < finding_rows + finding_row_count ? finding_put(findings, row, row->key(of))
							 : NULL;
	if (!finding) {
		findings->none_us = sum(findings->none_us, of->weight_us);
		return;
	}
	finding_add(findings, finding, of);
	through_add(findings, finding, of);
	if (takes_lock(of) && of->root.tid != ABSENT && of->root.state == STATE_RQ) {
		struct finding_holder *holder = keyed_put(&findings->holders, sizeof(*holder),
							  (uint64_t)of->root.tid, NULL);

		holder->finding = (size_t)(finding - (struct finding *)findings->found.rows);
		holder->queued_us = sum(holder->queued_us, of->weight_us);
	}
}

/* Moves a thread's wait for a CPU to the lock that it holds, as a symptom, as far as others waited
 * for the lock meanwhile. True: all of it. */
static bool holder_add(struct findings *findings, struct finding_case *of)
{
	struct finding_holder *holder =
		keyed_find(&findings->holders, sizeof(*holder), (uint64_t)of->sample->thread.tid);
	struct finding *finding;
	int64_t us;

	if (!holder || of->rooted || of->root.state != STATE_RQ || takes_quota(of))
		return false;
	finding = (struct finding *)findings->found.rows + holder->finding;
	if (!holds_lock(finding, findings))
		return false;
	us = of->weight_us < holder->queued_us ? of->weight_us : holder->queued_us;
	holder->queued_us -= us;
	of->weight_us -= us;
	finding->weight_us = sum(finding->weight_us, us);
	finding->symptom_us = sum(finding->symptom_us, us);
	return us && !of->weight_us;
}

static bool is_wait(const struct sample *sample)
{
	return sample->now.state == STATE_RQ || sample->now.state == STATE_DISK ||
	       (sample->now.state == STATE_SLEEP && wait_class_works(sample->wait.why));
}

static void facts_add(struct findings *findings, const struct finding_case *of)
{
	const struct sample *sample = of->sample;

	findings->total_us = sum(findings->total_us, of->weight_us);
	if (is_wait(sample) && sample->now.state_us != ABSENT &&
	    sample->now.state_us > findings->longest_us)
		findings->longest_us = sample->now.state_us;
	if (sample->now.state == STATE_RQ)
		findings->rq_us = sum(findings->rq_us, of->weight_us);
	if (sample->now.state != STATE_ON)
		return;
	findings->on_us = sum(findings->on_us, of->weight_us);
	if (takes_kernel(of))
		findings->kernel_us = sum(findings->kernel_us, of->weight_us);
	name_add(findings, &findings->runners, 0, name_of_sample(of), sample->thread.commsum);
	*index_put(&findings->busy, (uint64_t)sample->thread.tid, NULL) += (uint64_t)of->weight_us;
}

/* Order of the groups: the facts of all come first, and waits for holders before these. */
enum pass { PASS_FACTS, PASS_ROOTED, PASS_OTHERS, PASS_COUNT };

static void group_find(struct findings *findings, const union value *group, enum pass pass)
{
	struct sample sample = *sample_absent();
	int64_t weight_us = group_weight_us(&findings->groups, group);
	struct finding_case of;

	for (size_t i = 0; i < findings->list.count; i++)
		column_set(findings->list.items[i], &sample, group[findings->groups.word_of[i]]);
	of = case_of(&sample, group_samples(&findings->groups, group),
		     weight_us == ABSENT ? 0 : weight_us);
	if (pass == PASS_FACTS) {
		facts_add(findings, &of);
	} else if (of.rooted == (pass == PASS_ROOTED) && !holder_add(findings, &of)) {
		case_add(findings, &of);
	}
}

static const struct source_quota *quota_of(const struct finding *finding,
					   const struct findings *findings)
{
	const struct finding_name *group = finding_first(finding, PARTY_THINGS);

	for (size_t i = 0; group && i < findings->status->quota_count; i++)
		if (is_text(group->name, findings->status->quotas[i].path))
			return &findings->status->quotas[i];
	return NULL;
}

static int names_compare(const void *a, const void *b)
{
	const struct finding_name *x = a, *y = b;

	if (x->weight_us != y->weight_us)
		return x->weight_us < y->weight_us ? 1 : -1;
	return x->name && y->name ? strcmp(x->name, y->name) : 0;
}

static void names_sort(struct keyed *names)
{
	if (names->count)
		qsort(names->rows, names->count, sizeof(struct finding_name), names_compare);
}

/* A thread of the culprit that is not known sleeps as well where none of its process is awake. */
static void doing_conclude(const struct findings *findings, struct finding *finding)
{
	const struct finding_name *culprit = finding_first(finding, PARTY_CULPRITS);
	const struct finding_process *process;

	if (!culprit || culprit->tid != ABSENT || culprit->pid == ABSENT)
		return;
	process = keyed_find(&findings->processes, sizeof(*process), (uint64_t)culprit->pid);
	if (process ? ratio(process->awake_us, 100, findings->elapsed_us) >= QUIET_PERCENT
		    : !findings->of_all)
		return;
	finding->doing_us[STATE_SLEEP] += finding->doing_us[STATE_COUNT];
	finding->doing_us[STATE_COUNT] = 0;
}

/* True if the kernel counts the group as throttled for nearly all the time on each CPU where one of
 * its threads may have waited: no sample of such a wait can then be of another one. */
static bool is_throttled(const struct findings *findings, const struct finding *finding)
{
	const struct finding_name *waiter = finding_first(finding, PARTY_WAITERS);
	int64_t queues = 0;

	for (size_t i = 0; i < finding->parties[PARTY_WAITERS].count; i++)
		queues += waiter[i].threads;
	if (findings->cpus != ABSENT && queues > findings->cpus)
		queues = findings->cpus;
	return finding->quota && queues &&
	       ratio(finding->quota->throttled_us, 100, queues * findings->elapsed_us) >=
		       THROTTLED_PERCENT;
}

/* Decides which row of those that take its cases the finding is of, if any. */
static void finding_decide(struct findings *findings, struct finding *finding)
{
	const struct finding_row *row = finding->row, *end = finding_rows + finding_row_count;

	for (int party = 0; party < PARTY_COUNT; party++)
		names_sort(&finding->parties[party]);
	finding->limit = limit_of(finding, findings, LIMIT_PERCENT);
	finding->quota = quota_of(finding, findings);
	if (is_throttled(findings, finding))
		finding->certain_us = finding->weight_us - finding->symptom_us;
	doing_conclude(findings, finding);
	finding->holder_priority = finding->waiter_priority = ABSENT;
	if (row->takes == takes_lock && finding_doing(finding) == STATE_RQ &&
	    is_one(finding, PARTY_CULPRITS)) {
		finding->holder_priority =
			priority_of(findings, finding_first(finding, PARTY_CULPRITS));
		finding->waiter_priority =
			priority_of(findings, finding_first(finding, PARTY_WAITERS));
	}
	for (; row < end && row->takes == finding->row->takes; row++) {
		if (!row->holds(finding, findings))
			continue;
		finding->row = row;
		finding->held = true;
		if (row->in_doubt && row->in_doubt(finding, findings))
			finding->certain_us = 0;
		findings->count++;
		return;
	}
	findings->none_us = sum(findings->none_us, finding->weight_us);
}

/* Adds a finding without cases if its row holds. */
static struct finding *counted_add(struct findings *findings, const char *name, int64_t weight_us,
				   int64_t rate, struct finding_name culprit)
{
	const struct finding_row *row = row_named(name);
	struct finding finding = {
		.row = row, .weight_us = weight_us, .certain_us = weight_us, .rate = rate};
	struct finding *added;

	if (!row->holds(&finding, findings))
		return NULL;
	added = finding_put(findings, row, 0);
	if (!added)
		return NULL;
	*added = finding;
	added->held = true;
	findings->count++;
	findings->unseen_us -= weight_us;
	if (culprit.name)
		party_add(findings, added, PARTY_CULPRITS, culprit, culprit.name);
	return added;
}

/* Has full CPUs be a symptom of what a program makes too often, if it is most of those that wait
 * for them, or that run in the kernel. */
static void storm_take(struct findings *findings, struct finding *storm, const char *program)
{
	struct finding *found = findings->found.rows;

	for (size_t i = 0; i < findings->found.count; i++) {
		const struct finding_name *first = finding_first(&found[i], PARTY_WAITERS);

		if (!found[i].held || !first || !is_text(first->name, program) ||
		    (found[i].row->takes != takes_cpus && found[i].row->takes != takes_kernel))
			continue;
		storm->weight_us = sum(storm->weight_us, found[i].weight_us);
		storm->symptom_us = sum(storm->symptom_us, found[i].weight_us);
		found[i].held = false;
		findings->count--;
	}
}

/* Adds the finding of what is made too often, by whom. True: it is. */
static bool made_find(struct findings *findings, const char *name, enum finding_made made,
		      int64_t weight_us, int64_t elapsed_us)
{
	struct finding_name culprit = {.pid = ABSENT, .tid = ABSENT};
	const struct finding_maker *makers = findings->makers[made].rows;
	struct finding *storm;
	int64_t count = 0;

	for (size_t i = 0; i < findings->makers[made].count; i++) {
		count = sum(count, makers[i].count);
		if (makers[i].count <= culprit.weight_us)
			continue;
		culprit.name = makers[i].comm;
		culprit.weight_us = makers[i].count;
		culprit.pid = makers[i].votes * 2 >= makers[i].count ? makers[i].pid : ABSENT;
	}
	if (culprit.weight_us * 2 < count)
		culprit.name = NULL; /* no program makes most of them */
	storm = counted_add(findings, name, weight_us,
			    ratio(count, 100 * US_PER_SECOND, elapsed_us), culprit);
	if (storm)
		storm_take(findings, storm, culprit.name);
	return storm;
}

/* Finds what counts show, not samples. */
/* Finds the listeners that refused connections. */
static void refused_find(struct findings *findings)
{
	const struct finding_row *row = row_named("accept_queue");

	for (size_t i = 0; i < findings->status->listener_count; i++) {
		const struct source_listener *listener = &findings->status->listeners[i];
		struct finding finding = {.row = row, .samples = listener->dropped, .held = true};
		struct finding_name thing = {.pid = ABSENT, .tid = ABSENT};
		struct finding *added;
		char name[16];

		if (!row->holds(&finding, findings))
			continue;
		added = finding_put(findings, row, listener->inode);
		if (!added)
			continue;
		*added = finding;
		findings->count++;
		snprintf(name, sizeof(name), "tcp :%u", listener->port);
		thing.name = name_of_string(name);
		party_add(findings, added, PARTY_THINGS, thing, thing.name);
	}
}

static void counts_find(struct findings *findings, const struct tally *tally)
{
	const struct finding_name none = {.pid = ABSENT, .tid = ABSENT};
	const struct finding_process *processes = findings->processes.rows;
	int64_t grown = findings->threads_last - findings->threads_first;
	struct finding_name maker = none;
	int64_t ended_us =
		findings->ended_us < findings->unseen_us ? findings->ended_us : findings->unseen_us;

	/* what so many are made for ends unseen */
	if (made_find(findings, "forks", MADE_PROCESSES, ended_us, tally->elapsed_us))
		ended_us = 0;
	made_find(findings, "new_threads", MADE_THREADS, ended_us, tally->elapsed_us);
	made_find(findings, "switches", MADE_SWITCHES, 0, tally->elapsed_us);
	for (size_t i = 0; i < findings->processes.count; i++)
		if (processes[i].made * 2 > grown && processes[i].made > maker.weight_us)
			maker = (struct finding_name){.name = processes[i].name,
						      .pid = processes[i].pid,
						      .tid = ABSENT,
						      .weight_us = processes[i].made};
	/* where no process makes most of them, programs start, and perhaps others than those that
	 * are selected; a recording does not tell */
	if (maker.name || !findings->source || !findings->source->host)
		counted_add(findings, "threads", 0,
			    ratio(grown, 100 * US_PER_SECOND, tally->elapsed_us), maker);
	refused_find(findings);
	counted_add(findings, "unseen", findings->unseen_us, 0, none);
}

/* True if the finding is about the other end of a wait that was followed no farther. */
static bool is_open_end(const struct finding *finding)
{
	return finding->held && finding->row->takes == takes_server && finding->chain &&
	       finding_doing(finding) == STATE_SLEEP;
}

/* Hangs waits for a server that waits itself below what it waits for. An event loop with several
 * connections does not show which of them is for which client; the chains of clients whose server
 * has one, as another process of a pool, lead on from there. */
static void open_ends_move(struct findings *findings)
{
	struct finding *found = findings->found.rows;

	for (size_t i = 0; i < findings->found.count; i++) {
		uint64_t *through = is_open_end(&found[i]) ? index_find(&findings->through,
									text_key(found[i].chain))
							   : NULL;
		struct finding *to = through && *through ? &found[*through - 1] : NULL;

		if (!to || to == &found[i] || !to->held)
			continue;
		to->weight_us = sum(to->weight_us, found[i].weight_us);
		to->symptom_us = sum(to->symptom_us, found[i].weight_us);
		found[i].weight_us = 0;
		found[i].held = false;
		findings->count--;
	}
}

static int findings_compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->held != y->held)
		return x->held ? -1 : 1;
	if (x->weight_us != y->weight_us)
		return x->weight_us < y->weight_us ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

void findings_fill(struct findings *findings, const struct tally *tally,
		   const struct source_status *status, const struct source *source)
{
	size_t of_cases;

	findings->status = status;
	findings->source = source;
	findings->elapsed_us = tally->elapsed_us;
	findings->cpus = status->cpus;
	for (int pass = PASS_FACTS; pass < PASS_COUNT; pass++) {
		for (size_t at = 0; at < findings->groups.count; at++)
			group_find(findings, group_at(&findings->groups, at), (enum pass)pass);
		if (pass == PASS_FACTS && tally->shared_us > findings->total_us) {
			findings->unseen_us = tally->shared_us - findings->total_us;
			findings->total_us = tally->shared_us;
		}
	}
	names_sort(&findings->runners);
	of_cases = findings->found.count;
	for (size_t i = 0; i < of_cases; i++)
		finding_decide(findings, (struct finding *)findings->found.rows + i);
	open_ends_move(findings);
	counts_find(findings, tally);
	if (findings->found.count)
		qsort(findings->found.rows, findings->found.count, sizeof(struct finding),
		      findings_compare);
}

void findings_clear(void *state)
{
	struct findings *findings = state, kept = {
						   .alone = findings->alone,
						   .of_all = findings->of_all,
						   .groups = findings->groups,
						   .list = findings->list,
					   };
	struct finding *found = findings->found.rows;

	for (size_t i = 0; i < findings->found.count; i++)
		for (int party = 0; party < PARTY_COUNT; party++)
			keyed_done(&found[i].parties[party]);
	keyed_done(&findings->found);
	keyed_done(&findings->processes);
	for (int made = 0; made < MADE_COUNT; made++)
		keyed_done(&findings->makers[made]);
	keyed_done(&findings->runners);
	index_clear(&findings->thread_ids);
	keyed_done(&findings->holders);
	index_clear(&findings->busy);
	index_clear(&findings->through);
	*findings = kept;
	findings->groups.list = &findings->list;
	group_table_clear(&findings->groups);
}

void findings_done(void *state)
{
	struct findings *findings = state;

	findings_clear(findings);
	group_table_done(&findings->groups);
	*findings = (struct findings){0};
}

/* Reading -------------------------------------------------------------------------------------- */

const struct finding_name *finding_first(const struct finding *finding, enum finding_party party)
{
	return finding->parties[party].count ? finding->parties[party].rows : NULL;
}

const char *finding_certainty(const struct finding *finding)
{
	int64_t own_us = finding->weight_us - finding->symptom_us;

	return finding->certain_us >= own_us && (own_us || !finding->symptom_us) ? "certain"
										 : "likely";
}

int finding_doing(const struct finding *finding)
{
	int most = STATE_COUNT;

	for (int state = 0; state < STATE_COUNT; state++)
		if (finding->doing_us[state] > finding->doing_us[most])
			most = state;
	return most;
}

const char *finding_mostly(const struct finding *finding, enum finding_party party)
{
	const struct finding_name *first = finding_first(finding, party);
	int64_t all_us = 0;

	for (int state = 0; state <= STATE_COUNT; state++)
		all_us = sum(all_us, finding->doing_us[state]);
	return first && first->weight_us * 2 > all_us ? first->name : NULL;
}

int64_t finding_age_us(const struct finding *finding)
{
	int64_t all_us = 0, until_us = 0;

	for (int age = 0; age < FINDING_AGES; age++)
		all_us = sum(all_us, finding->ages_us[age]);
	for (int age = FINDING_AGES - 1; age >= 0 && all_us; age--) {
		until_us = sum(until_us, finding->ages_us[age]);
		if (until_us * 2 >= all_us)
			return age_least_us(age);
	}
	return ABSENT;
}
