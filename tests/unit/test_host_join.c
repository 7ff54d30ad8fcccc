/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains across hosts, from made-up scans */
#include "unit.h"
#include "base/names.h"
#include "report/findings.h"
#include "report/host_waits.h"

#define PERIOD_US 50000
#define AB "tcp 10.0.0.1:40001->10.0.0.2:80 established"
#define BA "tcp 10.0.0.2:80->10.0.0.1:40001 established"
#define BC "tcp 10.0.1.1:40002->10.0.1.2:90 established"
#define LOOP "tcp 127.0.0.1:40003->127.0.0.1:80 established"

enum { A, B, C, HOSTS };

static struct host_join join;
static struct join_path path;

static struct sample thread(int64_t tid, const char *comm, int64_t state)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = sample.thread.pid = tid;
	sample.thread.comm = name_transient_string(comm);
	sample.now.state = state;
	sample.now.state_us = 2 * PERIOD_US;
	sample.chain.text = sample.chain.root.comm = sample.thread.comm;
	sample.chain.depth = 0;
	sample.chain.root.tid = sample.chain.root.pid = tid;
	sample.chain.root.state = state;
	return sample;
}

static struct sample client(int64_t tid, const char *comm, const char *connection)
{
	struct sample sample = thread(tid, comm, STATE_SLEEP);

	sample.wait.why = name_transient_string("client");
	sample.file.connection = name_transient_string(connection);
	return sample;
}

static struct sample serving(struct sample sample, const char *connection)
{
	sample.file.serves = name_transient_string(connection);
	return sample;
}

static const struct host_scan *scan_add(size_t host, int64_t time_us, const struct sample *samples,
					size_t count)
{
	struct scan scan = {.weight_us = PERIOD_US, .samples = (void *)samples, .count = count};

	host_join_add(&join, host, time_us, &scan);
	return &join.hosts[host].scans[join.hosts[host].count - 1];
}

static int setup(void **state)
{
	join = (struct host_join){0};
	for (size_t i = 0; i < HOSTS; i++)
		host_join_add_host(&join, (const char *[]){"a", "b", "c"}[i]);
	return 0;
}

static int teardown(void **state)
{
	host_join_done(&join);
	return 0;
}

/* The chain of a client of host A whose only scan is at time 0. */
static struct sample filled(struct sample sample)
{
	const struct host_scan *scan = scan_add(A, 0, &sample, 1);

	host_join_fill(&join, A, scan, &sample, &path);
	return sample;
}

static void over_three_hosts(void **state)
{
	struct sample there = serving(client(7, "app", BC), AB),
		      disk = serving(thread(7, "db", STATE_DISK), BC), found;

	disk.chain.text = name_transient_string("db io> sda");
	disk.chain.root.waits_on = name_transient_string("sda");
	scan_add(B, 1000, &there, 1);
	scan_add(C, 2000, &disk, 1);
	found = filled(client(5, "front", AB));
	assert_string_equal(found.chain.text, "front socket> b: app socket> c: db io> sda");
	assert_int_equal(found.chain.depth, 2);
	assert_string_equal(found.chain.root.comm, "db@c");
	assert_string_equal(found.chain.root.waits_on, "sda");
	assert_int_equal(found.chain.root.state, STATE_DISK);
	assert_int_equal(join.ends[JOIN_THREAD], 1);
	host_join_name(&join, A, &found);
	assert_string_equal(found.thread.comm, "front@a");
}

/* A chain that leaves its host behind another thread of it. */
static void behind_another(void **state)
{
	struct sample there = serving(thread(7, "app", STATE_ON), AB), scan[2];
	const struct host_scan *added;

	scan_add(B, 1000, &there, 1);
	scan[0] = thread(4, "waiter", STATE_SLEEP);
	scan[0].chain.text = name_transient_string("waiter mutex> front");
	scan[0].chain.depth = 1;
	scan[0].chain.root.tid = 5;
	scan[1] = client(5, "front", AB);
	added = scan_add(A, 0, scan, 2);
	host_join_fill(&join, A, added, &scan[0], &path);
	assert_string_equal(scan[0].chain.text, "waiter mutex> front socket> b: app");
	assert_int_equal(scan[0].chain.depth, 2);
	assert_string_equal(scan[0].chain.root.comm, "app@b");
}

/* Of the scans around it the nearest counts in which the client waited; if nobody served the
 * connection then, the other one. */
static void nearest(void **state)
{
	struct sample on = serving(thread(7, "app", STATE_ON), AB),
		      asleep = serving(thread(7, "app", STATE_SLEEP), AB),
		      idle = thread(9, "idle", STATE_ON), one = client(5, "front", AB), found;

	scan_add(B, -3 * PERIOD_US, &idle, 1);
	scan_add(B, -20000, &on, 1);
	scan_add(B, 25000, &asleep, 1);
	scan_add(B, 75000, &idle, 1);
	found = filled(one);
	assert_int_equal(found.chain.root.state, STATE_ON);
	one.now.state_us = 10000; /* not yet then */
	found = filled(one);
	assert_int_equal(found.chain.root.state, STATE_SLEEP);
}

static void process_alone(void **state)
{
	struct sample on = serving(thread(7, "app", STATE_ON), AB), idle = thread(9, "x", STATE_ON);
	struct sample found;

	scan_add(B, -60 * PERIOD_US, &on, 1);
	scan_add(B, 1000, &idle, 1);
	found = filled(client(5, "front", AB));
	assert_string_equal(found.chain.text, "front socket> b: app");
	assert_string_equal(found.chain.root.comm, "app@b");
	assert_int_equal(found.chain.root.pid, 7);
	assert_int_equal(found.chain.root.state, ABSENT);
	assert_int_equal(join.ends[JOIN_PROCESS], 1);
}

/* Ends in two recordings, connections within a host, and of nobody lead nowhere; nor do two
 * threads that serve one connection lead to one of them. */
static void nowhere(void **state)
{
	struct sample there = serving(thread(7, "app", STATE_ON), AB), two[2], found;

	found = filled(client(5, "front", AB));
	assert_string_equal(found.chain.text, "front");
	assert_string_equal(found.chain.root.comm, "front@a");
	assert_int_equal(join.ends[JOIN_NOWHERE], 1);
	two[0] = serving(thread(8, "app", STATE_ON), LOOP);
	two[1] = there;
	scan_add(B, 1000, two, 2);
	found = filled(client(5, "front", LOOP));
	assert_int_equal(found.chain.depth, 0);
	assert_int_equal(join.ends[JOIN_NOWHERE], 1);
	found = filled(client(5, "front", BA));
	assert_int_equal(found.chain.depth, 0);
	scan_add(C, 1000, &there, 1);
	found = filled(client(5, "front", AB));
	assert_int_equal(found.chain.depth, 0);
	assert_int_equal(join.ends[JOIN_THREAD] + join.ends[JOIN_PROCESS], 0);
	two[0] = two[1] = serving(thread(8, "pool", STATE_ON), BC);
	two[1].thread.tid = 9;
	scan_add(B, 2000, two, 2);
	found = filled(client(5, "front", BC));
	assert_int_equal(found.chain.root.state, ABSENT);
	assert_int_equal(join.ends[JOIN_PROCESS], 1);
}

/* Threads of two hosts that wait for each other end a chain, as do many hosts. */
static void around(void **state)
{
	struct sample there = serving(client(7, "app", BC), AB), found;

	scan_add(B, 1000, &there, 1);
	there = serving(client(5, "front", AB), BC);
	found = filled(there);
	assert_int_equal(found.chain.depth, 16);
}

/* Adds the wait of a client of host A, as it was filled last, with the sample as recorded. */
static void wait_add(struct host_waits *waits, struct sample sample, size_t times)
{
	sample.scan.weight_us = PERIOD_US;
	for (size_t i = 0; i < times; i++) {
		filled(sample);
		host_waits_add(waits, &join, A, &sample, &path);
	}
}

static const char *told(const struct host_wait *wait, size_t cause)
{
	static struct text text;

	text_clear(&text);
	host_cause_add(&text, wait, (const struct host_cause *)wait->causes.rows + cause, &join);
	return text_string(&text);
}

/* What the last thread did that served stands for the wait, by its share of the samples. */
static void waits(void **state)
{
	struct host_waits waits = {0};
	const struct host_wait *wait;
	const struct host_cause *cause;
	struct sample app = serving(client(7, "app", BC), AB),
		      db = serving(thread(9, "db", STATE_SLEEP), BC);

	scan_add(B, 1000, &app, 1);
	db.chain.text = name_transient_string("db file lock> keeper");
	db.chain.depth = 1;
	db.chain.root = (struct sample_root){.tid = 11, .pid = 11, .state = STATE_RQ};
	db.chain.root.comm = name_transient_string("keeper");
	db.blocker.kind = name_transient_string("file lock");
	scan_add(C, 2000, &db, 1);
	wait_add(&waits, client(5, "front", AB), 30);
	host_join_forget(&join, INT64_MAX);
	app = serving(thread(7, "app", STATE_ON), AB);
	scan_add(B, 1000, &app, 1);
	wait_add(&waits, client(5, "front", AB), 10);
	host_join_forget(&join, INT64_MAX);
	wait_add(&waits, client(5, "front", AB), 5); /* its process alone */
	wait_add(&waits, client(6, "back", BA), 50); /* nobody */
	assert_int_equal(host_waits_sort(&waits, 100 * PERIOD_US), 1);
	assert_int_equal(waits.waits.count, 1);
	wait = waits.waits.rows;
	cause = wait->causes.rows;
	assert_string_equal(wait->waiter, "front");
	assert_string_equal(wait->server, "app");
	assert_int_equal(wait->samples, 45);
	assert_int_equal(wait->weight_us, 45 * PERIOD_US);
	assert_int_equal(wait->matched, 40);
	assert_int_equal(wait->causes.count, 2);
	assert_string_equal(told(wait, 0),
			    "waits for db@c, which waits for file lock held by keeper@c, which "
			    "waits for a CPU");
	assert_int_equal(cause[0].samples, 30);
	assert_int_equal(cause[0].key, finding_key_of(&db));
	assert_true(cause[0].key);
	assert_string_equal(told(wait, 1), "runs");
	assert_int_equal(cause[1].samples, 10);
	assert_true(host_cause_counts(wait, &cause[1]));
	/* a thousand times as long, it is no time */
	assert_int_equal(host_waits_sort(&waits, INT64_C(100000) * PERIOD_US), 0);
	host_waits_clear(&waits);
}

/* Of fewer samples no share is told. */
static void few_waits(void **state)
{
	struct host_waits waits = {0};
	struct sample app = serving(thread(7, "app", STATE_ON), AB);

	scan_add(B, 1000, &app, 1);
	wait_add(&waits, client(5, "front", AB), 19);
	assert_int_equal(host_waits_sort(&waits, 19 * PERIOD_US), 0);
	wait_add(&waits, client(5, "front", AB), 1);
	assert_int_equal(host_waits_sort(&waits, 20 * PERIOD_US), 1);
	host_waits_clear(&waits);
}

/* Clocks go from host to host. Each scan sees a request at any time of it. */
static void clocks(void **state)
{
	uint64_t seed = 1;

	for (int64_t i = 0, at = 0; i < 200; i++) {
		struct sample one = client(5, "front", AB), two = serving(client(7, "app", BC), AB),
			      three = serving(thread(9, "db", STATE_SLEEP), BC);
		int64_t length, seen[HOSTS];

		seed = seed * UINT64_C(6364136223846793005) + 1;
		length = 40000 + (int64_t)(seed >> 40) % 40000;
		for (int host = 0; host < HOSTS; host++)
			seen[host] = (int64_t)(seed >> (10 + 8 * host) & 0xffff) % length;
		one.now.state_us = seen[A];
		two.now.state_us = seen[B];
		three.now.state_us = seen[C];
		host_join_time(&join, A, at + seen[A], &one, 1);
		host_join_time(&join, B, at + seen[B] + 1000100, &two, 1);
		host_join_time(&join, C, at + seen[C] - 500000, &three, 1);
		at += length + (int64_t)(seed >> 44) % 20000;
	}
	host_join_find_clocks(&join);
	assert_true(join.clocks[B].known && join.clocks[C].known);
	assert_in_range(join.clocks[B].ahead_us, 998000, 1002000);
	assert_in_range(join.clocks[C].ahead_us + 1000000, 498000, 502000);
	assert_int_equal(join.clocks[C].by, B);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(over_three_hosts, setup, teardown),
		cmocka_unit_test_setup_teardown(behind_another, setup, teardown),
		cmocka_unit_test_setup_teardown(nearest, setup, teardown),
		cmocka_unit_test_setup_teardown(process_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(around, setup, teardown),
		cmocka_unit_test_setup_teardown(waits, setup, teardown),
		cmocka_unit_test_setup_teardown(few_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
