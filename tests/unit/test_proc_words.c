/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample/proc_values, proc/proc_words: each column from its word of stat, status and io */
#include "unit.h"
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "fake_proc.h"
#include "proc/proc_words.h"
#include "live/resolve/lookup.h"

/* Texts as kernels write them, but with a different number in each field. */
static const char stat_text[] =
	"7 (a) R 1 2) S 104 105 106 107 108 109 110 111 112 113 114 115 116 117 -118 -19 120 121 "
	"122 123 124 18446744073709551615 126 127 128 129 130 131 132 133 134 135 136 137 138 139 "
	"140 3 142 143 144 145 146 147 148 149 150 151 152\n";
static const char status_text[] =
	"Name:\ta\\nUid:\\t9\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t7\nNgid:\t8\nPid:\t7\n"
	"PPid:\t1\nTracerPid:\t9\nUid:\t10\t11\t12\t13\nGid:\t20\t21\t22\t23\nFDSize:\t64\n"
	"Groups:\t4 24 \nNStgid:\t7\t2\nNSpid:\t7\t3\nNSpgid:\t7\t0\nNSsid:\t7\t0\nKthread:\t0\n"
	"VmPeak:\t    65 kB\nVmSize:\t     1 kB\nVmLck:\t    66 kB\nVmPin:\t    67 kB\n"
	"VmHWM:\t    68 kB\nVmRSS:\t     2 kB\nRssAnon:\t    69 kB\nRssFile:\t    70 kB\n"
	"RssShmem:\t    71 kB\nVmData:\t    72 kB\nVmStk:\t    73 kB\nVmExe:\t    74 kB\n"
	"VmLib:\t    75 kB\nVmPTE:\t    76 kB\nVmPMD:\t    79 kB\nVmSwap:\t    77 kB\n"
	"HugetlbPages:\t    78 kB\nThreads:\t1\nSigQ:\t2/96365\nSigPnd:\t0000000000000081\n"
	"ShdPnd:\t0000000000000082\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000000084\n"
	"SigCgt:\t0000000000000085\nCapInh:\t0000000000000086\nCapPrm:\t0000000000000087\n"
	"CapEff:\t0000000000000088\nCapBnd:\t0000000000000089\nCapAmb:\t0000000000000090\n"
	"NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\nCpus_allowed:\tf,00000003\n"
	"Cpus_allowed_list:\t0-1,32-35\nMems_allowed:\t1\nMems_allowed_list:\t0\n"
	"voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
static const char io_text[] =
	"rchar: 96\nwchar: 97\nsyscr: 98\nsyscw: 99\nread_bytes: 100\nwrite_bytes: 101\n"
	"cancelled_write_bytes: 102\n";

static struct proc_values parse(uint64_t need, const char *text)
{
	struct proc_values values = *proc_values_absent();
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", text);
	proc_words_parse(need, copy, &values);
	return values;
}

static union value value_of(const struct proc_values *values, const char *name)
{
	return values->slots[proc_values_slot(sample_column_find(name))];
}

static void columns_have_slots(void **state)
{
	bool taken[PROC_VALUES_SLOTS] = {false};

	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (!column_is_proc_value(column)) {
			assert_false(column->needs & NEEDS_PROC_VALUES);
			continue;
		}
		assert_true(column->needs == NEED_STAT || column->needs == NEED_STATUS ||
			    column->needs == NEED_IO);
		assert_true(proc_values_slot(column) < PROC_VALUES_SLOTS);
		assert_false(taken[proc_values_slot(column)]);
		taken[proc_values_slot(column)] = true;
		assert_true(value_is_absent(column, sample_value(column, sample_absent())));
	}
}

/* Every column gets a value from these texts, and from its own file only. */
static void every_column_is_read(void **state)
{
	const struct proc_values all[] = {parse(NEED_STAT, stat_text),
					  parse(NEED_STATUS, status_text), parse(NEED_IO, io_text)};
	const uint64_t needs[] = {NEED_STAT, NEED_STATUS, NEED_IO};

	for (size_t i = 0; i < sample_column_count; i++)
		for (size_t file = 0; file < 3; file++) {
			const struct column *column = &sample_columns[i];
			bool limit = !strcmp(column->name, "rss_limit_bytes");

			if (!column_is_proc_value(column))
				continue;
			if (value_is_absent(column, all[file].slots[proc_values_slot(column)]) !=
			    (column->needs != needs[file] || limit))
				fail_msg("%s", column->name);
		}
}

static void stat_is_read(void **state)
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK), start_us;
	struct proc_values values = parse(NEED_STAT, stat_text);

	assert_int_equal(value_of(&values, "pgrp").number, 105);
	assert_int_equal(value_of(&values, "tpgid").number, 108);
	assert_int_equal(value_of(&values, "majflt").number, 112);
	assert_int_equal(value_of(&values, "utime_us").number, 114 * tick_us);
	assert_int_equal(value_of(&values, "priority").number, -118);
	assert_int_equal(value_of(&values, "nice").number, -19);
	assert_int_equal(value_of(&values, "vsize_bytes").number, 123);
	assert_int_equal(value_of(&values, "rss_bytes").number, 124 * sysconf(_SC_PAGESIZE));
	assert_int_equal(value_of(&values, "rss_limit_bytes").number, ABSENT);
	assert_int_equal(value_of(&values, "rt_priority").number, 140);
	assert_string_equal(value_of(&values, "policy").text, "BATCH");
	assert_int_equal(value_of(&values, "blkio_us").number, 142 * tick_us);
	assert_int_equal(value_of(&values, "exit_code").number, 152);
	start_us = value_of(&values, "start_time").number;
	assert_true(start_us <= clock_utc_us() &&
		    start_us >= clock_utc_us() - clock_boot_ns() / NS_PER_US + 121 * tick_us);
}

static void status_and_io_are_read(void **state)
{
	struct proc_values values = parse(NEED_STATUS, status_text), io = parse(NEED_IO, io_text);

	assert_string_equal(value_of(&values, "umask").text, "0022");
	assert_int_equal(value_of(&values, "ruid").number, 10);
	assert_int_equal(value_of(&values, "rgid").number, 20);
	assert_int_equal(value_of(&values, "gid").number, 21);
	assert_string_equal(value_of(&values, "groups").text, "4 24");
	assert_string_equal(value_of(&values, "nspid").text, "7 3");
	assert_int_equal(value_of(&values, "vm_peak_bytes").number, 65 * 1024);
	assert_int_equal(value_of(&values, "hugetlb_bytes").number, 78 * 1024);
	assert_int_equal(value_of(&values, "vm_pmd_bytes").number, 79 * 1024);
	assert_int_equal(value_of(&values, "sigblk").number, -1);
	assert_int_equal(value_of(&values, "capamb").number, 0x90);
	assert_string_equal(value_of(&values, "cpus_allowed").text, "f,00000003");
	assert_string_equal(value_of(&values, "cpus_allowed_list").text, "0-1,32-35");
	assert_int_equal(value_of(&io, "rchar_bytes").number, 96);
	assert_int_equal(value_of(&io, "cancelled_write_bytes").number, 102);
}

static void what_is_odd_is_absent(void **state)
{
	struct proc_values values;

	values = parse(NEED_STAT, "7 no parenthesis");
	assert_int_equal(value_of(&values, "pgrp").number, ABSENT);
	values = parse(NEED_STAT, "7 (a) S 1 x 3");
	assert_int_equal(value_of(&values, "pgrp").number, ABSENT);
	assert_int_equal(value_of(&values, "session").number, 3);
	values = parse(NEED_STATUS,
		       "VmPeak:\t99999999999999999999 kB\nVmLck:\t9223372036854775807 kB\n"
		       "SigQ:\nGid:\t5\nSigPnd:\t00000000000000000\nNgid 5\nFDSize:\t5");
	assert_int_equal(value_of(&values, "vm_peak_bytes").number, ABSENT);
	assert_int_equal(value_of(&values, "vm_locked_bytes").number, ABSENT);
	assert_null(value_of(&values, "sigq").text);
	assert_int_equal(value_of(&values, "rgid").number, 5);
	assert_int_equal(value_of(&values, "gid").number, ABSENT);
	assert_int_equal(value_of(&values, "sigpnd").number, ABSENT);
	assert_int_equal(value_of(&values, "ngid").number, ABSENT);
	assert_int_equal(value_of(&values, "fdsize").number, ABSENT); /* cut off */
}

static struct sample fill(struct lookup *lookup, struct proc_values *values, uint64_t sequence,
			  int64_t now_ns)
{
	struct lookup_hint hint = {.sequence = sequence};
	struct sample sample = *sample_absent();

	sample.thread.tid = sample.thread.pid = 7;
	sample.thread.start_ns = 1;
	sample.thread.kthread = 0;
	sample.now.state = STATE_SLEEP;
	sample.thread.comm = name_of_string("one");
	*values = *proc_values_absent();
	sample.proc_values = values;
	lookup_fill(lookup, &sample, &hint, NEED_IO, now_ns);
	return sample;
}

static void is_kept_for_a_while(void **state)
{
	const struct column *read = sample_column_find("read_bytes");
	struct lookup *lookup;
	struct proc_values values;
	struct fake_proc proc;
	struct sample sample;

	fake_proc_init(&proc);
	lookup = lookup_new(proc.root);
	fake_proc_put(&proc, 7, 7, "io", "read_bytes: 1\n");
	sample = fill(lookup, &values, 1, NS_PER_SECOND);
	assert_int_equal(sample_value(read, &sample).number, 1);
	fake_proc_put(&proc, 7, 7, "io", "read_bytes: 2\n");
	sample = fill(lookup, &values, 1, NS_PER_SECOND + LOOKUP_RAN_NS);
	assert_int_equal(sample_value(read, &sample).number, 1); /* the thread did not run */
	sample = fill(lookup, &values, 2, NS_PER_SECOND + LOOKUP_RAN_NS);
	assert_int_equal(sample_value(read, &sample).number, 2);
	fake_proc_drop(&proc, 7, 7);
	sample = fill(lookup, &values, 3, NS_PER_SECOND + 3 * LOOKUP_RAN_NS);
	assert_int_equal(sample_value(read, &sample).number, ABSENT);
	lookup_free(lookup);
	fake_proc_done(&proc);
}

/* Values remain at their addresses as more are taken from a pool. */
static void pools_stay(void **state)
{
	struct proc_values_pool pool = {0};
	struct proc_values *first = proc_values_pool_take(&pool), *last = first;

	for (int i = 0; i < 1000; i++) {
		last = proc_values_pool_take(&pool);
		last->slots[0].number = i;
	}
	assert_int_equal(pool.blocks[0][0].slots[0].number, first->slots[0].number);
	proc_values_pool_clear(&pool);
	assert_ptr_equal(proc_values_pool_take(&pool), first);
	proc_values_pool_return(&pool, NULL);
	last = proc_values_pool_take(&pool);
	proc_values_pool_return(&pool, first); /* not the last one taken */
	proc_values_pool_return(&pool, last);
	assert_ptr_equal(proc_values_pool_take(&pool), last);
	proc_values_pool_return(&pool, last);
	proc_values_pool_return(&pool, first);
	proc_values_pool_return(&pool, first);
	assert_int_equal(pool.count, 0);
	proc_values_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_have_slots),
		cmocka_unit_test(every_column_is_read),
		cmocka_unit_test(stat_is_read),
		cmocka_unit_test(status_and_io_are_read),
		cmocka_unit_test(what_is_odd_is_absent),
		cmocka_unit_test(is_kept_for_a_while),
		cmocka_unit_test(pools_stay),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
