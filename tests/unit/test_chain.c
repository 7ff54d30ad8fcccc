/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait chains of made-up scans; file locks of made-up /proc/locks */
#include "unit.h"
#include "base/names.h"
#include "fake_proc.h"
#include "sample/column.h"
#include "waits/chain.h"
#include "waits/lock_list.h"

static struct chain_nodes nodes;

static int nodes_begin(void **state)
{
	chain_nodes_clear(&nodes);
	return 0;
}

static int nodes_end(void **state)
{
	chain_nodes_done(&nodes);
	return 0;
}

/* Adds a thread that waits for `blocker` (0: for none). */
static struct chain_node *add(int64_t tid, const char *comm, enum edge_kind kind, int64_t blocker)
{
	struct chain_node *node;
	bool added;
	size_t slot = chain_nodes_put(&nodes, tid, &added);

	assert_true(added);
	node = &nodes.nodes[slot];
	node->pid = tid / 10;
	node->state = STATE_SLEEP;
	node->comm = name_transient_string(comm);
	node->why = name_transient_string("lock");
	node->syscall = name_transient_string("futex");
	node->edge.kind = kind;
	if (blocker) {
		node->edge.tid = blocker;
		node->edge.pid = blocker / 10;
		node->edge.sure = SURE_CERTAIN;
	}
	return node;
}

static struct sample reported(int64_t tid)
{
	struct sample sample = *sample_absent();
	struct chain chain;

	chain_fill(&nodes, *index_find(&nodes.by_tid, (uint64_t)tid) - 1, NEED_BLOCKER | NEED_CHAIN,
		   &sample, &chain);
	return sample;
}

static void expect_chain(int64_t tid, const char *chain, int64_t depth, const char *root)
{
	struct sample sample = reported(tid);

	assert_string_equal(sample.chain.text, chain);
	assert_int_equal(sample.chain.depth, depth);
	if (root)
		assert_string_equal(sample.chain.root.comm, root);
	else
		assert_null(sample.chain.root.comm);
}

static void to_a_device(void **state)
{
	struct chain_node *last;
	struct sample sample;

	add(10, "php-fpm", EDGE_SOCKET, 20)->edge.sure = SURE_LIKELY;
	add(20, "mariadbd", EDGE_MUTEX, 21);
	last = add(21, "mariadbd", EDGE_IO, 0);
	last->edge.thing = name_transient_string("sda");
	last->state = STATE_DISK;
	expect_chain(10, "php-fpm socket> mariadbd mutex> mariadbd io> sda", 2, "mariadbd");
	expect_chain(21, "mariadbd io> sda", 0, "mariadbd");
	sample = reported(10);
	assert_int_equal(sample.blocker.tid, 20);
	assert_int_equal(sample.blocker.pid, 2);
	assert_string_equal(sample.blocker.kind, "socket");
	assert_string_equal(sample.blocker.sure, "likely");
	assert_int_equal(sample.chain.root.tid, 21);
	assert_int_equal(sample.chain.root.pid, 2);
	assert_int_equal(sample.chain.root.state, STATE_DISK);
	assert_string_equal(sample.chain.root.waits_on, "sda");
	assert_string_equal(sample.chain.root.syscall, "futex");
}

static void to_a_cpu(void **state)
{
	struct chain_node *queued;

	add(1, "waiter", EDGE_MUTEX, 2);
	queued = add(2, "holder", EDGE_CPU, 3);
	queued->state = STATE_RQ;
	queued->edge.thing = queued->edge.oncpu = name_transient_string("stress");
	queued->edge.group = name_transient_string("/noisy");
	/* 3 has a node, too, but the chain does not go there */
	add(3, "stress", EDGE_NONE, 0)->state = STATE_ON;
	expect_chain(1, "waiter mutex> holder cpu> stress", 1, "holder");
	assert_int_equal(reported(1).chain.root.state, STATE_RQ);
	assert_string_equal(reported(2).blocker.oncpu_comm, "stress");
	assert_string_equal(reported(2).blocker.oncpu_cgroup, "/noisy");
	assert_null(reported(1).blocker.oncpu_comm);
	assert_null(reported(1).blocker.oncpu_cgroup);
}

/* A thread that is held back for a quota is not the victim of another. */
static void to_a_quota(void **state)
{
	struct chain_node *queued;

	add(1, "waiter", EDGE_MUTEX, 2);
	queued = add(2, "holder", EDGE_QUOTA, 0);
	queued->state = STATE_RQ;
	queued->edge.sure = SURE_LIKELY;
	queued->edge.thing = name_transient_string("/small");
	expect_chain(1, "waiter mutex> holder quota> /small", 1, "holder");
	assert_string_equal(reported(1).chain.root.waits_on, "/small");
	assert_string_equal(reported(2).blocker.kind, "quota");
	assert_null(reported(2).blocker.oncpu_comm);
}

/* Chain to a process of which no thread is known. */
static void to_a_process(void **state)
{
	struct chain_node *client;

	client = add(1, "client", EDGE_SOCKET, 0);
	client->edge.pid = 50;
	client->edge.sure = SURE_PROCESS;
	client->edge.thing = name_transient_string("server");
	expect_chain(1, "client socket> server", 1, "server");
	assert_int_equal(reported(1).chain.root.pid, 50);
	assert_int_equal(reported(1).chain.root.tid, ABSENT);
	assert_int_equal(reported(1).chain.root.state, ABSENT);
	assert_int_equal(reported(1).blocker.tid, ABSENT);
}

static void of_cycles(void **state)
{
	add(7, "a", EDGE_MUTEX, 5);
	add(5, "b", EDGE_MUTEX, 6);
	add(6, "c", EDGE_FILE_LOCK, 5);
	expect_chain(7, "a mutex> b mutex> c file lock> b DEADLOCK", 2, "b");
	expect_chain(6, "c file lock> b mutex> c DEADLOCK", 1, "b");
	assert_string_equal(reported(7).chain.root.why, "deadlock");
	assert_int_equal(reported(6).chain.root.tid, reported(5).chain.root.tid);
	/* the wait of 6 has a time limit: it ends by itself */
	nodes.nodes[*index_find(&nodes.by_tid, 6) - 1].edge.timed = true;
	expect_chain(7, "a mutex> b mutex> c file lock> b cycle", 2, "b");
	assert_string_equal(reported(7).chain.root.why, "cycle");
	/* the edge of 5 may be none */
	nodes.nodes[*index_find(&nodes.by_tid, 6) - 1].edge.timed = false;
	nodes.nodes[*index_find(&nodes.by_tid, 5) - 1].edge.sure = SURE_LIKELY;
	assert_string_equal(reported(6).chain.root.why, "cycle");
	/* the edge of 7 does not count: it leads to the cycle, and is not in it */
	nodes.nodes[*index_find(&nodes.by_tid, 5) - 1].edge.sure = SURE_CERTAIN;
	nodes.nodes[*index_find(&nodes.by_tid, 7) - 1].edge.sure = SURE_LIKELY;
	assert_string_equal(reported(7).chain.root.why, "deadlock");
}

static void of_itself(void **state)
{
	add(4, "self", EDGE_MUTEX, 4);
	expect_chain(4, "self mutex> self DEADLOCK", 0, "self");
}

/* A chain whose end is not known has no root. */
static void ends_in_the_dark(void **state)
{
	add(1, "a", EDGE_MUTEX, 2);
	add(2, "b", EDGE_NONE, 0)->unknown = true;
	add(3, "c", EDGE_PIPE, 99);
	expect_chain(1, "a mutex> b ...", 1, NULL);
	expect_chain(3, "c pipe> ...", 0, NULL);
	assert_int_equal(reported(3).blocker.tid, 99);
	assert_null(reported(2).chain.text);
	assert_int_equal(reported(2).chain.depth, ABSENT);
}

static void of_ten_thousand(void **state)
{
	struct sample sample;

	for (int64_t tid = 1; tid <= 10000; tid++)
		add(tid, "link", tid == 10000 ? EDGE_NONE : EDGE_MUTEX, tid == 10000 ? 0 : tid + 1);
	sample = reported(1);
	assert_null(sample.chain.root.comm);
	assert_int_equal(sample.chain.depth, CHAIN_LINKS_MAX);
	assert_true(strlen(sample.chain.text) < 300);
	assert_string_equal(reported(10000 - CHAIN_LINKS_MAX).chain.root.comm, "link");
	assert_int_equal(reported(10000 - CHAIN_LINKS_MAX).chain.root.tid, 10000);
	assert_int_equal(reported(10000 - CHAIN_LINKS_MAX).chain.depth, CHAIN_LINKS_MAX);
	assert_null(reported(10000 - CHAIN_LINKS_MAX - 1).chain.root.comm);
}

static void of_long_ones_the_middle_is_left_out(void **state)
{
	char name[8];

	for (int64_t tid = 1; tid <= CHAIN_TOLD_MAX + 2; tid++) {
		snprintf(name, sizeof(name), "t%lld", (long long)tid);
		add(tid, name, tid < CHAIN_TOLD_MAX + 2 ? EDGE_MUTEX : EDGE_NONE,
		    tid < CHAIN_TOLD_MAX + 2 ? tid + 1 : 0);
	}
	expect_chain(1,
		     "t1 mutex> t2 mutex> t3 mutex> t4 mutex> t5 mutex> t6 mutex> t7 mutex> "
		     "t8 mutex> ... t11 mutex> t12 mutex> t13 mutex> t14 mutex> t15 mutex> "
		     "t16 mutex> t17 mutex> t18",
		     CHAIN_TOLD_MAX + 1, "t18");
	expect_chain(2,
		     "t2 mutex> t3 mutex> t4 mutex> t5 mutex> t6 mutex> t7 mutex> t8 mutex> "
		     "t9 mutex> t10 mutex> t11 mutex> t12 mutex> t13 mutex> t14 mutex> t15 mutex> "
		     "t16 mutex> t17 mutex> t18",
		     CHAIN_TOLD_MAX, "t18");
}

static void edges_alone(void **state)
{
	struct sample sample = *sample_absent();
	struct chain chain;

	add(1, "a", EDGE_MUTEX, 2);
	chain_fill(&nodes, 0, NEED_BLOCKER, &sample, &chain);
	assert_int_equal(chain.count, 0);
	assert_int_equal(sample.blocker.tid, 2);
	assert_null(sample.chain.text);
	assert_null(sample.chain.root.comm);
}

static void locks_put(const struct fake_proc *proc, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/locks", proc->root);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void file_locks(void **state)
{
	struct fake_proc proc;
	struct lock_list list = {0};
	const struct lock_wait *wait;

	fake_proc_init(&proc);
	locks_put(&proc, "1: FLOCK  ADVISORY  WRITE 100 fd:00:77 0 EOF\n"
			 "1: -> FLOCK  ADVISORY  WRITE 200 fd:00:77 0 EOF\n"
			 "1:  -> FLOCK  ADVISORY  READ  201 fd:00:77 0 EOF\n"
			 "2: POSIX  ADVISORY  WRITE 300 fd:00:78 0 EOF\n"
			 "2: -> POSIX  ADVISORY  WRITE 200 fd:00:78 10 20\n"
			 "3: OFDLCK ADVISORY  WRITE -1 fd:00:79 0 EOF\n"
			 "3: -> OFDLCK ADVISORY  WRITE -1 fd:00:79 0 EOF\n"
			 "4: FLOCK  ADVISORY  READ  400 fd:00:80 0 EOF\n"
			 "4: -> FLOCK  ADVISORY  WRITE 203 fd:00:80 0 EOF\n"
			 "5: FLOCK  ADVISORY  READ  401 fd:01:80 0 EOF\n"
			 "5: -> FLOCK  ADVISORY  WRITE 203 fd:01:80 0 EOF\n"
			 "6: nonsense\n"
			 "6: -> FLOCK  ADVISORY  WRITE 204 fd:00:81 0 EOF\n");
	lock_list_read(&list, proc.root);
	wait = lock_list_find(&list, 200, 77);
	assert_non_null(wait);
	assert_int_equal(wait->locker, 100);
	assert_true(wait->of_file);
	assert_string_equal(wait->held, "FLOCK  ADVISORY  WRITE 100 fd:00:77 0 EOF");
	assert_int_equal(lock_list_find(&list, 201, 77)->locker, 100);
	/* process whose threads wait for two locks */
	assert_int_equal(lock_list_find(&list, 200, 78)->locker, 300);
	assert_false(lock_list_find(&list, 200, 78)->of_file);
	assert_null(lock_list_find(&list, 200, 79));
	/* a lock of an open file, whose process has ended or not */
	wait = lock_list_find(&list, LOCK_OF_OPEN_FILE, 79);
	assert_non_null(wait);
	assert_int_equal(wait->locker, 0);
	assert_true(wait->of_file);
	/* two locks with one number, a line that is not understood, and an empty file */
	assert_null(lock_list_find(&list, 203, 80));
	assert_null(lock_list_find(&list, 204, 81));
	locks_put(&proc, "");
	lock_list_read(&list, proc.root);
	assert_null(lock_list_find(&list, 200, 77));
	lock_list_done(&list);
	fake_proc_done(&proc);
}

/* Checks that the row of each kind is complete. */
static void kinds_have_rows(void **state)
{
	assert_null(edge_kinds[EDGE_NONE].name);
	assert_int_equal(edge_kind_of(NULL), EDGE_NONE);
	assert_int_equal(edge_kind_of("mute"), EDGE_NONE);
	for (int kind = EDGE_NONE; kind < EDGE_KIND_COUNT; kind++) {
		const struct edge edge = {.kind = (enum edge_kind)kind, .tid = 7};

		if (kind != EDGE_NONE)
			assert_int_equal(edge_kind_of(edge_kinds[kind].name), kind);
		assert_int_equal(edge_leads_on(&edge), kind != EDGE_NONE && kind != EDGE_IO &&
							       kind != EDGE_CPU &&
							       kind != EDGE_QUOTA);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(to_a_device, nodes_begin),
		cmocka_unit_test_setup(to_a_cpu, nodes_begin),
		cmocka_unit_test_setup(to_a_quota, nodes_begin),
		cmocka_unit_test_setup(to_a_process, nodes_begin),
		cmocka_unit_test_setup(of_cycles, nodes_begin),
		cmocka_unit_test_setup(of_itself, nodes_begin),
		cmocka_unit_test_setup(ends_in_the_dark, nodes_begin),
		cmocka_unit_test_setup(of_ten_thousand, nodes_begin),
		cmocka_unit_test_setup(of_long_ones_the_middle_is_left_out, nodes_begin),
		cmocka_unit_test_setup(edges_alone, nodes_begin),
		cmocka_unit_test(file_locks),
		cmocka_unit_test(kinds_have_rows),
	};

	return cmocka_run_group_tests(tests, NULL, nodes_end);
}
