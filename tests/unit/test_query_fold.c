/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements without their values. */
#include "unit.h"

#include "sample/query_fold.h"

static const char *folded(const char *query)
{
	static struct text text;

	text_clear(&text);
	query_fold(&text, query);
	return text_string(&text);
}

static void values_go(void **state)
{
	static const char *const rows[][2] = {
		{"select 1", "select ?"},
		{"SELECT * FROM t WHERE a = 'O''Brien' AND b=-1.5e-3",
		 "SELECT * FROM t WHERE a = ? AND b=-?"},
		{"select x2, t1.y from t1 where z=$1", "select x2, t1.y from t1 where z=?"},
		{"select E'it\\'s', b'01', U&'d\\0061t', N'x', e", "select ?, e"},
		{"select name'x'", "select name?"},
		{"select $$a 'b' $$, $tag$ $$ $tag$", "select ?"},
		{"select 1 in (1, 2,3 , 4)", "select ? in (?)"},
		{"insert into t values (1, 'a'), (2, 'b'),(3, 'c')", "insert into t values (?)"},
		{"  select\n\t1 -- for Mary\n+ 2 /* and /* Jim */ Joe */ ;", "select ? + ?"},
		{"select \"Mary 1\" from `a 2`", "select \"Mary 1\" from `a 2`"},
		{"select 'cut", "select ?"},
		{"select /* cut", "select"},
		{"select $$cut", "select ?"},
		{"select 0x1f, .5, 1.e5", "select ?"},
		{"select größe2 = 7", "select größe2 = ?"},
		{"", ""},
		{"'", "?"},
		{"$", "$"},
		{"/", "/"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(folded(rows[i][0]), rows[i][1]);
}

static void folded_stays(void **state)
{
	static const char *const rows[] = {"select ? from t where x in (?) and y = ?",
					   "insert into t values (?)"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(folded(rows[i]), rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(values_go),
					   cmocka_unit_test(folded_stays)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
