/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/chain_report.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "report/value.h"
#include "sample/edge_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a root does while others wait for it. */
enum root_doing {
	DOING_ON,
	DOING_RQ,
	DOING_DISK,
	DOING_SLEEP,
	DOING_STOPPED,
	DOING_UNKNOWN, /* only its process is known, or it is a zombie */
	DOING_COUNT
};

static const enum root_doing doing_of_states[STATE_COUNT] = {
	[STATE_ON] = DOING_ON,		[STATE_RQ] = DOING_RQ,
	[STATE_DISK] = DOING_DISK,	[STATE_SLEEP] = DOING_SLEEP,
	[STATE_IDLE] = DOING_SLEEP,	[STATE_STOPPED] = DOING_STOPPED,
	[STATE_PARKED] = DOING_STOPPED, [STATE_ZOMBIE] = DOING_UNKNOWN,
};

/* The thread at the end of wait chains, or all threads of a process with its name. */
struct chain_root {
	const char *name;
	int64_t pid;
	int64_t samples, weight_us;    /* samples of the threads that wait */
	int64_t doing_us[DOING_COUNT]; /* parts of weight_us */
	/* majority activity of the root (more than half of the time), by Boyer and Moore's vote */
	const char *syscall, *waits_on;
	int64_t lead_us;
	/* values of the report's columns */
	int64_t seconds, waiting, shares[DOING_COUNT];
};

struct chain_lock {
	const char *name;
	int64_t pid; /* process of the holders */
	int64_t samples, weight_us, longest_us;
	int64_t holder; /* holder at the last sample */
	int64_t holders, changes;
	int64_t seconds, waiting;
};

/* A sample of a thread whose wait chain ends at another thread. */
struct chain_victim {
	int64_t weight_us, root_tid, root_pid;
	const char *root, *syscall, *waits_on;
};

#define ROOT(member) offsetof(struct chain_root, member)
#define LOCK(member) offsetof(struct chain_lock, member)

/* fields: name, title, help, kind, role, needs, width, offset in the line */
static const struct column root_columns[] = {
	{"seconds", "SECONDS", "", KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, ROOT(seconds)},
	{"waiting", "WAITING", "", KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, ROOT(waiting)},
	{"root", "ROOT", "", KIND_TEXT, ROLE_KEY, 0, 15, ROOT(name)},
	{"root_pid", "ROOT_PID", "", KIND_NUMBER, ROLE_KEY, 0, 8, ROOT(pid)},
	{"on", "ON", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_ON])},
	{"rq", "RQ", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_RQ])},
	{"d", "D", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_DISK])},
	{"s", "S", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_SLEEP])},
	{"t", "T", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_STOPPED])},
	{"unknown", "UNKNOWN", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, ROOT(shares[DOING_UNKNOWN])},
	{"root_syscall", "MOSTLY_IN", "", KIND_TEXT, ROLE_KEY, 0, 15, ROOT(syscall)},
	{"root_waits_on", "ON_WHAT", "", KIND_TEXT, ROLE_KEY, 0, 20, ROOT(waits_on)},
};

static const struct column lock_columns[] = {
	{"seconds", "SECONDS", "", KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, LOCK(seconds)},
	{"waiting", "WAITING", "", KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, LOCK(waiting)},
	{"longest", "LONGEST_US", "", KIND_NUMBER, ROLE_MEASURE, 0, 10, LOCK(longest_us)},
	{"holders", "HOLDERS", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, LOCK(holders)},
	{"changes", "HANDED_ON", "", KIND_NUMBER, ROLE_MEASURE, 0, 9, LOCK(changes)},
	{"pid", "HOLDER_PID", "", KIND_NUMBER, ROLE_KEY, 0, 10, LOCK(pid)},
	{"lock", "LOCK", "", KIND_TEXT, ROLE_KEY, 0, 20, LOCK(name)},
};

/* Keys of the groups that roots and locks are made of, in the order of group_columns. */
enum root_key { KEY_ROOT, KEY_PID, KEY_STATE, KEY_SYSCALL, KEY_WAITS_ON };
enum lock_key { LOCK_KEY_PID, LOCK_KEY_NAME };

/* Columns of the groups of samples that each part is made of. Samples of locks are copies: waits_on
 * is the lock's name, and blocker_pid distinguishes it from locks of other processes. */
static const char *const group_columns[CHAIN_PARTS] = {
	[CHAIN_ROOTS] = "root,root_pid,root_state,root_syscall,root_waits_on",
	[CHAIN_LOCKS] = "blocker_pid,waits_on",
	[CHAIN_QUEUES] = "seconds,avg_thr,comm,oncpu_comm",
	[CHAIN_DEVICES] = "seconds,avg_thr,comm,io_dev,io_others",
	[CHAIN_CYCLES] = "seconds,root_why,root_pid,chain",
};

static void list_of_rows(struct column_list *list, const struct column *rows, size_t count)
{
	list->count = 0;
	for (size_t i = 0; i < count; i++)
		list->items[list->count++] = &rows[i];
}

void chain_report_init(struct chain_report *report, size_t stacks, struct exact_times *times)
{
	struct error unsaid = {0};
	struct column_list keys = {0};

	*report = (struct chain_report){0};
	column_list_add(&report->needed, "chains", false, &unsaid);
	list_of_rows(&report->root_list, root_columns,
		     sizeof(root_columns) / sizeof(root_columns[0]));
	list_of_rows(&report->lock_list, lock_columns,
		     sizeof(lock_columns) / sizeof(lock_columns[0]));
	for (int part = 0; part < CHAIN_PARTS; part++) {
		column_list_add(&report->grouped[part], group_columns[part], true, &unsaid);
		group_table_init(&report->groups[part], &report->grouped[part]);
		if (times && times->shared)
			group_table_split(&report->groups[part], times, REST_NOWHERE);
	}
	column_list_add(&keys, "root,root_pid,root_syscall,root_waits_on", true, &unsaid);
	stack_lines_init(&report->stacks, stacks, &keys, false);
	error_done(&unsaid);
}

uint64_t chain_report_needs(const void *state)
{
	const struct chain_report *report = state;

	return column_list_needs(&report->needed) | stack_lines_needs(&report->stacks);
}

static uint64_t hash_of(const char *name, int64_t pid)
{
	return hash_u64((uint64_t)(uintptr_t)name) ^ hash_u64((uint64_t)pid + 1);
}

/* Finds or adds a line; NULL: there are too many. */
static void *line_put(struct keyed *lines, size_t each, uint64_t key, bool *added)
{
	*added = false;
	return lines->count < CHAIN_LINES_MAX ? keyed_put(lines, each, key, added)
					      : keyed_find(lines, each, key);
}

static struct chain_root *root_find(struct chain_report *report, const union value *keys)
{
	const char *name = keys[KEY_ROOT].text;
	int64_t pid = keys[KEY_PID].number;
	struct chain_root *root;
	bool added;

	root = line_put(&report->roots, sizeof(*root), hash_of(name, pid), &added);
	if (added)
		*root = (struct chain_root){.name = name, .pid = pid};
	return root;
}

static void root_vote(struct chain_root *root, const union value *keys, int64_t weight_us)
{
	if (root->syscall == keys[KEY_SYSCALL].text && root->waits_on == keys[KEY_WAITS_ON].text) {
		root->lead_us = sum(root->lead_us, weight_us);
		return;
	}
	root->lead_us -= weight_us;
	if (root->lead_us >= 0)
		return;
	root->syscall = keys[KEY_SYSCALL].text;
	root->waits_on = keys[KEY_WAITS_ON].text;
	root->lead_us = -root->lead_us;
}

static void root_add(struct chain_report *report, const union value *group)
{
	int64_t samples = group_samples(&report->groups[CHAIN_ROOTS], group);
	int64_t weight_us = group_weight_us(&report->groups[CHAIN_ROOTS], group);
	int64_t state = group[KEY_STATE].number;
	enum root_doing doing =
		state >= 0 && state < STATE_COUNT ? doing_of_states[state] : DOING_UNKNOWN;
	struct chain_root *root = root_find(report, group);

	if (weight_us == ABSENT)
		weight_us = 0;
	if (!root) {
		report->refused += samples;
		return;
	}
	root->samples += samples;
	root->weight_us = sum(root->weight_us, weight_us);
	root->doing_us[doing] = sum(root->doing_us[doing], weight_us);
	root_vote(root, group, weight_us);
}

/* Makes the roots; call after the groups' times are shared out. */
static void roots_gather(struct chain_report *report)
{
	const struct group_table *groups = &report->groups[CHAIN_ROOTS];

	report->refused += groups->refused;
	for (size_t at = 0; at < groups->count; at++)
		root_add(report, group_at(groups, at));
}

/* Makes the locks: each has its group's time, which is exact. */
static void locks_gather(struct chain_report *report)
{
	const struct group_table *groups = &report->groups[CHAIN_LOCKS];

	for (size_t at = 0; at < groups->count; at++) {
		const union value *keys = group_at(groups, at);
		int64_t weight_us = group_weight_us(groups, keys);
		struct chain_lock *lock =
			keyed_find(&report->locks, sizeof(*lock),
				   hash_of(keys[LOCK_KEY_NAME].text, keys[LOCK_KEY_PID].number));

		if (lock && weight_us != ABSENT)
			lock->weight_us = weight_us;
	}
	report->refused += groups->refused;
}

/* Name of a lock as sample/edge_kind.c writes it: "mutex 0x55d0c8"; "mutex? 0x55d0c8" if its holder
 * is in doubt; "mutex 0x55d0c8 held by 99, a thread that has ended"; NULL: it is no lock, or not
 * known which. */
static const char *lock_name(const struct sample *sample, const struct edge_kind_row *kind)
{
	bool doubt = kind->traits & MARKS_DOUBT && sample->blocker.sure &&
		     strcmp(sample->blocker.sure, "certain") != 0;
	static struct text text;
	char name[32];

	if (!kind->lock_add)
		return NULL;
	/* no process has it, and nobody can ever unlock it: waits_on says who took it */
	if (sample->blocker.tid == ABSENT)
		return sample->blocker.pid == ABSENT ? sample->wait.on : NULL;
	text_clear(&text);
	snprintf(name, sizeof(name), "%s%s", kind->name, doubt ? EDGE_DOUBT : "");
	kind->lock_add(sample, name, &text);
	return text.length ? name_transient(text_string(&text), text.length) : NULL;
}

/* of_host: the lock of that name is one for all processes. */
static void lock_add(struct chain_report *report, const struct sample *sample, const char *name,
		     bool of_host, struct exact_note note)
{
	struct sample group = *sample;
	struct chain_lock *lock;
	bool added;

	group.wait.on = name;
	group.blocker.pid = of_host ? 0 : sample->blocker.pid;
	lock = line_put(&report->locks, sizeof(*lock), hash_of(name, group.blocker.pid), &added);
	if (!lock) {
		report->refused++;
		return;
	}
	if (added)
		*lock = (struct chain_lock){.name = name, .holder = ABSENT};
	group_table_add_noted(&report->groups[CHAIN_LOCKS], &group, note);
	lock->samples += sample_scans(sample);
	if (sample->now.state_us != ABSENT && sample->now.state_us > lock->longest_us)
		lock->longest_us = sample->now.state_us;
	if (!note.again) { /* else another thread may hold it by now */
		lock->changes += lock->holder != ABSENT && lock->holder != sample->blocker.tid;
		lock->holder = sample->blocker.tid;
	}
	lock->pid = sample->blocker.pid;
	index_put(&report->holders,
		  hash_of(name, sample->blocker.tid) +
			  (uint64_t)(lock - (struct chain_lock *)report->locks.rows) *
				  UINT64_C(0x9e3779b97f4a7c15),
		  &added);
	lock->holders += added;
}

static bool is_cycle(const struct sample *sample)
{
	return sample->chain.root.why && (!strcmp(sample->chain.root.why, ROOT_DEADLOCK) ||
					  !strcmp(sample->chain.root.why, ROOT_CYCLE));
}

static bool has_chain(const struct sample *sample)
{
	return sample->chain.text && sample->chain.depth != ABSENT;
}

static bool has_root(const struct sample *sample)
{
	return has_chain(sample) && sample->chain.depth > 0 && !is_cycle(sample);
}

void chain_report_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct chain_report *report = state;
	enum edge_kind kind = edge_kind_of(sample->blocker.kind);
	const char *lock;

	if (sample->blocker.oncpu_comm)
		group_table_add_noted(&report->groups[CHAIN_QUEUES], sample, note);
	if (sample->io.dev && kind == EDGE_IO)
		group_table_add_noted(&report->groups[CHAIN_DEVICES], sample, note);
	if (!has_chain(sample))
		return;
	if (is_cycle(sample))
		group_table_add_noted(&report->groups[CHAIN_CYCLES], sample, note);
	else if (has_root(sample))
		group_table_add_noted(&report->groups[CHAIN_ROOTS], sample, note);
	lock = lock_name(sample, &edge_kinds[kind]);
	if (lock)
		lock_add(report, sample, lock, edge_kinds[kind].traits & LOCK_OF_HOST, note);
}

static void victim_note(struct chain_report *report, const struct sample *sample)
{
	report->victims = memory_grow(report->victims, &report->victim_capacity,
				      report->victim_count + 1, sizeof(*report->victims));
	report->victims[report->victim_count++] =
		(struct chain_victim){.weight_us = sample->scan.weight_us,
				      .root_tid = sample->chain.root.tid,
				      .root_pid = sample->chain.root.pid,
				      .root = sample->chain.root.comm,
				      .syscall = sample->chain.root.syscall,
				      .waits_on = sample->chain.root.waits_on};
}

void chain_report_note(struct chain_report *report, const struct scan *part)
{
	for (size_t i = 0; report->stacks.most && i < part->count; i++) {
		const struct sample *sample = &part->samples[i];

		/* a stack whose functions are not named yet would be a stack of its own */
		if (sample->stack.both && !sample->stack.names_open)
			*index_put(&report->scan_stacks, (uint64_t)sample->thread.tid, NULL) =
				(uint64_t)(uintptr_t)sample->stack.both;
		if (has_root(sample))
			victim_note(report, sample);
	}
}

void chain_report_end_scan(struct chain_report *report)
{
	for (size_t i = 0; i < report->victim_count; i++) {
		const struct chain_victim *victim = &report->victims[i];
		const uint64_t *stack =
			index_find(&report->scan_stacks, (uint64_t)victim->root_tid);
		struct sample root = *sample_absent();

		root.scan.weight_us = victim->weight_us;
		root.chain.root.comm = victim->root;
		root.chain.root.pid = victim->root_pid;
		root.chain.root.syscall = victim->syscall;
		root.chain.root.waits_on = victim->waits_on;
		root.stack.both = stack ? (const char *)(uintptr_t)*stack : NULL;
		stack_lines_add(&report->stacks, &root, EXACT_NOTE_NONE);
	}
	report->victim_count = 0;
	if (report->scan_stacks.used)
		index_empty(&report->scan_stacks);
}

static int by_weight(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

static int roots_compare(const void *a, const void *b)
{
	const struct chain_root *left = a, *right = b;
	int order = by_weight(left->weight_us, right->weight_us);

	return order ? order : (left->pid > right->pid) - (left->pid < right->pid);
}

static int locks_compare(const void *a, const void *b)
{
	const struct chain_lock *left = a, *right = b;
	int order = by_weight(left->weight_us, right->weight_us);

	return order ? order : strcmp(left->name, right->name);
}

/* Computes the root's values in the units of their columns. */
static void root_report(struct chain_root *root, const struct tally *tally)
{
	root->seconds = ratio(root->weight_us, 100, US_PER_SECOND);
	root->waiting = ratio(root->samples, 100, tally->scans);
	for (int doing = 0; doing < DOING_COUNT; doing++)
		root->shares[doing] = root->weight_us
					      ? ratio(root->doing_us[doing], 1000, root->weight_us)
					      : ABSENT;
}

static void grid_put(struct grid *grid, size_t row, const void *line)
{
	const struct column_list *list = grid->list;

	for (size_t i = 0; i < list->count; i++)
		grid->values[row * list->count + i] = column_read(list->items[i], line);
}

void chain_report_fill(struct chain_report *report, const struct tally *tally)
{
	struct grid *root_grid = &report->grids[CHAIN_ROOTS];
	struct grid *lock_grid = &report->grids[CHAIN_LOCKS];
	struct chain_root *roots;
	struct chain_lock *locks = report->locks.rows;

	roots_gather(report);
	locks_gather(report);
	roots = report->roots.rows;
	if (report->roots.count)
		qsort(roots, report->roots.count, sizeof(*roots), roots_compare);
	if (report->locks.count)
		qsort(locks, report->locks.count, sizeof(*locks), locks_compare);
	grid_size(root_grid, &report->root_list, report->roots.count);
	for (size_t i = 0; i < report->roots.count; i++) {
		root_report(&roots[i], tally);
		grid_put(root_grid, i, &roots[i]);
	}
	stack_lines_fill(&report->stacks, root_grid, tally);
	grid_size(lock_grid, &report->lock_list, report->locks.count);
	for (size_t i = 0; i < report->locks.count; i++) {
		locks[i].seconds = ratio(locks[i].weight_us, 100, US_PER_SECOND);
		locks[i].waiting = ratio(locks[i].samples, 100, tally->scans);
		grid_put(lock_grid, i, &locks[i]);
	}
	for (int part = CHAIN_QUEUES; part < CHAIN_PARTS; part++)
		grid_fill_groups(&report->grids[part], &report->groups[part], tally);
}

void chain_report_clear(void *state)
{
	struct chain_report *report = state;

	report->refused = 0;
	stack_lines_clear(&report->stacks);
	keyed_empty(&report->roots);
	keyed_empty(&report->locks);
	index_clear(&report->holders);
	for (int part = 0; part < CHAIN_PARTS; part++)
		group_table_clear(&report->groups[part]);
}

void chain_report_done(void *state)
{
	struct chain_report *report = state;

	chain_report_clear(report);
	for (int part = 0; part < CHAIN_PARTS; part++) {
		group_table_done(&report->groups[part]);
		grid_done(&report->grids[part]);
	}
	stack_lines_done(&report->stacks);
	index_clear(&report->scan_stacks);
	free(report->victims);
	keyed_done(&report->roots);
	keyed_done(&report->locks);
	*report = (struct chain_report){0};
}
