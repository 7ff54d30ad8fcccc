/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of why: the table's own, and sockets. test_waits_class.c tests the other rows. Also the
 * threads that wait to be classified. */
#include "unit.h"

#include "sample/sample.h"
#include "sample/wait_rule.h"

static void rows_agree(void **state)
{
	for (size_t i = 0; i < wait_rule_count; i++) {
		const struct wait_rule *first = wait_rule_find(wait_rules[i].name);

		assert_int_equal(first->traits & WAIT_WORKS, wait_rules[i].traits & WAIT_WORKS);
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

static void dns_before_ports(void **state)
{
	struct wait_facts facts = wait_facts_absent;

	facts.kind = WAIT_SOCKET;
	facts.dns = facts.connected = true;
	facts.local_port = 9999;
	assert_string_equal(wait_rule_of_facts(&facts, 10000)->name, "dns");
	/* a set that holds such a connection asks only if an answer is due on it */
	facts.kind = WAIT_SET;
	assert_string_equal(wait_rule_of_facts(&facts, 10000)->name, "poll");
	facts.has_request = true;
	assert_string_equal(wait_rule_of_facts(&facts, 10000)->name, "dns");
	assert_true(wait_class_works("dns"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_agree),
		cmocka_unit_test(calls_are_whole_words),
		cmocka_unit_test(sockets_by_their_ports),
		cmocka_unit_test(dns_before_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
