/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Expressions, and filters that are made of them */
#include "unit.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/names.h"
#include "sample/column.h"
#include "sample/filter/expression.h"
#include "sample/filter/filter.h"
#include "sample/needs_table.h"

static struct sample person(void)
{
	struct sample sample = *sample_absent();

	time_iso_read("2026-11-20T20:42:53.500000Z", &sample.scan.time_us);
	sample.thread.tid = 12;
	sample.thread.pid = 10;
	sample.thread.uid = 0;
	sample.thread.user = "root";
	sample.thread.comm = "pg \"3\\\x01";
	sample.process.cmdline = "";
	sample.now.state = STATE_DISK;
	sample.now.state_us = 10500;
	sample.now.cpu = -1;
	sample.call.arg[0] = -1;
	sample.call.arg[1] = 0x10;
	return sample;
}

struct row {
	const char *text;
	bool holds;
};

static const struct row truths[] = {
	{"state=D", true},
	{"state!=D", false},
	{"state~^[DS]$", true},
	{"state!~D|S", false},
	{"state!~N", true},
	{"tid=12", true},
	{"tid=0xc && pid=0xA", true},
	{" tid  =\t12 ", true},
	{"tid!=12", false},
	{"tid<12", false},
	{"tid<=12", true},
	{"tid>11", true},
	{"tid>=13", false},
	{"cpu=-1", true},
	{"cpu<0", true},
	{"user=root", true},
	{"user=roo", false},
	{"user!=roo", true},
	{"user~oo", true},
	{"user~^oo", false},
	{"user!~oo", false},
	{"user~\"^(root|bin)$\"", true},
	{"user~a|r", true},
	{"user!=alice&&user=root", true},
	{"(user=alice)||(user=root)", true},
	/* escapes, as in the printable form */
	{"comm=\"pg \\\"3\\\\\\x01\"", true},
	{"comm=\"pg \\\"3\"", false},
	{"comm='pg \"3\\\\\\x01'", true},
	{"comm='pg \"3'", false},
	{"comm != 'it\\'s' && user ~ '^(root|bin)$'", true},
	{"comm~\"\\\"3\\\\\\\\\"", true},
	{"comm~\"3.\\x01$\"", true},
	/* numbers with units */
	{"state_us=10500", true},
	{"state_us=10500us", true},
	{"state_us=10.5ms", true},
	{"state_us>0.01s && state_us<1min && state_us<1m && state_us<0.5h", true},
	{"state_us>=10.501ms", false},
	/* 64 bits without a sign */
	{"arg0=0xffffffffffffffff", true},
	{"arg0>0x7fffffffffffffff", true},
	{"arg1=16", true},
	{"arg0=-1", true},
	/* times */
	{"timestamp=2026-11-20T20:42:53.5", true},
	{"timestamp=2026-11-20T20:42:53.500000Z", true},
	{"timestamp>2026-11-20 && timestamp<2026-11-21", true},
	{"timestamp>=2026-11-20T21", false},
	{"timestamp<2026-11-20T20:43Z", true},
	{"timestamp<2026-11-20T21:43+01:00", true},
	{"timestamp>2026-11-20T21:43-01:00", false},
	{"timestamp>2026-11-20T20:42:54", false},
	/* absent and empty values */
	{"filename=", true},
	{"filename!=", false},
	{"user=", false},
	{"user!= && tid=12", true},
	{"(ppid=)", true},
	{"cmdline=\"\"", true},
	{"cmdline=", false},
	{"cmdline!=", true},
	{"filename=\"\"", false},
	{"filename=a", false},
	{"filename!=a", false},
	{"filename~.", false},
	{"filename!~.", false},
	{"!filename=a", true},
	{"ppid<5 || ppid>=5", false},
	{"ppid!=5", false},
	/* && binds closer than ||, ! closest */
	{"tid=1 && tid=2 || tid=12", true},
	{"tid=12 || tid=1 && tid=2", true},
	{"(tid=12 || tid=1) && tid=2", false},
	{"!tid=12 || tid=12", true},
	{"!(tid=12 || tid=1)", false},
	{"!(tid=1 || tid=2 && tid=12)", true},
	{"!(tid=12 && tid=1) && tid=12", true},
	{"!!tid=12", true},
	{"tid==12", true},
	{"user=~^r && user=~oo", true},
	{"TID=12 && COMM*=", true},
	{"!!!tid=12", false},
	{"!(!(tid=12) || !(pid=10))", true},
	{"! ( ! state=S )", false},
	{"state=D && comm~\"pg.*\" && dwait_us>1000 || !user=root", false},
	{"state=D && comm~\"pg.*\" && dwait_us= || !user=root", true},
};

static void tells_what_holds(void **state)
{
	struct sample sample = person();
	struct error e = {0};

	for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++) {
		struct expression expression = {0};

		if (expression_add(&expression, truths[i].text, &e))
			fail_msg("%s", e.line);
		if (expression_eval(&expression, &sample, ~0ull) !=
		    (truths[i].holds ? VERDICT_ACCEPTED : VERDICT_REFUSED))
			fail_msg("%s", truths[i].text);
		/* two expressions: both must be true */
		assert_int_equal(expression_add(&expression, "tid!=12", &e), 0);
		assert_int_equal(expression_eval(&expression, &sample, ~0ull), VERDICT_REFUSED);
		expression_done(&expression);
	}
	error_done(&e);
}

static void quotes_what_is_wrong(void **state)
{
	static const struct {
		const char *text;
		size_t character;
		const char *words;
	} rows[] = {
		{"", 1, "expected a column"},
		{"tid=1 &&", 9, "expected a column"},
		{"stat=D", 1, "nearest: state"},
		{"tid=1 && zzzzzzzz=1", 10, "unknown column"},
		{"samples>1", 1, "unknown column of a sample"},
		{"state", 6, "expected ="},
		{"state=>D", 7, "expected a value"},
		{"state=d", 7, "ON RQ D S"},
		{"state<D", 6, "not a number"},
		{"user>root", 5, "not a number"},
		{"tid~1", 4, "is a number"},
		{"tid=1x", 5, "expected a number"},
		{"tid=1.5", 5, "expected a number"},
		{"tid=", 0, NULL},
		{"tid=\"\"", 5, "expected a number"},
		{"tid<", 5, "expected a value"},
		{"user~", 6, "expected a value"},
		{"arg0>arg1", 6, "expected a number"},
		{"tid=99999999999999999999", 5, "expected a number"},
		{"tid=9223372036854775808", 5, "expected a number"},
		{"tid=-9223372036854775808", 5, "expected a number"},
		{"tid=0x", 5, "expected a number"},
		{"arg0=0x10000000000000000", 6, "expected a number"},
		{"state_us=1.s", 10, "expected a time"},
		{"state_us=1.1234567s", 10, "expected a time"},
		{"state_us=9223372036854775807h", 10, "expected a time"},
		{"state_us=1K", 10, "expected a time"},
		{"timestamp>2026", 11, "expected a date and time"},
		{"timestamp>2026-02-30", 11, "expected a date and time"},
		{"timestamp>2026-11-20T2", 11, "expected a date and time"},
		{"timestamp>2026-11-20T20:42:53.", 11, "expected a date and time"},
		{"user~\"(\"", 6, "regular expression"},
		{"user=\"a", 6, "no end"},
		{"user='a\"", 6, "no end"},
		{"user=\"a\\\"", 6, "no end"},
		{"user=a b", 8, "expected && or ||"},
		{"tid=1 & pid=1", 7, "expected && or ||"},
		{"(tid=1", 7, "expected && || or )"},
		{"tid=1)", 6, "expected && or ||"},
		{"()", 2, "expected a column"},
		{"user=\"\303\244\" && x", 13, "unknown column"},
	};
	struct error e = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expression expression = {0};
		char start[64];

		snprintf(start, sizeof(start), "--filter: at character %zu of '",
			 rows[i].character);
		if (expression_add(&expression, rows[i].text, &e) != (rows[i].words ? -EINVAL : 0))
			fail_msg("%s: taken, or refused: %s", rows[i].text, e.line);
		else if (rows[i].words &&
			 (strncmp(e.line, start, strlen(start)) != 0 ||
			  !strstr(e.line, rows[i].words) || !strstr(e.line, rows[i].text) ||
			  e.exit_code != EXIT_USAGE))
			fail_msg("%s: %s", rows[i].text, e.line);
		expression_done(&expression);
	}
	error_done(&e);
}

static void fill(char *text, const char *part, int count, const char *end)
{
	*text = '\0';
	while (count--)
		strcat(text, part);
	strcat(text, end);
}

static void has_limits(void **state)
{
	static const struct {
		const char *part;
		int count;
		const char *end, *words;
	} rows[] = {
		{"!", EXPRESSION_DEPTH_MAX, "tid=1", NULL},
		{"!", EXPRESSION_DEPTH_MAX + 1, "tid=1", "within each other"},
		{"(", EXPRESSION_DEPTH_MAX + 1, "tid=1", "within each other"},
		{"cpu=||", EXPRESSION_NODES_MAX - 1, "cpu=", NULL},
		{"cpu=||", EXPRESSION_NODES_MAX, "cpu=", "too many comparisons"},
		{" ", EXPRESSION_BYTES_MAX - 4, "cpu=", NULL},
		{" ", EXPRESSION_BYTES_MAX, "cpu=", "bytes"},
	};
	char text[EXPRESSION_BYTES_MAX + 64];
	struct sample sample = person();
	struct error e = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expression expression = {0};

		fill(text, rows[i].part, rows[i].count, rows[i].end);
		if (!rows[i].words) {
			assert_int_equal(expression_add(&expression, text, &e), 0);
			assert_int_equal(expression_eval(&expression, &sample, ~0ull),
					 VERDICT_REFUSED);
		} else {
			assert_int_equal(expression_add(&expression, text, &e), -EINVAL);
			assert_non_null(strstr(e.line, rows[i].words));
		}
		expression_done(&expression);
	}
	error_done(&e);
}

static enum verdict question(const char *text, uint64_t known)
{
	struct expression expression = {0};
	struct sample sample = person();
	struct error e = {0};
	enum verdict verdict;

	assert_int_equal(expression_add(&expression, text, &e), 0);
	verdict = expression_eval(&expression, &sample, known);
	expression_done(&expression);
	return verdict;
}

static void is_asked_as_early_as_it_can(void **state)
{
	assert_int_equal(question("tid=12 && user=root", KNOWN_IDS), VERDICT_OPEN);
	assert_int_equal(question("tid=12 && user=root", KNOWN_IDS | NEED_USER), VERDICT_ACCEPTED);
	assert_int_equal(question("tid=13 && user=root", KNOWN_IDS), VERDICT_REFUSED);
	assert_int_equal(question("user=root && tid=13", KNOWN_IDS), VERDICT_REFUSED);
	assert_int_equal(question("user=root || tid=12", KNOWN_IDS), VERDICT_ACCEPTED);
	assert_int_equal(question("!(user=root || tid=12)", KNOWN_IDS), VERDICT_REFUSED);
	assert_int_equal(question("state=S && user=root", KNOWN_IDS), VERDICT_OPEN);
	assert_int_equal(question("state=S && user=root", KNOWN_STATE), VERDICT_REFUSED);
	assert_int_equal(question("state_us<5 && filename=", KNOWN_STATE), VERDICT_OPEN);
	assert_int_equal(question("state_us<5 && filename=", KNOWN_RECORD), VERDICT_REFUSED);
	/* needs that a need implies must be known, too */
	assert_int_equal(question("filename=", NEED_FILE), VERDICT_OPEN);
	assert_int_equal(question("filename=", NEED_FILE | NEED_SYSCALL), VERDICT_ACCEPTED);
}

static void filter_asks_the_state_first(void **state)
{
	static const struct {
		const char *text;
		bool on, asleep, idle;
	} rows[] = {
		{"user=root", true, true, false},
		{"why=client || why=io", true, true, false},
		{"why=server && user=root", true, true, true},
		{"why!=client", true, true, true},
		{"state=S", false, true, true},
		{"state!=S", true, false, true},
		{"state=D && user=root", false, false, false},
		{"state=S || tid=1", true, true, true},
		{"!state=S && cpu=1", true, false, true},
		{"state~^[RO]", true, false, false},
	};
	struct error e = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct filter filter = {0};

		assert_int_equal(filter_set_expression(&filter, rows[i].text, &e), 0);
		assert_int_equal(filter_wants_state(&filter, STATE_ON), rows[i].on);
		assert_int_equal(filter_wants_state(&filter, STATE_SLEEP), rows[i].asleep);
		assert_int_equal(filter_wants_idle(&filter), rows[i].idle);
		filter_done(&filter);
	}
}

static void filter_without_samples(void **state)
{
	struct filter filter = {.no_samples = true};
	struct error e = {0};

	assert_int_equal(filter_needs(&filter), 0); /* not even a need of why */
	assert_int_equal(filter_set_expression(&filter, "state=S || tid=1", &e), 0);
	for (int64_t kind = 0; kind < STATE_COUNT; kind++)
		assert_false(filter_wants_state(&filter, kind));
	assert_false(filter_wants_idle(&filter));
	filter_done(&filter);
}

static void filter_asks_ids_early(void **state)
{
	struct filter filter = {0};
	struct error e = {0};

	assert_int_equal(filter_set_expression(&filter, "pid=10 && state=D || tid=99", &e), 0);
	assert_false(filter_excludes(&filter, 10, 3));
	assert_false(filter_excludes(&filter, 11, 99));
	assert_true(filter_excludes(&filter, 11, 12));
	assert_int_equal(filter_needs(&filter), 0);
	filter_done(&filter);
}

/* Facts of events: a distribution has the device of its requests, a single event also the request's
 * bytes; a call's errno. */
static void events_tell_more(void **state)
{
	static const struct {
		const char *text;
		enum verdict key, event;
	} rows[] = {
		{"io_dev=sdb", VERDICT_REFUSED, VERDICT_REFUSED},
		{"io_dev=sda", VERDICT_ACCEPTED, VERDICT_ACCEPTED},
		{"io_bytes>4K", VERDICT_OPEN, VERDICT_REFUSED},
		{"io_us>1ms", VERDICT_OPEN, VERDICT_OPEN},
		{"errno=EAGAIN", VERDICT_OPEN, VERDICT_REFUSED},
		{"cpu=1", VERDICT_OPEN, VERDICT_OPEN},
	};
	struct sample sample = *sample_absent();
	struct error e = {0};

	sample.io.dev = name_of_string("sda");
	sample.io.bytes = 512;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct filter filter = {0};

		assert_int_equal(filter_set_expression(&filter, rows[i].text, &e), 0);
		assert_int_equal(filter_eval_thread(&filter, &sample, NEED_BLOCK), rows[i].key);
		assert_int_equal(filter_eval_thread(&filter, &sample, NEED_BLOCK | KNOWN_EVENT),
				 rows[i].event);
		filter_done(&filter);
	}
}

static void needs_are_told(void **state)
{
	struct filter filter = {0};
	struct error e = {0};

	assert_int_equal(filter_set_expression(&filter, "state=D && filenamesum=x || cpu_us=1", &e),
			 0);
	assert_int_equal(filter_needs(&filter),
			 NEED_FILENAMESUM | NEED_FILE | NEED_SYSCALL | NEED_TOTALS);
	filter_done(&filter);
}

/* Every need has one row, after those that it implies. */
static void needs_have_rows(void **state)
{
	/* needs of columns and measures; columns of NEED_VARIABLES and NEED_HELD come with options
	 */
	uint64_t rows = 0;
	uint64_t columns = NEED_PROCESSES | NEED_VARIABLES | NEED_HELD | NEED_INTERRUPTS;

	for (size_t i = 0; i < sample_column_count; i++)
		columns |= sample_needs_close(sample_columns[i].needs);
	for (size_t i = 0; i < needs_row_count; i++) {
		uint64_t need = needs_rows[i].need;

		assert_int_equal(need & (need - 1), 0);
		assert_int_equal(rows & need, 0);
		rows |= need;
		assert_int_equal(sample_needs_close(need) & ~rows, 0);
		assert_int_equal(needs_first(need), need);
		assert_true(*needs_rows[i].name && *needs_rows[i].help);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(needs_rows[i].name, needs_rows[j].name);
	}
	assert_int_equal(rows, columns);
	assert_int_equal(needs_first(0), 0);
	assert_int_equal(needs_first(NEED_FILE | NEED_USER), NEED_USER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_holds),
		cmocka_unit_test(quotes_what_is_wrong),
		cmocka_unit_test(has_limits),
		cmocka_unit_test(is_asked_as_early_as_it_can),
		cmocka_unit_test(filter_asks_the_state_first),
		cmocka_unit_test(filter_without_samples),
		cmocka_unit_test(filter_asks_ids_early),
		cmocka_unit_test(needs_are_told),
		cmocka_unit_test(needs_have_rows),
		cmocka_unit_test(events_tell_more),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
