/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of why: the table's own, and sockets. test_waits_class.c tests the other rows. Also the
 * threads that wait to be classified. */
#include "unit.h"

#include "live/threads/live_sleepers.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

static void rows_agree(void **state)
{
	(void)state;
	for (size_t i = 0; i < wait_rule_count; i++) {
		const struct wait_rule *first = wait_rule_find(wait_rules[i].name);

		assert_int_equal(first->works, wait_rules[i].works);
		assert_string_equal(first->help, wait_rules[i].help);
		assert_true(wait_rules[i].calls || wait_rules[i].kind || i == wait_rule_count - 1);
		if (!wait_rules[i].calls)
			continue;
		assert_int_equal(wait_rules[i].calls[0], ' ');
		assert_int_equal(wait_rules[i].calls[strlen(wait_rules[i].calls) - 1], ' ');
	}
	assert_false(wait_class_works(NULL));
	assert_false(wait_class_works("no such"));
}

static void calls_are_whole_words(void **state)
{
	(void)state;
	assert_string_equal(wait_rule_of_call("accept")->name, "server");
	assert_string_equal(wait_rule_of_call("accept4")->name, "server");
	assert_string_equal(wait_rule_of_call("write")->name, "write");
	assert_null(wait_rule_of_call("wri"));
	assert_null(wait_rule_of_call("read"));
	assert_null(wait_rule_of_call("io_getevents"));
}

static void sockets_by_their_ports(void **state)
{
	static const struct {
		bool listens, accepts_there, connected;
		int64_t local, daemon_ports;
		const char *why;
	} rows[] = {
		{true, true, false, 50000, 10000, "server"},
		{false, true, true, 50000, 10000, "server"},
		{false, false, true, 50000, 10000, "client"},
		{false, false, true, 10000, 10000, "client"},
		{false, false, true, 9999, 10000, "server"},
		{false, false, true, 9999, 1, "client"},
		{false, false, true, 60000, 65536, "server"},
		{false, false, true, ABSENT, 10000, "client"}, /* socket of a path */
		{false, false, false, ABSENT, 10000, "socket"},
		{false, false, false, 0, 10000, "socket"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wait_facts facts = wait_facts_absent;

		facts.kind = WAIT_SOCKET;
		facts.listens = rows[i].listens;
		facts.accepts_there = rows[i].accepts_there;
		facts.connected = rows[i].connected;
		facts.local_port = rows[i].local;
		assert_string_equal(wait_rule_of_facts(&facts, rows[i].daemon_ports)->name,
				    rows[i].why);
	}
	assert_string_equal(wait_rule_of_facts(&wait_facts_absent, 1)->name, "other");
}

static void sleepers_wait_once_in_an_episode(void **state)
{
	const uint64_t far = 1ull << 32 | 7;
	struct live_sleepers sleepers = {0};
	uint64_t key;

	(void)state;
	live_sleepers_queue(&sleepers, 5000, 0);
	live_sleepers_queue(&sleepers, 5000, 0);
	live_sleepers_queue(&sleepers, far, 0);
	live_sleepers_queue(&sleepers, far, 0);
	assert_true(live_sleepers_next(&sleepers, &key) && key == 5000);
	assert_true(live_sleepers_next(&sleepers, &key) && key == far);
	assert_false(live_sleepers_next(&sleepers, &key));
	live_sleepers_queue(&sleepers, 5000, 0);
	assert_false(live_sleepers_next(&sleepers, &key));
	/* the thread ran */
	assert_false(live_sleepers_judge(&sleepers, 5000, 1));
	live_sleepers_queue(&sleepers, 5000, 1);
	assert_false(live_sleepers_next(&sleepers, &key));
	live_sleepers_queue(&sleepers, 5000, 2);
	assert_true(live_sleepers_next(&sleepers, &key) && key == 5000);
	/* too many: the others are not classified */
	for (uint64_t i = 0; i < 100000; i++)
		live_sleepers_queue(&sleepers, i, 3);
	for (key = 0; live_sleepers_next(&sleepers, &key);)
		;
	assert_true(key >= 5000 && key <= 99998);
	live_sleepers_queue(&sleepers, key + 1, 3);
	assert_true(live_sleepers_next(&sleepers, &key));
	live_sleepers_clear(&sleepers);
}

static void sleepers_come_again_in_the_next_scan(void **state)
{
	struct live_sleepers sleepers = {0};

	(void)state;
	live_sleepers_again(&sleepers, 3);
	assert_null(index_find(&sleepers.again, 3));
	live_sleepers_turn_over(&sleepers);
	assert_non_null(index_find(&sleepers.again, 3));
	live_sleepers_turn_over(&sleepers);
	assert_null(index_find(&sleepers.again, 3));
	live_sleepers_clear(&sleepers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_agree),
		cmocka_unit_test(calls_are_whole_words),
		cmocka_unit_test(sockets_by_their_ports),
		cmocka_unit_test(sleepers_wait_once_in_an_episode),
		cmocka_unit_test(sleepers_come_again_in_the_next_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
