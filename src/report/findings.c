/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/findings.h"
#include "base/clock.h"
#include "base/names.h"
#include "report/value.h"
#include "sample/wait_rule.h"
#include "sample/waits_on.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_PERCENT 20 /* of a CPU: what a process does that does nothing for those who wait */
#define AGE_STEPS 4
#define LIMIT_PERCENT 75     /* of an I/O limit that counts as exhausted */
#define THROTTLED_PERCENT 80 /* of the time, and so nearly all waits are for the quota */
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

/* Groups are made of the columns of the set `findings`, and of these: the age of the thread's
 * request to a device, by steps, and who has the CPU, which a recording need not have. */
#define MORE(name, kind, need, member)                                                 \
	{                                                                              \
		name, "", "", kind, ROLE_KEY, need, 0, offsetof(struct sample, member) \
	}
static const struct column more_columns[] = {
	MORE("io_age", KIND_NUMBER, NEED_BLOCK, io.bytes),
	MORE("neighbour", KIND_TEXT, NEED_NEIGHBOUR, blocker.neighbour),
};

void findings_init(struct findings *findings, struct exact_times *times)
{
	struct error unsaid = {0};

	*findings = (struct findings){0};
	column_list_add(&findings->list, "findings", true, &unsaid);
	for (size_t i = 0; i < sizeof(more_columns) / sizeof(more_columns[0]); i++)
		findings->list.items[findings->list.count++] = &more_columns[i];
	group_table_init(&findings->groups, &findings->list);
	group_table_know_alike(&findings->groups);
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

/* Adds the sample to its group without facts that no row reads, so that it shares this with others.
 */
static void group_add(struct findings *findings, const struct sample *sample,
		      struct exact_note note)
{
	struct sample group = *sample;

	group.io.bytes = age_step(sample->io.us);
	if (sample->io.us != ABSENT)
		group.scan.alike = 0; /* the age is a key */
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
}

/* True if group_add() would change nothing of it. */
static bool is_plain(const struct sample *sample)
{
	return sample->io.us == ABSENT && sample->io.bytes == ABSENT &&
	       !(sample->wait.before_us > 0 && sample->now.state_us != ABSENT) &&
	       sample->now.state != STATE_ON && sample->now.state != STATE_RQ;
}

void findings_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct findings *findings = state;

	if (is_plain(sample))
		group_table_add_noted(&findings->groups, sample, note);
	else
		group_add(findings, sample, note);
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
	if (finding_case_is_certain(of) && (!of->rooted || finding->row->of_roots))
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

static uint64_t key_of(const struct finding_row *row, uint64_t key)
{
	return hash_u64(key + hash_u64((uint64_t)(row - finding_rows)));
}

static struct finding *finding_put(struct findings *findings, const struct finding_row *row,
				   uint64_t key)
{
	struct finding *finding;
	bool added = false;

	key = key_of(row, key);
	finding = findings->found.count < FINDINGS_MAX
			  ? keyed_put(&findings->found, sizeof(*finding), key, &added)
			  : keyed_find(&findings->found, sizeof(*finding), key);
	if (added)
		*finding = (struct finding){.row = row, .key = key};
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
		enum edge_kind link = edge_kind_beside(chain, length, true);

		if (link == EDGE_NONE)
			continue;
		length -= strlen(edge_kinds[link].name) + (at[-1] == *EDGE_DOUBT) + 1;
		through = index_put(&findings->through, hash_bytes(chain, length), &added);
		*through = added || *through == to ? to : 0;
	}
}

/* The first row that takes the case; NULL: none does. */
static const struct finding_row *row_of(const struct finding_case *of)
{
	const struct finding_row *row = finding_rows;

	while (row < finding_rows + finding_row_count && !row->takes(of))
		row++;
	return row < finding_rows + finding_row_count ? row : NULL;
}

uint64_t finding_key_of(const struct sample *sample)
{
	struct finding_case of = finding_case_of(sample, 1, 0);
	const struct finding_row *row = row_of(&of);

	return row ? key_of(row, row->key(&of)) : 0;
}

/* Adds the case to the finding that takes it. */
static void case_add(struct findings *findings, const struct finding_case *of)
{
	const struct finding_row *row = row_of(of);
	struct finding *finding = row ? finding_put(findings, row, row->key(of)) : NULL;

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
	if (!finding_holds_lock(finding, findings))
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
	of = finding_case_of(&sample, group_samples(&findings->groups, group),
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

/* What the kernel counted of the finding's device, if it had requests, or has any now. */
static const struct source_device *device_counted(const struct finding *finding,
						  const struct findings *findings)
{
	const struct finding_name *device =
		finding->row->thing == device_of ? finding_first(finding, PARTY_THINGS) : NULL;

	for (size_t i = 0; device && i < findings->status->device_count; i++)
		if (is_text(device->name, findings->status->devices[i].name) &&
		    (findings->status->devices[i].requests > 0 ||
		     findings->status->devices[i].in_flight > 0))
			return &findings->status->devices[i];
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
	finding->limit = finding_limit(finding, findings, LIMIT_PERCENT);
	finding->quota = quota_of(finding, findings);
	finding->device = device_counted(finding, findings);
	if (is_throttled(findings, finding))
		finding->certain_us = finding->weight_us - finding->symptom_us;
	doing_conclude(findings, finding);
	finding->holder_priority = finding->waiter_priority = ABSENT;
	if (row->takes == takes_lock && finding_doing(finding) == STATE_RQ &&
	    finding_is_one(finding, PARTY_CULPRITS)) {
		finding->holder_priority =
			finding_priority(findings, finding_first(finding, PARTY_CULPRITS));
		finding->waiter_priority =
			finding_priority(findings, finding_first(finding, PARTY_WAITERS));
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
	const struct finding_row *row = finding_row_find(name);
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
 * for them, or that run in the kernel. program NULL: waits for CPUs, of all, but not behind a
 * neighbour. */
static void storm_take(struct findings *findings, struct finding *storm, const char *program)
{
	struct finding *found = findings->found.rows;

	for (size_t i = 0; i < findings->found.count; i++) {
		const struct finding_name *first = finding_first(&found[i], PARTY_WAITERS);

		if (!found[i].held ||
		    (found[i].row->takes != takes_cpus &&
		     (found[i].row->takes != takes_kernel || !program)) ||
		    (program ? !first || !is_text(first->name, program)
			     : found[i].row->thing != NULL))
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

/* Finds the listeners that refused connections. */
static void refused_find(struct findings *findings)
{
	const struct finding_row *row = finding_row_find("accept_queue");

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

/* Adds what a thread of the process does that should read; one of several by its name. */
static void unread_add(struct findings *findings, struct finding *finding, const char *name,
		       const union value *group)
{
	const struct source_unread *unread = finding->unread;
	struct sample sample = *sample_absent();
	struct finding_name named;
	struct finding_case of;

	for (size_t i = 0; i < findings->list.count; i++)
		column_set(findings->list.items[i], &sample, group[findings->groups.word_of[i]]);
	if (unread->pid != ABSENT ? sample.thread.pid != unread->pid
				  : !is_text(sample.thread.comm, unread->comm))
		return;
	if (sample.now.state != STATE_ON && !is_wait(&sample))
		return;
	of = finding_case_of(&sample, group_samples(&findings->groups, group),
			     group_weight_us(&findings->groups, group));
	if (of.weight_us == ABSENT)
		return;
	if (of.weight_us > finding->chain_us) {
		finding->chain = sample.chain.text;
		finding->chain_us = of.weight_us;
	}
	of.rooted = false; /* what it does itself */
	of.root = (struct sample_root){
		.state = sample.now.state, .syscall = sample.call.name, .waits_on = sample.wait.on};
	doing_add(findings, finding, &of);
	named = (struct finding_name){.name = name,
				      .pid = unread->pid,
				      .tid = sample.thread.tid,
				      .weight_us = of.weight_us};
	party_add(findings, finding, PARTY_CULPRITS, named, named.name);
}

/* Finds the ports whose requests nobody reads. */
static void unread_find(struct findings *findings)
{
	const struct finding_row *row = finding_row_find("unread");

	for (size_t i = 0; i < findings->status->unread_count; i++) {
		const struct source_unread *unread = &findings->status->unread[i];
		struct finding *finding =
			finding_put(findings, row, hash_u64(unread->net) + unread->port);
		struct finding_name name = {.pid = unread->pid, .tid = ABSENT};
		char port[16];

		if (!finding)
			continue;
		*finding = (struct finding){.row = row,
					    .samples = unread->requests,
					    .longest_us = unread->oldest_us,
					    .unread = unread};
		if (*unread->comm) {
			name.name = name_transient_string(unread->comm);
			for (size_t at = 0; at < findings->groups.count; at++)
				unread_add(findings, finding, name.name,
					   group_at(&findings->groups, at));
			if (!finding_first(finding, PARTY_CULPRITS))
				party_add(findings, finding, PARTY_CULPRITS, name, name.name);
		}
		snprintf(port, sizeof(port), "tcp :%u", unread->port);
		name = (struct finding_name){
			.name = name_of_string(port), .pid = ABSENT, .tid = ABSENT};
		party_add(findings, finding, PARTY_THINGS, name, name.name);
		for (int party = 0; party < PARTY_COUNT; party++)
			names_sort(&finding->parties[party]);
		finding->held = row->holds(finding, findings);
		findings->count += finding->held;
	}
}

/* Finds by their own counters the JVMs and Go programs for which the row holds. */
static void runtimes_find(struct findings *findings, const char *name)
{
	const struct finding_row *row = finding_row_find(name);

	for (size_t i = 0; i < findings->status->runtime_count; i++) {
		const struct source_runtime *runtime = &findings->status->runtimes[i];
		struct finding finding = {
			.row = row,
			.runtime = runtime,
			.held = true,
			.rate = ratio(runtime->grown, 100 * US_PER_SECOND, runtime->known_us)};
		struct finding_name culprit = {.pid = runtime->pid, .tid = ABSENT};
		struct finding *added;

		if (!row->holds(&finding, findings) ||
		    (!findings->of_all &&
		     !keyed_find(&findings->processes, sizeof(struct finding_process),
				 (uint64_t)runtime->pid)))
			continue;
		added = finding_put(findings, row, (uint64_t)runtime->pid);
		if (!added)
			continue;
		*added = finding;
		findings->count++;
		culprit.name = name_transient_string(runtime->comm);
		party_add(findings, added, PARTY_CULPRITS, culprit, culprit.name);
	}
}

/* True if a finding of the row was made here. */
static bool is_made(const struct findings *findings, const struct finding_row *row)
{
	for (size_t i = 0; i < findings->found.count; i++) {
		const struct finding *finding = finding_at(findings, i);

		if (finding->row == row && finding->held && !finding->recorded)
			return true;
	}
	return false;
}

static void recorded_add(struct findings *findings, const struct finding_recorded *recorded)
{
	struct finding *added = finding_put(findings, recorded->row, recorded->key);
	struct finding_name name = {.pid = ABSENT, .tid = ABSENT};

	if (!added)
		return;
	*added = (struct finding){.row = recorded->row,
				  .held = true,
				  .longest_us = recorded->longest_us,
				  .certain_us = recorded->certain ? 0 : -1,
				  .recorded = recorded};
	findings->count++;
	name.name = recorded->culprit;
	name.pid = recorded->pid;
	if (name.name)
		party_add(findings, added, PARTY_CULPRITS, name, name.name);
	name = (struct finding_name){.name = recorded->thing, .pid = ABSENT, .tid = ABSENT};
	if (name.name)
		party_add(findings, added, PARTY_THINGS, name, name.name);
}

/* Adds what the recorder found by counts of its host, of kinds that were not found here. */
static void recorded_find(struct findings *findings)
{
	for (size_t i = 0; i < findings->recorded_count; i++)
		if (!is_made(findings, findings->recorded[i].row))
			recorded_add(findings, &findings->recorded[i]);
}

/* Finds what counts show, not samples. */
static void counts_find(struct findings *findings, const struct tally *tally)
{
	const struct finding_name none = {.pid = ABSENT, .tid = ABSENT};
	const struct finding_process *processes = findings->processes.rows;
	int64_t grown = findings->threads_last - findings->threads_first;
	struct finding_name maker = none;
	struct finding *taken;
	int64_t ended_us =
		findings->ended_us < findings->unseen_us ? findings->ended_us : findings->unseen_us;

	/* what so many are made for ends unseen */
	if (made_find(findings, "forks", MADE_PROCESSES, ended_us, tally->elapsed_us))
		ended_us = 0;
	made_find(findings, "new_threads", MADE_THREADS, ended_us, tally->elapsed_us);
	made_find(findings, "switches", MADE_SWITCHES, 0, tally->elapsed_us);
	taken = counted_add(findings, "interrupts", 0, 0, none);
	if (taken)
		storm_take(findings, taken, NULL);
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
	unread_find(findings);
	runtimes_find(findings, "goroutines");
	runtimes_find(findings, "gc");
	counted_add(findings, "unseen", findings->unseen_us, 0, none);
	recorded_find(findings);
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

int64_t finding_doing_us(const struct finding *finding)
{
	int64_t us = 0;

	for (int state = 0; state <= STATE_COUNT; state++)
		us = sum(us, finding->doing_us[state]);
	return us;
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

	return first && first->weight_us * 2 > finding_doing_us(finding) ? first->name : NULL;
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
