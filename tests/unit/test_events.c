/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events: reading of a ring while it is written, and output of events */
#include "unit.h"
#include "base/names.h"
#include "maps/event_reader.h"
#include "report/event_list.h"
#include "render/renderer.h"
#include "sample/proc_values.h"
#include "sample/trace_kind.h"

static struct event_ring rings[2];
static struct event_reader reader;
static char taken[64];

static void event_note(void *to, const struct trace_event *event)
{
	snprintf(taken + strlen(taken), sizeof(taken) - strlen(taken), "%llu ",
		 (unsigned long long)event->end_ns);
}

static const char *take(void)
{
	taken[0] = 0;
	event_reader_take(&reader, event_note, NULL);
	return taken;
}

/* Puts an event as a probe does. whole: false for one that was interrupted. */
static void event_put(struct event_ring *ring, uint64_t end_ns, bool whole)
{
	struct trace_event *event = &ring->events[ring->count++ % EVENTS_MAX];

	event->begun = ring->count;
	event->end_ns = end_ns;
	if (whole)
		event->done = ring->count;
}

static int begin(void **state)
{
	memset(rings, 0, sizeof(rings));
	assert_int_equal(event_reader_init(&reader, -1, 2, false), 0);
	reader.map = 0;
	reader.rings = rings;
	reader.taken = calloc(2, sizeof(*reader.taken));
	reader.awaited = calloc(2, sizeof(*reader.awaited));
	return 0;
}

static int end(void **state)
{
	reader.rings = NULL;
	event_reader_done(&reader);
	return 0;
}

static void events_come_in_order(void **state)
{
	event_put(&rings[0], 5, true);
	event_put(&rings[0], 7, true);
	event_put(&rings[1], 6, true);
	assert_string_equal(take(), "5 6 7 ");
	assert_string_equal(take(), "");
	event_put(&rings[1], 9, true);
	assert_string_equal(take(), "9 ");
	assert_int_equal(reader.lost_count, 0);
}

static void unwritten_ones_are_awaited_once(void **state)
{
	event_put(&rings[0], 1, true);
	event_put(&rings[0], 2, false);
	event_put(&rings[0], 3, true);
	assert_string_equal(take(), "1 ");
	assert_int_equal(reader.lost_count, 0);
	rings[0].events[1].done = 2;
	assert_string_equal(take(), "2 3 ");
	rings[0].count++; /* slot that is never written */
	event_put(&rings[0], 5, true);
	assert_string_equal(take(), "");
	assert_string_equal(take(), "5 ");
	assert_int_equal(reader.lost_count, 1);
}

static void overwritten_ones_are_counted(void **state)
{
	for (uint64_t i = 1; i <= EVENTS_MAX + 10; i++)
		event_put(&rings[0], 1, true);
	take();
	assert_int_equal(reader.lost_count, 10);
	assert_int_equal(reader.taken[0], EVENTS_MAX + 10);
	/* the next event is being written over the first unread one */
	for (uint64_t i = 1; i <= EVENTS_MAX; i++)
		event_put(&rings[0], 1, true);
	rings[0].events[rings[0].count % EVENTS_MAX].begun = rings[0].count + 1;
	take();
	assert_int_equal(reader.lost_count, 11);
}

static struct trace_event *event_of(struct event_ring *ring, uint32_t tid, uint64_t end_ns)
{
	event_put(ring, end_ns, true);
	ring->events[ring->count - 1].key.tid = tid;
	return &ring->events[ring->count - 1];
}

/* One set of probes replaces another while events come; one of them runs in both. */
static void what_another_had_is_told_once(void **state)
{
	static struct event_ring more[2];
	uint64_t more_taken[2] = {0}, more_awaited[2] = {0};
	struct event_reader bigger = {
		.cpus = 2, .rings = more, .taken = more_taken, .awaited = more_awaited};

	event_of(&rings[0], 1, 5);
	event_put(&rings[0], 6, false);
	event_of(&rings[0], 2, 1000000);
	event_of(&rings[1], 3, 1000100);
	event_of(&more[1], 3, 1000200);			  /* the event of thread 3 again */
	event_of(&more[1], 4, 1000250);			  /* an event of thread 4 */
	event_of(&more[0], 2, 1000000 + 300000);	  /* another event of thread 2 */
	event_of(&more[0], 2, 1000001)->key.what[0] = 12; /* an event of another kind */
	event_reader_adopt(&bigger, &reader);
	taken[0] = 0;
	event_reader_take(&bigger, event_note, NULL);
	assert_string_equal(taken, "5 1000000 1000001 1000100 1000250 1300000 ");
	assert_int_equal(bigger.lost_count, 1);
	free(bigger.events);
}

static void longest_come_first(void **state)
{
	static const struct trace_kind calls = {
		.name = "calls", .help = "a fake kind", .fails = true};
	struct event_list events = {0};
	struct interval interval = {0};
	struct sample who = *sample_absent();
	struct text text = {0};
	struct error e = {0};
	struct grid grid = {0};

	assert_int_equal(event_list_init(&events, "tid,syscall,samples", "errno,cpu_us", &e), 0);
	assert_int_equal(events.list.count, 15);
	events.slower_us = 20000;
	who.scan.time_us = 1000000;
	who.thread.tid = 7;
	event_list_add(&events, &calls, &who, 20000000);
	who.thread.tid = 8;
	who.event.error = name_of_string("ENOENT");
	event_list_add(&events, &calls, &who, 30000000);
	interval_add_events(&text, &interval, &events);
	assert_string_equal(text_string(&text),
			    "\n"
			    "slower than 20 ms: 2 single events\n"
			    "ENDED                        TRACE        TOOK      TID  ERRNO\n"
			    "1970-01-01T00:00:01.000000Z  calls     30.0 ms        8  ENOENT\n"
			    "1970-01-01T00:00:01.000000Z  calls     20.0 ms        7  -\n");
	event_rows_fill(&events, &grid);
	assert_int_equal(grid.list->count, 15);
	assert_int_equal(grid_row(&grid, 0)[12].number, 7);
	for (int i = 2; i < EVENTS_KEPT_MAX + 3; i++)
		event_list_add(&events, &calls, &who, 1);
	assert_int_equal(events.refused, 3);
	event_list_clear(&events);
	assert_int_equal(events.refused, 0);
	grid_done(&grid);
	text_done(&text);
	event_list_done(&events);
}

/* Values of /proc are not in the sample, which points to them: the memory after it is the next
 * sample */
static void values_of_proc_are_not_behind_the_sample(void **state)
{
	static const struct trace_kind calls = {.name = "calls", .help = "a fake kind"};
	struct proc_values values = *proc_values_absent();
	const struct column *column = sample_column_find("cpus_allowed_list");
	struct sample who = *sample_absent();
	struct event_list events = {0};
	struct error e = {0};
	struct grid grid = {0};

	assert_int_equal(event_list_init(&events, "tid", "cpus_allowed_list,sigq", &e), 0);
	assert_int_equal(events.list.count, 15);
	events.slower_us = 20000;
	event_list_add(&events, &calls, &who, 1);
	memset(&who, 0x55, sizeof(who));
	values.slots[proc_values_slot(column)].text = name_of_string("0-3");
	who.proc_values = &values;
	event_list_add(&events, &calls, &who, 2);
	event_rows_fill(&events, &grid);
	assert_null(grid_row(&grid, 0)[13].text);
	assert_null(grid_row(&grid, 0)[14].text);
	assert_string_equal(grid_row(&grid, 1)[13].text, "0-3");
	assert_null(grid_row(&grid, 1)[14].text);
	grid_done(&grid);
	event_list_done(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_come_in_order, begin, end),
		cmocka_unit_test_setup_teardown(unwritten_ones_are_awaited_once, begin, end),
		cmocka_unit_test_setup_teardown(overwritten_ones_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(what_another_had_is_told_once, begin, end),
		cmocka_unit_test(longest_come_first),
		cmocka_unit_test(values_of_proc_are_not_behind_the_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
