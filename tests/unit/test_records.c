/* SPDX-License-Identifier: GPL-2.0-or-later */
/* the thread state array and the changed rings, as the sampler reads them from shared memory */
#include "unit.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "maps/changed_list.h"
#include "maps/scan_time_rows.h"
#include "maps/register_requester.h"
#include "maps/thread_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 10

struct scene {
	struct thread_state mapped[SLOTS], copy;
	struct thread_table table;
	struct thread_visitor visitor;
	uint32_t visited[4 * SLOTS];
	size_t visits;
	uint32_t passed_tid;
};

static bool scene_passes(void *to, const struct thread_state *record, uint32_t key)
{
	assert_int_equal(key, record->sched.tid - 100);
	return record->sched.tid == ((struct scene *)to)->passed_tid;
}

static void scene_visit(void *to, const struct thread_state *record)
{
	struct scene *scene = to;

	assert_int_equal(record->key, record->sched.tid - 100);
	scene->visited[scene->visits++] = record->sched.tid;
}

/* Slots 0 to 9 with threads 100 to 109, slot 3 free. */
static void scene_fill(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	for (uint32_t i = 0; i < SLOTS; i++)
		if (i != 3)
			scene->mapped[i].sched.tid = 100 + i;
	scene->table = (struct thread_table){.store = &thread_slots,
					     .entries_max = SLOTS,
					     .mapped = scene->mapped,
					     .mapped_bytes = sizeof(scene->mapped),
					     .records = &scene->copy};
	scene->visitor = (struct thread_visitor){scene_passes, scene_visit, scene};
}

static void walk_meets_all_once(void **state)
{
	struct scene scene;
	bool end;

	scene_fill(&scene);
	scene.passed_tid = 105;
	assert_int_equal(thread_table_walk(&scene.table, &scene.visitor, UINT32_MAX, &end), 0);
	assert_true(end);
	assert_int_equal(scene.visits, 8);
	for (size_t i = 0; i < scene.visits; i++) {
		assert_int_not_equal(scene.visited[i], 105);
		assert_true(!i || scene.visited[i] > scene.visited[i - 1]);
	}
}

static void walk_goes_on_where_it_ended(void **state)
{
	struct scene scene;
	bool end;

	scene_fill(&scene);
	for (int part = 0; part < 3; part++) {
		assert_int_equal(thread_table_walk(&scene.table, &scene.visitor, 4, &end), 0);
		assert_int_equal(end, part == 2);
	}
	assert_int_equal(scene.visits, 9);
	assert_int_equal(scene.visited[8], 109);
	thread_table_walk(&scene.table, &scene.visitor, 4, &end);
	assert_int_equal(scene.visited[9], 100);
	thread_table_rewind(&scene.table);
	thread_table_walk(&scene.table, &scene.visitor, UINT32_MAX, &end);
	assert_true(end);
	assert_int_equal(scene.visits, 9 + 3 + 9);
}

static void walk_ends_behind_the_last_used(void **state)
{
	static struct thread_state many[6000];
	struct scene scene;
	bool end;
	int parts = 0;

	scene_fill(&scene);
	scene.table.mapped = many;
	scene.table.mapped_bytes = sizeof(many);
	scene.table.entries_max = 6000;
	many[900].sched.tid = 1000;
	many[1800].sched.out_ns = 7; /* free again */
	many[2700].sched.tid = 2800;
	do {
		assert_int_equal(thread_table_walk(&scene.table, &scene.visitor, 100, &end), 0);
		parts++;
	} while (!end);
	assert_int_equal(scene.visits, 2);
	assert_int_equal(scene.visited[1], 2800);
	assert_true(parts >= 27 && parts <= 40);
	thread_table_walk(&scene.table, &scene.visitor, UINT32_MAX, &end);
	assert_true(end);
	assert_int_equal(scene.visits, 4);
}

static void torn_record_is_not_shown(void **state)
{
	struct scene scene;
	bool end;

	scene_fill(&scene);
	scene.mapped[4].sched.sequence_begun = 8; /* the record is being written */
	scene.mapped[4].sched.sequence_done = 7;
	thread_table_walk(&scene.table, &scene.visitor, UINT32_MAX, &end);
	assert_int_equal(scene.visits, 8);
	assert_int_equal(scene.table.torn_count, 1);
	scene.mapped[4].sched.sequence_done = 8;
	thread_table_visit(&scene.table, 4, &scene.visitor);
	assert_int_equal(scene.visited[8], 104);
}

static void no_record_is_none(void **state)
{
	struct scene scene;
	struct thread_state record;

	scene_fill(&scene);
	assert_int_equal(thread_table_get(&scene.table, 3, &record), -ENOENT);
	assert_int_equal(thread_table_get(&scene.table, SLOTS, &record), -ENOENT);
	assert_int_equal(thread_table_get(&scene.table, UINT32_MAX, &record), -ENOENT);
	assert_int_equal(thread_table_get(&scene.table, 9, &record), 0);
}

/* --- */

#define CPUS 2

struct listed {
	uint32_t keys[4 * CHANGED_MAX];
	size_t count;
};

static void listed_add(void *to, uint32_t key)
{
	struct listed *listed = to;

	listed->keys[listed->count++] = key;
}

static void ring_add(struct changed_ring *ring, uint32_t key)
{
	ring->keys[ring->count++ % CHANGED_MAX] = key;
}

static struct changed_reader reader_of(struct sampling *sampling, struct changed_ring *rings,
				       uint64_t *taken)
{
	return (struct changed_reader){.sampling_map = 0,
				       .changed_map = 0,
				       .cpus = CPUS,
				       .sampling = sampling,
				       .rings = rings,
				       .taken = taken};
}

static void rings_are_read_by_all(void **state)
{
	static struct changed_ring rings[CPUS];
	static struct listed one, other;
	uint64_t one_taken[CPUS] = {0}, other_taken[CPUS] = {0};
	struct sampling sampling = {.scan = 7};
	struct changed_reader reader = reader_of(&sampling, rings, one_taken),
			      second = reader_of(&sampling, rings, other_taken);

	ring_add(&rings[0], 1);
	assert_false(
		changed_reader_take(&reader, listed_add, &one)); /* earlier threads are not known */
	assert_int_equal(sampling.scan, 8);
	one.count = 0;
	ring_add(&rings[0], 2);
	ring_add(&rings[1], 3);
	assert_true(changed_reader_take(&reader, listed_add, &one));
	assert_int_equal(one.count, 2);
	assert_int_equal(one.keys[0], 2);
	assert_int_equal(one.keys[1], 3);
	assert_false(changed_reader_take(&second, listed_add, &other));
	ring_add(&rings[1], 4);
	one.count = other.count = 0;
	assert_true(changed_reader_take(&second, listed_add, &other));
	assert_true(changed_reader_take(&reader, listed_add, &one));
	assert_int_equal(one.count, 1);
	assert_int_equal(other.count, 1);
	assert_int_equal(other.keys[0], 4);
}

static void row_add(struct scan_time_ring *ring, uint32_t key, uint64_t out_ns)
{
	struct scan_time_row *row = &ring->rows[ring->count++ % SCAN_TIME_ROWS_MAX];

	*row = (struct scan_time_row){.key = key};
	row->sched.out_ns = out_ns;
	row->sched.sequence_done = 4;
	row->sched.sequence_begun = 5; /* kept during a switch in */
}

static void scan_time_is_kept(void **state)
{
	static struct scan_time_ring rings[CPUS];
	struct sampling sampling = {0};
	struct scan_time_rows none = {0},
			      rows = {.sampling = &sampling, .rings = rings, .cpus = CPUS};
	struct thread_state record = {.key = 9, .call_ns = 3};
	struct index found = {0};
	const uint64_t *row;

	assert_false(scan_time_end(&none, &found));
	row_add(&rings[0], 7, 1); /* row of the previous scan time */
	scan_time_begin(&rows, clock_monotonic_ns() - 1);
	row_add(&rings[1], 9, 100);
	assert_true(scan_time_end(&rows, &found));
	assert_int_equal(sampling.scan_time_ns, 0);
	assert_null(index_find(&found, 7));
	row = index_find(&found, 9);
	assert_non_null(row);
	record.sched.out_ns = 200;
	scan_time_restore((const struct scan_time_row *)(uintptr_t)*row, &record);
	assert_int_equal(record.sched.out_ns, 100);
	assert_int_equal(record.sched.sequence_begun, 4);
	assert_int_equal(record.key, 9);
	assert_int_equal(record.call_ns, 0);
	index_clear(&found);
}

static void scan_time_that_is_not_whole_is_none(void **state)
{
	static struct scan_time_ring rings[CPUS];
	struct sampling sampling = {0};
	struct scan_time_rows rows = {.sampling = &sampling, .rings = rings, .cpus = CPUS};
	struct index found = {0};

	scan_time_begin(&rows, clock_monotonic_ns() - 2 * SCAN_TIME_OPEN_NS);
	assert_false(scan_time_end(&rows, &found));
	scan_time_begin(&rows, clock_monotonic_ns());
	for (uint32_t i = 0; i <= SCAN_TIME_ROWS_MAX; i++)
		row_add(&rings[1], i, 1);
	assert_false(scan_time_end(&rows, &found));
	index_clear(&found);
}

static void ring_that_overflowed_tells(void **state)
{
	static struct changed_ring rings[CPUS];
	static struct listed listed;
	uint64_t taken[CPUS] = {0};
	struct sampling sampling = {0};
	struct changed_reader reader = reader_of(&sampling, rings, taken);

	changed_reader_take(&reader, listed_add, &listed);
	for (uint32_t i = 0; i < CHANGED_MAX - 1; i++)
		ring_add(&rings[1], i);
	assert_true(changed_reader_take(&reader, listed_add, &listed));
	assert_int_equal(listed.count, CHANGED_MAX - 1);
	for (uint32_t i = 0; i <= CHANGED_MAX; i++)
		ring_add(&rings[1], i);
	assert_false(changed_reader_take(&reader, listed_add, &listed));
	listed.count = 0;
	ring_add(&rings[1], 5);
	assert_true(changed_reader_take(&reader, listed_add, &listed));
	assert_int_equal(listed.count, 1);
}

/* --- */

static void registers_are_of_the_last_switch_out(void **state)
{
	static const struct {
		unsigned int known, on_cpu;
		uint64_t done, registers;
		bool there;
	} rows[] = {
		{SCHED_SWITCHED_OUT, 0, 8, 8, true}, {SCHED_SWITCHED_OUT, 0, 8, 6, false},
		{SCHED_SWITCHED_OUT, 1, 9, 8, true}, {SCHED_SWITCHED_OUT, 1, 9, 9, false},
		{SCHED_SEEDED, 0, 0, 0, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct thread_state record = {.sched = {.known = rows[i].known,
							.on_cpu = rows[i].on_cpu,
							.sequence_done = rows[i].done,
							.registers_sequence = rows[i].registers}};

		assert_int_equal(registers_there(&record), rows[i].there);
	}
}

/* A thread that is off its CPU, also one that has not run since tsnap began. */
static void registers_that_can_be_asked_for(void **state)
{
	static const struct {
		unsigned int known, on_cpu;
		uint64_t done, registers, kernel_stack;
		bool lacking;
	} rows[] = {
		{SCHED_SWITCHED_OUT, 0, 8, 6, 1, true},	 {SCHED_SWITCHED_OUT, 0, 8, 8, 1, false},
		{SCHED_SWITCHED_OUT, 1, 9, 6, 1, false}, {SCHED_SWITCHED_OUT, 0, 8, 6, 0, false},
		{SCHED_SEEDED, 0, 0, 0, 1, true},	 {SCHED_SEEDED, 0, 0, 0, 0, false},
		{SCHED_SEEDED, 1, 0, 0, 1, false},	 {0, 0, 0, 0, 1, false},
	};
	const struct register_requester requester = {.program = 1}, none = {.program = -1};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct thread_state record = {.kernel_stack = rows[i].kernel_stack,
					      .sched = {.known = rows[i].known,
							.on_cpu = rows[i].on_cpu,
							.sequence_done = rows[i].done,
							.registers_sequence = rows[i].registers}};

		assert_int_equal(registers_lacking(&requester, &record), rows[i].lacking);
		assert_false(registers_lacking(&none, &record));
	}
}

/* Registers that were requested of a sleeper come with its record until it runs, and not with
 * another thread's. */
static void registers_are_recalled(void **state)
{
	static const struct {
		uint64_t start_ns, done;
		bool on_cpu, there;
	} rows[] = {
		{1000, 24, false, true},  {1000, 25, true, false}, {1000, 26, false, false},
		{2000, 24, false, false}, {0, 0, false, false},
	};
	struct requested_registers requested[SLOTS] = {
		[1] = {.episode = 1024, .registers = {7, 8}}};
	struct scene scene;
	struct thread_state record;

	scene_fill(&scene);
	scene.table.requested = requested;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t slot = 0; slot < 2; slot++) {
			scene.mapped[slot].identity.start_boot_ns = rows[i].start_ns;
			scene.mapped[slot].sched.sequence_done = rows[i].done;
			scene.mapped[slot].sched.on_cpu = rows[i].on_cpu;
			scene.mapped[slot].sched.known = SCHED_SEEDED;
			assert_int_equal(thread_table_get(&scene.table, slot, &record), 0);
			assert_int_equal(registers_there(&record), rows[i].there && slot);
			if (registers_there(&record))
				assert_int_equal(record.sched.registers[1], 8);
		}
	scene.mapped[1].identity.start_boot_ns = 1000;
	scene.mapped[1].sched.sequence_done = 24;
	scene.table.requested = memory_get(sizeof(requested));
	memcpy(scene.table.requested, requested, sizeof(requested));
	thread_table_forget(&scene.table);
	assert_int_equal(thread_table_get(&scene.table, 1, &record), 0);
	assert_false(registers_there(&record));
}

static void all_slots_become_free(void **state)
{
	int stack = bpf_call_map(BPF_MAP_TYPE_STACK, 0, sizeof(uint32_t), SLOTS);
	struct scene scene;
	uint32_t slot;

	if (stack < 0)
		skip();
	scene_fill(&scene);
	scene.table.maps.free = stack;
	assert_int_equal(thread_table_clear(&scene.table), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(bpf_call_pop(stack, &slot), 0);
		assert_int_equal(slot, i);
	}
	assert_int_equal(bpf_call_pop(stack, &slot), -ENOENT);
	/* more slots than the map has */
	scene.table.entries_max = SLOTS + 1;
	assert_int_equal(thread_table_clear(&scene.table), -E2BIG);
	close(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk_meets_all_once),
		cmocka_unit_test(walk_goes_on_where_it_ended),
		cmocka_unit_test(walk_ends_behind_the_last_used),
		cmocka_unit_test(torn_record_is_not_shown),
		cmocka_unit_test(no_record_is_none),
		cmocka_unit_test(rings_are_read_by_all),
		cmocka_unit_test(ring_that_overflowed_tells),
		cmocka_unit_test(scan_time_is_kept),
		cmocka_unit_test(scan_time_that_is_not_whole_is_none),
		cmocka_unit_test(registers_are_of_the_last_switch_out),
		cmocka_unit_test(registers_that_can_be_asked_for),
		cmocka_unit_test(registers_are_recalled),
		cmocka_unit_test(all_slots_become_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
