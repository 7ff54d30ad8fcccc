/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of findings: what is written is read again, whatever texts it has; other columns and bad
 * rows are skipped. */
#include "recording/finding_rows.h"
#include "sample/sample.h"
#include "unit.h"

#include <string.h>

struct bytes {
	struct csv_input input; /* first member */
	const char *at;
};

static ssize_t bytes_read(struct csv_input *input, char *bytes, size_t size, struct error *e)
{
	struct bytes *of = (struct bytes *)input;
	size_t length = strlen(of->at);

	(void)e;
	length = length < size ? length : size;
	memcpy(bytes, of->at, length);
	of->at += length;
	return (ssize_t)length;
}

/* What was read, as text: a line for each. */
static void entry_take(void *to, const struct finding_entry *entry)
{
	text_add_format(to, "%lld %lld %lld %s %s %lld %lld %s %lld %s: %s\n",
			(long long)entry->begin_us, (long long)entry->end_us,
			(long long)entry->rank, entry->finding, entry->certainty,
			(long long)entry->time_us, (long long)entry->longest_us, entry->culprit,
			(long long)entry->pid, entry->thing, entry->text);
}

static void assert_read(const char *rows, const char *expected)
{
	struct bytes bytes = {.input.read = bytes_read, .at = rows};
	struct text read = {0};
	struct error e = {0};

	assert_int_equal(finding_rows_read(&bytes.input, "rows", entry_take, &read, &e), 0);
	assert_string_equal(text_string(&read), expected);
	text_done(&read);
	error_done(&e);
}

static void what_is_written_is_read(void **state)
{
	struct finding_entry entry = {
		.begin_us = 1763650800000000ll,
		.end_us = 1763650860000000ll,
		.rank = 2,
		.time_us = INT64_MAX,
		.longest_us = 7,
		.finding = "lock",
		.certainty = "certain",
		.culprit = "a\"b,c",
		.pid = 4711,
		.text = "3.0 x wait for \"it\", which sleeps",
	};
	struct text rows = {0};

	(void)state;
	text_add_string(&rows, FINDING_ROWS_HEADER "\n");
	finding_row_add(&rows, &entry);
	finding_row_add(&rows, &(struct finding_entry){.begin_us = 0, .end_us = 1000000});
	assert_read(text_string(&rows),
		    "1763650800000000 1763650860000000 2 lock certain 9223372036854775807 7 "
		    "a\"b,c 4711 : 3.0 x wait for \"it\", which sleeps\n"
		    "0 1000000 0   0 0  0 : \n");
	text_done(&rows);
}

static void what_cannot_be_read_is_skipped(void **state)
{
	(void)state;
	assert_read("", "");
	assert_read("timestamp,more,begin,finding\n"
		    "\"2025-11-20T15:01:00.000000Z\",x,\"2025-11-20T15:00:00.000000Z\",\"disk\"\n"
		    "\"2025-11-20T15:01:00.000000Z\",x,,\"disk\"\n"
		    "\"soon\",x,\"2025-11-20T15:00:00.000000Z\",\"disk\"\n"
		    "\"2025-11-20T15:01:00.000000Z\",x\n"
		    "timestamp,begin,rank,finding\n"
		    "\"2025-11-20T15:02:00.000000Z\",\"2025-11-20T15:01:00.000000Z\",-1,\"disk\"\n"
		    "\"2025-11-20T15:02:00.000000Z\",\"2025-11-20T15:01:00.000000Z\",1,\"lock\"\n",
		    "1763650800000000 1763650860000000 0 disk  0 0  0 : \n"
		    "1763650860000000 1763650920000000 1 lock  0 0  0 : \n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_cannot_be_read_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
