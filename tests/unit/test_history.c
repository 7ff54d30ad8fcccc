/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of the full screen: samples come out as they went in, within the memory limit. */
#include "screen/history.h"
#include "screen/shown.h"
#include "screen/view.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/names.h"
#include "unit.h"

#define THREADS 500
#define PERIOD_US 50000

struct taken {
	const struct sample *expected;
	size_t count, scans;
};

/* Makes a sample of a thread at a scan: most threads go on with what they did, some change. */
static struct sample sample_of(int64_t thread, int64_t scan)
{
	uint64_t dice = hash_u64((uint64_t)(thread * 100003 + scan / (1 + thread % 40)));
	int64_t state = dice % 4 ? STATE_DISK : dice % 8 ? STATE_ON : STATE_RQ;
	struct sample sample = *sample_absent();
	char name[32];

	sample.scan.time_us = 1700000000000000 + scan * PERIOD_US;
	sample.scan.weight_us = PERIOD_US + (int64_t)(dice % 3);
	sample.scan.repeats = thread % 5 ? 0 : (int64_t)(dice % 7);
	sample.thread.tid = 1000 + thread;
	sample.thread.pid = 1000 + thread / 10 * 10;
	snprintf(name, sizeof(name), "worker-%d", (int)(thread / 10));
	sample.thread.comm = name_of_string(name);
	sample.thread.user = name_of_string("postgres");
	sample.now.state = state;
	sample.now.state_us = (int64_t)(hash_u64(dice) % 100000);
	sample.now.cpu = state == STATE_ON ? (int64_t)(dice % 64) : 3;
	snprintf(name, sizeof(name), "/data/file-%d", (int)(dice % 100));
	sample.call.name = state == STATE_ON ? NULL : name_of_string("pread64");
	sample.file.name = state == STATE_ON ? NULL : name_of_string(name);
	sample.sums.cpu_us = state == STATE_ON ? PERIOD_US - (int64_t)(dice % 1000) : 0;
	sample.sums.dwait_us = state == STATE_DISK ? PERIOD_US : 0;
	sample.sums.runq_us = (int64_t)(dice % 5);
	sample.sums.vcsw = (int64_t)(dice % 3);
	return sample;
}

static void scan_add(struct history *history, int64_t number)
{
	struct sample samples[THREADS];
	struct scan scan = {.samples = samples, .count = THREADS};

	for (int64_t i = 0; i < THREADS; i++)
		samples[i] = sample_of(i, number);
	scan.time_us = samples[0].scan.time_us;
	scan.weight_us = PERIOD_US;
	history_end_scan(history, &scan);
}

static void expect_same(const struct sample *a, const struct sample *b)
{
	assert_int_equal(a->scan.repeats, b->scan.repeats);
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];
		union value x, y;

		if (!history_keeps(column))
			continue;
		x = column_read(column, a);
		y = column_read(column, b);
		if (column->kind == KIND_TEXT && x.text && y.text)
			assert_string_equal(x.text, y.text);
		else
			assert_int_equal(x.number, y.number);
	}
}

static void take_and_compare(void *to, const struct sample *sample)
{
	struct taken *taken = to;
	int64_t scan = (sample->scan.time_us - 1700000000000000) / PERIOD_US;
	struct sample expected = sample_of((int64_t)(taken->count % THREADS), scan);

	expect_same(sample, &expected);
	taken->count++;
}

static void count_scan(void *to, const struct history_scan *scan)
{
	struct taken *taken = to;

	taken->scans++;
}

static void compare_whole(void *to, const struct sample *sample)
{
	const struct sample *expected = ((struct taken *)to)->expected;

	expect_same(sample, expected);
	((struct taken *)to)->count++;
}

/* A sample with a value in each column that the history keeps comes out with all of them. */
static void test_all_columns(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 0);
	struct sample sample = *sample_absent();
	struct scan scan = {.samples = &sample, .count = 1};
	struct taken taken = {.expected = &sample};
	struct history_visitor visitor = {.sample = compare_whole, .to = &taken};
	struct history_view view = {0};

	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];
		union value value = {.number = 1000 + (int64_t)i};

		if (column->kind == KIND_TEXT)
			value.text = name_of_string(column->name);
		if (history_keeps(column))
			column_set(column, &sample, value);
	}
	scan.time_us = sample.scan.time_us = 1700000000000000;
	scan.weight_us = sample.scan.weight_us;
	history_end_scan(history, &scan);
	history_look(history, &view);
	history_visit(&view, view.first_us, view.last_us + 1, &visitor);
	assert_int_equal(taken.count, 1);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

#define MEMOS_MAX 50000

/* Samples by memo, and how many had one. */
struct memos {
	struct sample samples[MEMOS_MAX + 1]; /* indexed by memo */
	uint32_t count;
	size_t kept; /* number of samples that had a memo */
};

static void memo_take(void *to, const struct sample *sample, uint64_t *memo)
{
	struct memos *memos = to;
	bool same = true;

	if (!*memo) {
		assert_true(memos->count < MEMOS_MAX);
		*memo = ++memos->count;
		memos->samples[*memo] = *sample;
		return;
	}
	memos->kept++;
	for (size_t i = 0; i < sample_column_count; i++)
		same &= history_varies(&sample_columns[i]) ||
			column_read(&sample_columns[i], sample).number ==
				column_read(&sample_columns[i], &memos->samples[*memo]).number;
	assert_true(same);
}

/* A visitor's memo of a sample is that of the thread's previous sample while all that is not a
 * number is the same, in chunks and across them. */
static void test_memo(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 0);
	struct history_view view = {0};
	struct memos *memos = memory_get(sizeof(*memos));
	struct history_visitor visitor = {.sample_memo = memo_take, .to = memos};

	for (int64_t scan = 0; scan < 450; scan++) /* more than a chunk */
		scan_add(history, scan);
	history_look(history, &view);
	history_visit(&view, view.first_us + 100 * PERIOD_US, view.last_us + 1, &visitor);
	assert_int_equal(memos->count + memos->kept, 350 * THREADS);
	assert_true(memos->kept > 100 * THREADS);
	history_view_done(&view);
	history_free(history);
	free(memos);
}

static void test_round_trip(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 0);
	struct history_view view = {0};
	struct taken taken = {0};
	struct history_visitor visitor = {
		.scan = count_scan, .sample = take_and_compare, .to = &taken};

	for (int64_t scan = 0; scan < 900; scan++) /* more than two chunks */
		scan_add(history, scan);
	history_look(history, &view);
	assert_int_equal(view.scan_count, 900);
	history_visit(&view, view.first_us, view.last_us + 1, &visitor);
	assert_int_equal(taken.count, 900 * THREADS);
	/* a window in the midst of a chunk */
	taken = (struct taken){0};
	history_visit(&view, view.first_us + 100 * PERIOD_US, view.first_us + 103 * PERIOD_US,
		      &visitor);
	assert_int_equal(taken.scans, 3);
	assert_int_equal(taken.count, 3 * THREADS);
	/* a snapshot outlives chunks that are dropped meanwhile */
	for (int64_t scan = 900; scan < 1000; scan++)
		scan_add(history, scan);
	taken = (struct taken){0};
	history_visit(&view, view.first_us, view.last_us + 1, &visitor);
	assert_int_equal(taken.scans, 900);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

static void account_take(void *to, const struct sample *account)
{
	const struct sample *expected = to;

	expect_same(account, expected);
	assert_int_equal(account->sums.forks, expected->sums.forks);
	assert_int_equal(account->sums.steal_us, expected->sums.steal_us);
	assert_int_equal(account->sums.hardirq_us, ABSENT);
}

static void test_accounts(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 0);
	struct history_view view = {0};
	struct sample account = sample_of(7, 0);
	struct history_visitor visitor = {.account = account_take, .to = &account};

	scan_add(history, 0);
	account.now.state = account.now.state_us = account.scan.weight_us = ABSENT;
	account.call.name = account.file.name = NULL;
	account.sums.forks = 3;
	account.now.cpu = 3;
	account.sums.steal_us = 7000000;
	history_add_account(history, &account);
	scan_add(history, 1);
	history_look(history, &view);
	history_visit(&view, view.first_us, view.last_us + 1, &visitor);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

/* A tenth of ten minutes of 500 active threads at 20 Hz, in a tenth of the memory. */
static void test_memory(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, HISTORY_AGE_DEFAULT_US);
	struct history_view view = {0};

	for (int64_t scan = 0; scan < 1200; scan++)
		scan_add(history, scan);
	assert_true(history_bytes(history) <= HISTORY_BYTES_DEFAULT / 10);
	history_look(history, &view);
	assert_int_equal(view.dropped_scans, 0);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

static void test_limits(void **state)
{
	struct history *history = history_new(1 << 19, 0);
	struct history_view view = {0};

	for (int64_t scan = 0; scan < 1000; scan++)
		scan_add(history, scan);
	assert_true(history_bytes(history) <= (1 << 19) * 5 / 4);
	history_look(history, &view);
	assert_true(view.dropped_scans > 0 && view.dropped_memory);
	assert_int_equal(view.scan_count + view.thinned_scans + view.dropped_scans, 1000);
	history_view_done(&view);
	history_free(history);
	history = history_new(HISTORY_BYTES_DEFAULT, 20 * 1000000ll);
	for (int64_t scan = 0; scan < 1300; scan++)
		scan_add(history, scan);
	history_look(history, &view);
	assert_true(view.thinned_scans > 0 && !view.dropped_scans);
	assert_int_equal(view.scan_count + view.thinned_scans, 1300);
	assert_int_equal(view.last_us - view.first_us, 1299 * PERIOD_US - 950000);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

/* Times of all samples and accounts of a visit. */
struct times {
	int64_t cpu_us, dwait_us, vcsw, weight_us, samples, scans, last_us, least_gap_us;
};

static void times_scan(void *to, const struct history_scan *scan)
{
	struct times *times = to;

	if (times->scans++ && scan->time_us - times->last_us < times->least_gap_us)
		times->least_gap_us = scan->time_us - times->last_us;
	times->last_us = scan->time_us;
}

static void times_add(void *to, const struct sample *sample)
{
	struct times *times = to;

	times->cpu_us += sample->sums.cpu_us;
	times->dwait_us += sample->sums.dwait_us;
	times->vcsw += sample->sums.vcsw;
	times->weight_us += sample->scan.weight_us == ABSENT ? 0 : sample->scan.weight_us;
	times->samples += sample->scan.weight_us != ABSENT ? sample_scans(sample) : 0;
}

/* Adds a scan of so many of the threads, in turn. */
static void scan_add_some(struct history *history, int64_t number)
{
	struct sample samples[THREADS];
	struct scan scan = {.samples = samples};

	for (int64_t i = number % 7; i < 40; i += 7)
		samples[scan.count++] = sample_of(i, number);
	scan.time_us = samples[0].scan.time_us;
	scan.weight_us = PERIOD_US;
	history_end_scan(history, &scan);
}

static struct times times_of(int64_t age_us)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, age_us);
	struct history_view view = {0};
	struct times times = {.least_gap_us = INT64_MAX};
	struct history_visitor visitor = {
		.scan = times_scan, .sample = times_add, .account = times_add, .to = &times};

	for (int64_t scan = 0; scan < 2000; scan++)
		scan_add_some(history, scan);
	history_look(history, &view);
	assert_int_equal(view.scan_count + view.thinned_scans, 2000);
	history_visit(&view, view.first_us, view.last_us + PERIOD_US - 45 * 1000000ll, &visitor);
	history_view_done(&view);
	history_free(history);
	names_clear();
	return times;
}

/* Thinning: an old part has one scan a second, and no exact time is lost: threads only in left out
 * scans have accounts. Samples stand for the time of the scans that are left out, also those that
 * stand for several threads. */
static void test_coarse(void **state)
{
	struct times fine = times_of(0), coarse = times_of(20 * 1000000ll);

	assert_int_equal(fine.least_gap_us, PERIOD_US);
	assert_int_equal(coarse.least_gap_us, 20 * PERIOD_US);
	assert_true(coarse.scans > 40 && coarse.scans < fine.scans / 15);
	assert_int_equal(coarse.samples * 20 * PERIOD_US, coarse.weight_us);
	assert_int_equal(coarse.cpu_us, fine.cpu_us);
	assert_int_equal(coarse.dwait_us, fine.dwait_us);
	assert_int_equal(coarse.vcsw, fine.vcsw);
}

static void peek(struct shown *shown, struct history *history, struct view *view)
{
	shown_fill(shown, history, &view->now, 72);
	shown_peek(shown, view);
}

/* Returns how many samples in D the one of that thread and scan stands for. */
static int64_t disk_samples(int64_t thread, int64_t scan)
{
	struct sample sample = sample_of(thread, scan);

	return sample.now.state == STATE_DISK ? sample_scans(&sample) : 0;
}

/* The band of a peek that continues its counts, over chunks and as time passes, equals that of one
 * that begins anew. */
static void test_peek_band(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 0);
	struct shown *kept = memory_get(sizeof(*kept)), *anew = memory_get(sizeof(*anew));
	struct view *view = memory_get(sizeof(*view));
	const struct query query = {.recorded = true};
	int64_t samples = 0, expected = 0;
	struct error e = {0};

	assert_int_equal(view_init(view, &query, &e), 0);
	text_into(view->peek, sizeof(view->peek), "state=D");
	for (int64_t scan = 0; scan < 1200; scan++) { /* three chunks, and 60 of 72 steps */
		scan_add(history, scan);
		for (int64_t i = 0; i < THREADS; i++)
			expected += disk_samples(i, scan);
		if (scan >= 900 && scan % 100 == 50)
			peek(kept, history, view);
	}
	for (int i = 0; i < 5; i++) { /* each call counts a chunk at least */
		peek(kept, history, view);
		peek(anew, history, view);
	}
	for (size_t i = 0; i < kept->band.count; i++) {
		assert_int_equal(kept->peek.band.samples[i], anew->peek.band.samples[i]);
		assert_int_equal(kept->peek.band.scans[i], anew->peek.band.scans[i]);
		assert_int_equal(kept->peek.band.scans[i], kept->band.steps[i].scans);
		samples += kept->peek.band.samples[i];
	}
	assert_int_equal(samples, expected);
	shown_done(kept);
	shown_done(anew);
	free(kept);
	free(anew);
	free(view);
	history_free(history);
	names_clear();
}

static const struct trace_kind sleeps = {.name = "sleeps", .columns = "state,syscall"};

/* Returns the thread's histogram of a second. */
static struct histogram histogram_of(int64_t second)
{
	struct histogram histogram = {
		.sum_ns = 1000 + second, .max_ns = INT64_MAX - second, .amount = second};

	histogram.below = second % 3;
	histogram.buckets[0] = 1;
	histogram.buckets[7] = second;
	histogram.buckets[HISTOGRAM_BUCKETS - 1] = 3000000000;
	return histogram;
}

struct traces {
	int64_t begin_us, count;
};

static void trace_take(void *to, const struct trace_kind *kind, const struct sample *who,
		       const struct histogram *histogram)
{
	struct traces *traces = to;
	struct histogram expected = histogram_of(traces->count);

	assert_ptr_equal(kind, &sleeps);
	assert_int_equal(who->thread.tid, 1007);
	assert_int_equal(who->now.state, STATE_SLEEP);
	assert_string_equal(who->call.name, "nanosleep");
	assert_true(who->file.name == NULL && who->waker.tid == ABSENT);
	assert_memory_equal(histogram, &expected, sizeof(expected));
	assert_in_range(who->scan.time_us - traces->begin_us - traces->count * 1000000, 0, 999999);
	traces->count++;
}

/* Traces come out as they went in, beside samples and accounts, also when scans are left out. */
static void test_traces(void **state)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, 20 * 1000000ll);
	struct history_view view = {0};
	struct traces traces = {0};
	struct taken taken = {0};
	struct history_visitor visitor = {.trace = trace_take, .to = &traces};
	struct history_visitor scans = {.scan = count_scan, .to = &taken};

	for (int64_t scan = 0; scan < 1300; scan++) {
		struct sample who = sample_of(7, 0);
		struct histogram histogram = histogram_of(scan / 20);

		scan_add(history, scan);
		if (scan % 20)
			continue;
		who.now.state = STATE_SLEEP;
		who.call.name = name_of_string("nanosleep");
		who.file.name = NULL;
		history_add_account(history, &who);
		history_add_trace(history, &sleeps, &who, &histogram);
	}
	history_look(history, &view);
	assert_true(view.thinned_scans > 0);
	traces.begin_us = 1700000000000000;
	history_visit(&view, view.first_us, view.last_us + 1, &visitor);
	assert_int_equal(traces.count, 65);
	history_visit(&view, view.first_us, view.last_us + 1, &scans);
	assert_int_equal(taken.scans, view.scan_count);
	history_view_done(&view);
	history_free(history);
	names_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memo),	    cmocka_unit_test(test_traces),
		cmocka_unit_test(test_peek_band),   cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_accounts),    cmocka_unit_test(test_memory),
		cmocka_unit_test(test_limits),	    cmocka_unit_test(test_coarse),
		cmocka_unit_test(test_all_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
