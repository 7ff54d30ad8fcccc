/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of records into samples, without a kernel: scans of an array in plain memory.
 *
 * scan_path active|all SCANS: SCANS scans at 20 Hz of 20 000 sleeping threads and 50 in D, with the
 * default columns, of active threads or of all; prints samples a scan. tests/budget counts the
 * instructions.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "live/scan/live_state.h"
#include "report/column_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define SLEEPERS 20000u
#define BUSY 50u
#define THREADS (SLEEPERS + BUSY)
#define PROCESS_THREADS 250u
#define TASK_INTERRUPTIBLE_BIT 0x1u
#define TASK_UNINTERRUPTIBLE_BIT 0x2u
#define PERIOD_NS (NS_PER_SECOND / 20)
#define FIRST_NS (1000 * NS_PER_SECOND)
#ifdef __x86_64__
#define CALL_NUMBER_WORD 11 /* orig_ax */
#else
#define CALL_NUMBER_WORD 7 /* syscallno */
#endif

static void record_make(struct thread_state *record, uint32_t slot)
{
	*record = (struct thread_state){
		.wake = {.wake_ns = 1, .waker_tid = 7},
		.sched = {.sequence_done = 3,
			  .sequence_begun = 3,
			  .registers_sequence = 3,
			  .out_ns = (uint64_t)FIRST_NS / 2,
			  .in_ns = (uint64_t)FIRST_NS / 2 - 1,
			  .state = slot < SLEEPERS ? TASK_INTERRUPTIBLE_BIT
						   : TASK_UNINTERRUPTIBLE_BIT,
			  .known = SCHED_SWITCHED_OUT,
			  .tid = 5000000 + slot}, /* above PID_MAX_LIMIT */
		.identity = {.start_boot_ns = slot + 1,
			     .tid = 5000000 + slot,
			     .tgid = 5000000 + slot / PROCESS_THREADS * PROCESS_THREADS,
			     .parent_tgid = 1,
			     .known = IDENTITY_NAME | IDENTITY_FULL},
		.key = slot,
	};
	snprintf(record->identity.comm, sizeof(record->identity.comm), "worker-%u", slot % 1000);
	record->sched.registers[CALL_NUMBER_WORD] = SYS_clock_nanosleep;
}

static void host_make(struct kernel *kernel)
{
	struct thread_table *table = &kernel->table;
	struct changed_reader *changed = &kernel->changed;

	compile_result_init(&kernel->compiled, 0);
	kernel->requester.program = kernel->requester.stack_program = -1;
	kernel->host.cpus = kernel->host.cpus_possible = 1;
	*table = (struct thread_table){
		.store = &thread_slots,
		.maps = {-1, -1, -1, false},
		.entries_max = THREADS,
		.mapped = memory_get((THREADS + 16) * sizeof(struct thread_state)),
		.mapped_bytes = THREADS * sizeof(struct thread_state),
		.records = memory_get(sizeof(struct thread_state)),
	};
	for (uint32_t slot = 0; slot < THREADS; slot++)
		record_make(&table->mapped[slot], slot);
	*changed = (struct changed_reader){
		.cpus = 1, /* maps are in memory, below: none is looked up */
		.sampling = memory_get(sizeof(struct sampling)),
		.rings = memory_get(sizeof(struct changed_ring)),
		.taken = memory_get(sizeof(uint64_t)),
	};
}

/* Replaces base/clock.c's clock (CMakeLists.txt): work with a time limit must not depend on whether
 * others use the CPU meanwhile. */
static int64_t scan_ns;

int64_t __wrap_clock_monotonic_ns(void);

int64_t __wrap_clock_monotonic_ns(void)
{
	return scan_ns;
}

static size_t taken;

static int batch_take(void *take_to, const struct scan *batch)
{
	(void)take_to;
	taken += batch->count;
	return 0;
}

static struct live *live_make(bool all, struct error *e)
{
	static struct filter filter;
	static struct column_list list;
	static struct live_capture capture;
	struct live *live = memory_get(sizeof(*live));

	if (column_list_add(&list, ROW_COLUMNS_DEFAULT, false, e))
		return NULL;
	filter.all_states = all;
	host_make(&live->context.kernel);
	live->context.config = (struct live_config){.rate_hz = 20};
	live->context.wants.filter = &filter;
	live->context.lookup = lookup_new("/nowhere");
	live->source.take = batch_take;
	live->context.wants.filter_needs = filter_needs(&filter);
	live->context.wants.needs = column_list_needs(&list) | live->context.wants.filter_needs;
	live->context.wants.idle = filter_wants_idle(&filter);
	live->context.wants.work = filter_wants_work(&filter);
	live->context.period_ns = PERIOD_NS;
	live->context.now.capture = &capture;
	live->host.context = &live->context;
	live_stacks_init(&live->stacks, &live->context, &live->source, live->batch.samples);
	capture.ticks = memory_get(sizeof(*capture.ticks));
	return live;
}

/* Makes a scan like sampler.c and live.c, in one thread. */
static int scan_make(struct live *live, struct capturer *capturer)
{
	int err;

	index_add(&capturer->awake, &live->walk.keys_next);
	capture_take(capturer, live->context.now.capture, scan_ns, true);
	live->context.now.scan_time = live->context.now.capture->scan_time;
	live->context.now.housekeeping =
		live->context.now.scan_time.now_ns - live->times.housekept_ns >= HOUSEKEEPING_NS;
	live->batch.scan = (struct scan){.samples = live->batch.samples, .weight_us = 50000};
	err = live_scan_read(live);
	taken += live->batch.scan.count;
	proc_values_pool_clear(&live->batch.proc_values);
	return err;
}

int main(int argc, char **argv)
{
	long scans = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	pthread_mutex_t requesting = PTHREAD_MUTEX_INITIALIZER;
	struct capturer capturer;
	struct error e = {0};
	struct live *live;

	if (scans <= 0 || (strcmp(argv[1], "active") && strcmp(argv[1], "all"))) {
		fprintf(stderr, "usage: scan_path active|all SCANS\n");
		return 2;
	}
	live = live_make(!strcmp(argv[1], "all"), &e);
	if (!live)
		return 1;
	capturer_init(
		&capturer,
		&(struct capture_wants){.kernel = &live->context.kernel,
					.cpu_stacks = &live->stacks.cpu.sampler,
					.kept = &live->stacks.kept.stacks,
					.filter = live->context.wants.filter,
					.all = live->context.wants.idle,
					.registers = live->context.wants.needs & NEED_SYSCALL},
		&live->realtime, &requesting);
	for (long scan = 0; scan < scans; scan++) {
		scan_ns = FIRST_NS + scan * PERIOD_NS;
		if (scan_make(live, &capturer))
			return 1;
	}
	return printf("%zu\n", taken / (size_t)scans) < 0;
}
