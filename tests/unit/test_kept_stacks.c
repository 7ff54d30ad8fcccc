/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks that switches kept, in rings filled by the test backwards, as by the kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/record.h"
#include "maps/kept_stacks.h"
#include "unit.h"

#define CPUS 2
#define RING_BYTES ((size_t)4 * CPU_RECORD_BYTES_MAX)
#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)
#define RECORD_WORDS 9 /* header, ids, time, chain of 2, raw of 3 */
#define MOMENT_NS 1000000
#define PERIOD_NS 50000000

struct rings {
	struct kept_stacks stacks;
	struct kept_taken taken;
	struct cpu_ring ring[CPUS];
	char *memory[CPUS];
};

static int rings_make(void **state)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	assert_non_null(rings);
	for (int i = 0; i < CPUS; i++) {
		rings->memory[i] = calloc(1, page + RING_BYTES);
		assert_non_null(rings->memory[i]);
		rings->ring[i] =
			(struct cpu_ring){.event = 0,
					  .page = (struct perf_event_mmap_page *)rings->memory[i],
					  .data_bytes = RING_BYTES};
	}
	rings->stacks.rings = rings->ring;
	rings->stacks.options.cpus_possible = CPUS;
	rings->stacks.options.window_map = -1;
	rings->stacks.attr.sample_type = CPU_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
	*state = rings;
	return 0;
}

static int rings_free(void **state)
{
	struct rings *rings = *state;

	for (int i = 0; i < CPUS; i++)
		free(rings->memory[i]);
	kept_taken_done(&rings->taken);
	free(rings);
	return 0;
}

/* Adds a record before all others, as the kernel does at a switch out. */
static void switch_out(struct rings *rings, int cpu, uint32_t tid, uint64_t sequence,
		       uint64_t time_ns)
{
	struct cpu_ring *ring = &rings->ring[cpu];
	char *data = rings->memory[cpu] + sysconf(_SC_PAGESIZE);
	struct kept_stack_id id = {.sequence = sequence, .tid = tid};
	uint64_t words[RECORD_WORDS] = {0}, head = ring->page->data_head - sizeof(words);
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(words)};
	uint32_t raw_bytes = 20;

	memcpy(&words[0], &header, sizeof(header));
	words[2] = time_ns;
	words[3] = 2;
	words[4] = KERNEL;
	words[5] = sequence * 100;
	memcpy(&words[6], &raw_bytes, sizeof(raw_bytes));
	memcpy((char *)&words[6] + sizeof(raw_bytes), &id, sizeof(id));
	for (size_t i = 0; i < sizeof(words); i++)
		data[(head + i) % RING_BYTES] = ((char *)words)[i];
	ring->page->data_head = head;
}

static void take_of(struct rings *rings, const struct kept_scan_time *scan_time)
{
	kept_stacks_seek(&rings->stacks, scan_time, &rings->taken);
	kept_stacks_copy(&rings->stacks, &rings->taken);
}

static void take(struct rings *rings, int64_t window_ns, int64_t scan_time_ns)
{
	rings->stacks.window_ns = window_ns;
	take_of(rings, &(struct kept_scan_time){
			       .now_ns = scan_time_ns, .cpus = CPUS, .period_ns = PERIOD_NS});
}

static void expect(const struct rings *rings, uint32_t tid, uint64_t sequence, bool there)
{
	struct cpu_sample sample;

	assert_int_equal(kept_stacks_find(&rings->stacks, &rings->taken, tid, sequence, &sample),
			 there);
	if (!there)
		return;
	assert_int_equal(sample.kernel_count, 1);
	assert_int_equal(sample.kernel[0], sequence * 100);
}

/* Little memory: only threads that ran at the scan time or shortly before it. */
static void short_of_memory(void **state)
{
	struct rings *rings = *state;
	const struct kept_scan_time scan_time = {
		.now_ns = 5000000, .short_of_memory = true, .cpus = CPUS, .period_ns = PERIOD_NS};

	switch_out(rings, 0, 10, 1, 3900000);
	switch_out(rings, 0, 11, 1, 4100000);
	switch_out(rings, 0, 12, 1, 5100000);
	take_of(rings, &scan_time);
	expect(rings, 10, 1, false);
	expect(rings, 11, 1, true);
	expect(rings, 12, 1, true);
}

/* The last switch out before the scan time and the first one after it are found of each thread. */
static void nearest_ones(void **state)
{
	struct rings *rings = *state;

	switch_out(rings, 0, 10, 1, 500);
	switch_out(rings, 0, 10, 3, 600);
	switch_out(rings, 0, 11, 7, 700);
	switch_out(rings, 0, 10, 5, MOMENT_NS + 1);
	switch_out(rings, 0, 10, 7, MOMENT_NS + 2);
	take(rings, 500, MOMENT_NS);
	expect(rings, 10, 3, true);
	expect(rings, 10, 5, true);
	expect(rings, 11, 7, true);
	/* other switches have no stack, and no other thread's is taken */
	expect(rings, 10, 1, false);
	expect(rings, 10, 7, false);
	expect(rings, 11, 3, false);
	expect(rings, 12, 7, false);
}

/* A thread that was switched out on two CPUs has the later stack. */
static void two_cpus(void **state)
{
	struct rings *rings = *state;

	switch_out(rings, 0, 10, 3, 900);
	switch_out(rings, 1, 10, 1, 800);
	switch_out(rings, 0, 11, 1, 800);
	switch_out(rings, 1, 11, 3, 900);
	take(rings, 0, MOMENT_NS);
	expect(rings, 10, 3, true);
	expect(rings, 10, 1, false);
	expect(rings, 11, 3, true);
	expect(rings, 11, 1, false);
}

/* Records that the kernel has overwritten between the two steps are not found. */
static void overwritten(void **state)
{
	struct rings *rings = *state;
	const struct kept_scan_time scan_time = {
		.now_ns = MOMENT_NS, .cpus = CPUS, .period_ns = PERIOD_NS};

	switch_out(rings, 0, 10, 1, 100);
	switch_out(rings, 1, 11, 1, 100);
	kept_stacks_seek(&rings->stacks, &scan_time, &rings->taken);
	assert_true(kept_stacks_known(&rings->taken, 10, 1));
	assert_true(kept_stacks_known(&rings->taken, 11, 1));
	assert_false(kept_stacks_known(&rings->taken, 11, 3));
	for (uint64_t i = 0; i < RING_BYTES / 8 / RECORD_WORDS; i++)
		switch_out(rings, 0, 12, i, 200);
	kept_stacks_copy(&rings->stacks, &rings->taken);
	expect(rings, 10, 1, false);
	expect(rings, 11, 1, true);
}

/* Records that an earlier window left in a ring do not belong to this one. */
static void earlier_windows(void **state)
{
	struct rings *rings = *state;

	switch_out(rings, 0, 10, 1, 100);
	take(rings, 0, 200);
	expect(rings, 10, 1, true);
	switch_out(rings, 0, 11, 1, 400);
	take(rings, 300, 500);
	expect(rings, 10, 1, false);
	expect(rings, 11, 1, true);
	take(rings, 600, 700);
	expect(rings, 11, 1, false);
}

/* Records that the kernel may be overwriting, the oldest ones of a full ring, are not read. */
static void full_rings(void **state)
{
	struct rings *rings = *state;
	const uint32_t fit = (uint32_t)((RING_BYTES - CPU_RECORD_BYTES_MAX) / (8ul * RECORD_WORDS));

	for (uint32_t tid = 1; tid <= 10 * fit; tid++)
		switch_out(rings, 0, tid, 1, tid);
	take(rings, 1, MOMENT_NS);
	expect(rings, 10 * fit, 1, true);
	expect(rings, 9 * fit + 1, 1, true);
	expect(rings, 9 * fit, 1, false);
	assert_true(rings->stacks.cut_short);
}

/* Invalid records end the reading, as their sizes can't be trusted. */
static void broken_records(void **state)
{
	struct rings *rings = *state;
	char *data = rings->memory[0] + sysconf(_SC_PAGESIZE);
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE};

	for (uint32_t size = 0; size <= 8 * RECORD_WORDS; size++) {
		switch_out(rings, 0, 10, 1, 100);
		switch_out(rings, 0, 11, 1, 200);
		header.size = (uint16_t)(size == 8 * RECORD_WORDS ? UINT16_MAX : size);
		memcpy(data + rings->ring[0].page->data_head % RING_BYTES, &header, sizeof(header));
		take(rings, 0, MOMENT_NS);
		expect(rings, 11, 1, false);
	}
}

/* The window grows if there are few switches in it, to a part of the period, and shrinks again. */
static void windows(void **state)
{
	struct rings *rings = *state;
	int64_t before_ns = kept_stacks_lead_ns(&rings->stacks);
	struct kept_stacks closed = {0};

	assert_int_equal(kept_stacks_lead_ns(&closed), 0);
	assert_int_equal(before_ns, 1000000);
	for (int i = 0; i < 20; i++)
		take(rings, 0, MOMENT_NS);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), PERIOD_NS / 5);
	for (uint32_t tid = 1; tid <= 640; tid++)
		switch_out(rings, 0, tid, 1, tid);
	take(rings, 1, MOMENT_NS);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), PERIOD_NS / 5 / 10);
	/* twice as many count as few if records are lost elsewhere */
	rings->stacks.lead_ns = PERIOD_NS / 5;
	take_of(rings, &(struct kept_scan_time){.now_ns = MOMENT_NS,
						.lost_lately = true,
						.cpus = CPUS,
						.period_ns = PERIOD_NS});
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), PERIOD_NS / 5 / 5);
	for (int i = 0; i < 20; i++)
		take(rings, 1, MOMENT_NS);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), before_ns);
	/* more than the ring's capacity: their number is not known */
	for (int i = 0; i < 20; i++)
		take(rings, MOMENT_NS, MOMENT_NS);
	for (uint32_t tid = 1; tid <= RING_BYTES / 8 / RECORD_WORDS; tid++)
		switch_out(rings, 0, tid, 1, MOMENT_NS);
	take(rings, MOMENT_NS, MOMENT_NS);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), PERIOD_NS / 5 / 2);
}

/* A thousand scans a second: windows are as small a part of the time, and let as few through. */
static void windows_of_fast_scans(void **state)
{
	struct rings *rings = *state;
	const int64_t period_ns = 1000000;
	const struct kept_scan_time scan_time = {
		.now_ns = MOMENT_NS, .cpus = CPUS, .period_ns = period_ns};

	for (int i = 0; i < 20; i++)
		take_of(rings, &scan_time);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), period_ns / 5);
	for (uint32_t tid = 1; tid <= 64; tid++)
		switch_out(rings, 0, tid, 1, tid);
	rings->stacks.window_ns = 1;
	take_of(rings, &scan_time);
	assert_int_equal(kept_stacks_lead_ns(&rings->stacks), period_ns / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nearest_ones, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(short_of_memory, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(two_cpus, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(overwritten, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(earlier_windows, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(full_rings, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(broken_records, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(windows, rings_make, rings_free),
		cmocka_unit_test_setup_teardown(windows_of_fast_scans, rings_make, rings_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
