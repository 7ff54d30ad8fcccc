/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_sample, live_totals, registers: the state of a thread at one time, from its record */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/registers.h"
#include "live/threads/live_totals.h"
#include "proc/lookup_hint.h"

#define US 1000ull

/* A scan time of 1000 us on two CPUs, which a look saw idle long ago. */
struct scene {
	struct cpu_tick ticks[2];
	struct live_scan_time scan_time;
	struct thread_state record;
};

static struct scene scene_make(void)
{
	struct scene scene = {
		.record.identity = {.tid = 7, .tgid = 5, .comm = "worker", .known = 3}};

	scene.scan_time.now_ns = 1000 * US;
	scene.scan_time.tick_count = 2;
	scene.scan_time.registers_known = true;
	scene.record.sched.known = SCHED_SWITCHED_OUT;
	scene.record.sched.sequence_done = 4;
	scene.record.sched.registers_sequence = 4;
	return scene;
}

static enum thread_state_kind state_of(struct scene *scene, bool *ambiguous)
{
	scene->scan_time.ticks = scene->ticks;
	return record_state(&scene->record, &scene->scan_time, ambiguous);
}

/* Rows: times of in, out, wake in us; then the thread's state at 1000 us, and since when. */
static void records_are_of_one_scan_time(void **state)
{
	static const struct {
		unsigned int on_cpu, bits, in, out, wake;
		enum thread_state_kind kind;
		int since;
		bool ambiguous;
	} rows[] = {
		{1, 0x1, 900, 500, 890, STATE_ON, 900, false},
		{0, 0x0, 900, 950, 890, STATE_RQ, 950, false}, /* preempted */
		{0, 0x1, 900, 950, 890, STATE_SLEEP, 950, false},
		{0, 0x1, 900, 950, 960, STATE_RQ, 960, false},	 /* woken since then */
		{0, 0x1, 900, 950, 920, STATE_SLEEP, 950, true}, /* woken on its way to sleep */
		{0, 0x2, 900, 950, 0, STATE_DISK, 950, false},
		{0, 0x102, 900, 950, 0, STATE_DISK, 950, false}, /* killable */
		{0, 0x402, 900, 950, 0, STATE_IDLE, 950, false},
		{0, 0x2001, 900, 950, 0, STATE_SLEEP, 950, false}, /* freezable */
		{0, 0x2402, 900, 950, 0, STATE_IDLE, 950, false},
		{0, 0x4, 900, 950, 0, STATE_STOPPED, 950, false},
		{0, 0x8, 900, 950, 0, STATE_STOPPED, 950, false},
		{0, 0x40, 900, 950, 0, STATE_PARKED, 950, false},
		{0, 0x8000, 900, 950, 0, STATE_DISK, 950, false}, /* frozen */
		{0, 0x200, 900, 950, 0, STATE_RQ, 950, false},	  /* waking */
		/* switches and wake-ups after the scan time */
		{1, 0x1, 1010, 500, 1005, STATE_SLEEP, 500, false}, /* asleep then */
		{1, 0x1, 1010, 500, 990, STATE_RQ, 990, false},
		{1, 0x0, 1010, 500, 400, STATE_RQ, 500, false},
		{0, 0x1, 900, 1010, 890, STATE_ON, 900, false},
		{0, 0x1, 900, 950, 1001, STATE_SLEEP, 950, false},
		{0, 0x1, 1010, 1020, 990, STATE_RQ, 1000, false}, /* switched in and out */
		{0, 0x1, 1010, 1020, 1005, STATE_SLEEP, 1000, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scene scene = scene_make();
		struct sample sample;
		bool ambiguous;
		enum thread_state_kind kind;

		scene.record.sched.on_cpu = rows[i].on_cpu;
		scene.record.sched.state = rows[i].bits;
		scene.record.sched.in_ns = rows[i].in * US;
		scene.record.sched.out_ns = rows[i].out * US;
		scene.record.wake.wake_ns = rows[i].wake * US;
		kind = state_of(&scene, &ambiguous);
		record_sample(&scene.record, &scene.scan_time, kind, &sample);
		if (kind != rows[i].kind || ambiguous != rows[i].ambiguous ||
		    sample.now.state_us != 1000 - rows[i].since)
			fail_msg("row %zu: %s, %s, for %lld us", i, state_row(kind)->name,
				 ambiguous ? "ambiguous" : "sure", (long long)sample.now.state_us);
	}
}

static void zombies_stay_zombies(void **state)
{
	struct scene scene = scene_make();
	bool ambiguous;

	scene.record.sched.exit_state = 0x20;
	scene.record.sched.state = 0x80;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ZOMBIE);
}

static void displaced_thread_is_on(void **state)
{
	struct scene scene = scene_make();
	bool ambiguous;

	scene.record.sched.in_ns = 800 * US;
	scene.record.sched.out_ns = scene.scan_time.own_in_ns = 990 * US;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	scene.record.sched.state = 1; /* the thread went to sleep, and the sampler ran after it */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_SLEEP);
	scene.scan_time.own_wake_ns = 850 * US; /* the thread ran on when the sampler was due */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	scene.scan_time.own_wake_ns = 750 * US; /* another thread ran then */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_SLEEP);
}

/* The sampler's timer interrupt ends sleeps that would have ended some microseconds later. */
static void wakes_of_the_same_interrupt_are_later(void **state)
{
	struct scene scene = scene_make();
	bool ambiguous;

	scene.scan_time.own_wake_ns = 970 * US;
	scene.scan_time.own_in_ns = 990 * US;
	scene.scan_time.own_cpu = scene.record.sched.cpu = 1;
	scene.record.sched.state = 1;
	scene.record.sched.in_ns = 800 * US;
	scene.record.sched.out_ns = 900 * US;
	scene.record.wake.wake_ns = 975 * US;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_SLEEP);
	scene.record.sched.cpu = 0; /* wake-up on another CPU */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_RQ);
	scene.record.sched.cpu = 1;
	scene.record.wake.wake_ns = 965 * US; /* wake-up before the interrupt */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_RQ);
	scene.record.wake.wake_ns = 995 * US; /* wake-up after the interrupt */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_RQ);
	scene.scan_time.own_wake_ns = 700 * US; /* the sampler waited for its CPU */
	scene.record.wake.wake_ns = 975 * US;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_RQ);
}

static void looks_tell_missed_switches(void **state)
{
	struct scene scene = scene_make();
	bool ambiguous;

	scene.record.sched.on_cpu = 1;
	scene.record.sched.in_ns = 800 * US;
	scene.record.sched.cpu = 1;
	scene.ticks[1] = (struct cpu_tick){.tick_ns = 900 * US, .tid = 7};
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	assert_false(ambiguous);
	scene.ticks[1].tid = 8;
	state_of(&scene, &ambiguous);
	assert_true(ambiguous);
	scene.record.sched.out_ns = 100 * US; /* of a sleep before it came */
	assert_int_equal(record_state_us(&scene.record, &scene.scan_time, STATE_SLEEP), 200);
	scene.record.wake.wake_ns = 500 * US; /* the wake-up that it came by */
	assert_int_equal(record_state_us(&scene.record, &scene.scan_time, STATE_RQ), 200);
	scene.record.wake.wake_ns = 900 * US;
	assert_int_equal(record_state_us(&scene.record, &scene.scan_time, STATE_RQ), 100);
	scene.ticks[1].tick_ns = 700 * US; /* before the thread came */
	state_of(&scene, &ambiguous);
	assert_false(ambiguous);
	scene.record.sched.cpu = 99; /* hotplugged CPU beyond the known ones */
	state_of(&scene, &ambiguous);
	assert_false(ambiguous);
}

static void nothing_runs_on_a_cpu_that_is_offline(void **state)
{
	const unsigned char offline[2] = {0, 1};
	struct scene scene = scene_make();
	struct live_totals totals;
	bool ambiguous;

	scene.record.sched.on_cpu = 1;
	scene.record.sched.in_ns = 800 * US;
	scene.record.sched.sequence_done = 1;
	scene.record.sched.cpu = 1;
	state_of(&scene, &ambiguous);
	assert_false(ambiguous);
	scene.scan_time.offline = offline;
	scene.scan_time.offline_count = 2;
	state_of(&scene, &ambiguous);
	assert_true(ambiguous);
	record_totals(&scene.record, &scene.scan_time, STATE_PARKED, &totals);
	assert_int_equal(totals.cpu_ns, scene.record.sched.cpu_ns);
	scene.record.sched.cpu = 0;
	state_of(&scene, &ambiguous);
	assert_false(ambiguous);
}

static void later_arrivals_tell_missed_switches(void **state)
{
	int64_t arrived_ns[2] = {950 * US, 800 * US};
	struct scene scene = scene_make();
	bool ambiguous;

	scene.scan_time.arrived_ns = arrived_ns;
	scene.scan_time.arrived_count = 2;
	scene.record.sched.on_cpu = 1;
	scene.record.sched.in_ns = 800 * US;
	scene.record.sched.cpu = 1;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	assert_false(ambiguous); /* the last arrival is the thread itself */
	arrived_ns[1] = 801 * US;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	assert_true(ambiguous);
	scene.record.sched.cpu = 2;
	state_of(&scene, &ambiguous);
	assert_false(ambiguous);
}

static void seeded_thread_runs_where_it_is_seen(void **state)
{
	struct scene scene = scene_make();
	bool ambiguous;

	scene.record.sched.known = SCHED_SEEDED;
	scene.record.sched.sequence_done = 0;
	scene.record.sched.on_cpu = 1;
	scene.record.sched.in_ns = scene.record.sched.out_ns = 800 * US;
	assert_int_equal(state_of(&scene, &ambiguous), STATE_RQ);
	scene.ticks[0] = (struct cpu_tick){.tick_ns = 900 * US, .tid = 7};
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
	scene.ticks[0].tid = 0;
	scene.scan_time.tick_count = 0; /* no look is possible */
	assert_int_equal(state_of(&scene, &ambiguous), STATE_ON);
}

static void kernel_threads_have_no_call(void **state)
{
	struct scene scene = scene_make();
	struct sample sample = *sample_absent();
	struct lookup_hint hint = {0};

	record_call(&scene.record, &scene.scan_time, STATE_SLEEP, &sample, &hint);
	assert_int_equal(sample.call.nr, 0); /* read(2): zero is not absent */
	assert_false(hint.no_call);
	sample = *sample_absent();
	scene.record.identity.task_flags = 0x200000;
	record_call(&scene.record, &scene.scan_time, STATE_SLEEP, &sample, &hint);
	assert_int_equal(sample.call.nr, ABSENT);
	assert_false(hint.no_call);
}

#ifdef __x86_64__
static void registers_are_decoded(void **state)
{
	uint64_t words[THREAD_REGISTER_COUNT];
	struct registers_call call;

	for (size_t i = 0; i < THREAD_REGISTER_COUNT; i++)
		words[i] = 104 + i; /* index of the word in pt_regs */
	words[11] = 202;	    /* orig_ax */
	words[13] = 0x33;	    /* cs */
	registers_decode(words, false, &call);
	assert_int_equal(call.nr, 202);
	assert_false(call.compat);
	assert_int_equal(call.arg[0], 114); /* di */
	assert_int_equal(call.arg[3], 107); /* r10 */
	assert_int_equal(registers_kept(words, 8000, 8100), REGISTERS_STACK);
	registers_decode(words, true, &call); /* no mark: a call by int 0x80 */
	assert_true(call.compat);
	words[7] = words[12]; /* cx = ip */
	assert_int_equal(registers_kept(words, 8000, 8100), REGISTERS_STACK | REGISTERS_MARKED);
	/* what an earlier entry left: another depth of the stack, before 4.0 in place of sp, cx */
	assert_int_equal(registers_kept(words, 8000, 80000), 0);
	assert_int_equal(registers_kept(words, 8200, 8100), 0);
	words[0] = 8100; /* bp */
	assert_int_equal(registers_kept(words, 8000, 8100),
			 REGISTERS_STACK | REGISTERS_MARKED | REGISTERS_PRESERVED);
	words[0] = 104;
	registers_decode(words, true, &call);
	assert_false(call.compat);
	words[13] = 0x10023; /* only the low half of cs counts */
	words[1] = 0xffffffff00000003;
	registers_decode(words, true, &call);
	assert_true(call.compat);
	assert_int_equal(call.arg[0], 3); /* bx, 32 bits of it */
	words[11] = (uint64_t)-1;
	registers_decode(words, true, &call);
	assert_int_equal(call.nr, -1);
	/* a program that has not begun; call 59 with arguments is oldolduname, by int 0x80 */
	memset(words, 0, sizeof(words));
	words[11] = 59;
	words[12] = 0x401000;
	words[13] = 0x33;
	registers_decode(words, true, &call);
	assert_int_equal(call.nr, 59);
	assert_false(call.compat);
	words[13] = 0x23; /* a program of 32 bits, executed by one of 64 */
	registers_decode(words, true, &call);
	assert_false(call.compat);
	words[13] = 0x33;
	words[1] = 0x1000; /* bx */
	registers_decode(words, true, &call);
	assert_true(call.compat);
}
#elif defined(__aarch64__)
/* Captured on 6.1: words of the record, and what /proc/TID/syscall showed meanwhile. */
static void registers_are_decoded(void **state)
{
	static const struct {
		uint64_t words[THREAD_REGISTER_COUNT];
		struct registers_call call;
	} rows[] = {
		/* epoll_pwait(3, ...) */
		{{0xaaaacf8616c0, 8, UINT64_MAX, 0, 8, 0x1000, 3, 0x16},
		 {22, {3, 0xaaaacf8616c0, 8, UINT64_MAX, 0, 8}, false}},
		/* clone(0x4111, ...) of a vfork */
		{{0xffff85e1e8e0, 0, 0xffff85e1e950, 0xffff85e1e910, 0xfffffff8, 0x80001000, 0x4111,
		  0xdc},
		 {220,
		  {0x4111, 0xffff85e1e8e0, 0, 0xffff85e1e950, 0xffff85e1e910, 0xfffffff8},
		  false}},
		/* preempted in user mode */
		{{0, 0, 0xffffa55fe950, 0xffffa55fe910, 0xfffffff8, 0x1000, 0xffffa57f1b98,
		  0xffffffff},
		 {-1, {0xffffa57f1b98, 0, 0, 0xffffa55fe950, 0xffffa55fe910, 0xfffffff8}, false}},
		/* read(0, ...) of 32-bit code */
		{{0xffdc5d17, 1, 0, 0, 0, 0x800010, 0, 3}, {3, {0, 0xffdc5d17, 1, 0, 0, 0}, true}},
	};
	struct registers_call call;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t words[THREAD_REGISTER_COUNT];

		memcpy(words, rows[i].words, sizeof(words));
		assert_int_equal(registers_kept(words, 8000, 8100), REGISTERS_STACK);
		/* the mark exists on x86-64 only; above the number lies another member (6.13) */
		for (int marked = 0; marked < 2; marked++, words[7] |= 0xe0ull << 32) {
			registers_decode(words, marked, &call);
			assert_int_equal(call.nr, rows[i].call.nr);
			assert_int_equal(call.compat, rows[i].call.compat);
			assert_memory_equal(call.arg, rows[i].call.arg, sizeof(call.arg));
		}
		words[0] |= 0x5a5aull << 48; /* the upper half is not 32-bit code's */
		registers_decode(words, false, &call);
		assert_int_equal(call.arg[1] >> 48, call.compat ? 0 : words[0] >> 48);
	}
}
#endif

/* Two reads in a row: the look at the CPU may be of the second, the record of the first. */
static void calls_began_when_two_reads_agree(void **state)
{
	struct scene scene = scene_make();
	struct thread_state again;
	struct lookup_hint hint = {0};
	struct sample sample;

	scene.record.sched.on_cpu = 1;
	scene.record.sched.in_ns = 100 * US;
	scene.record.call_ns = 400 * US; /* entry to call 0, as the words of the look have it */
	scene.ticks[1] = (struct cpu_tick){.tick_ns = 1010 * US, .tid = 7};
	scene.scan_time.ticks = scene.ticks;
	again = scene.record;
	for (int changed = 0; changed < 2; changed++) {
		again.call_ns += (unsigned int)changed * 590 * US;
		sample = *sample_absent();
		record_call_check(&scene.record, &again);
		record_call(&scene.record, &scene.scan_time, STATE_ON, &sample, &hint);
		assert_int_equal(sample.call.nr, 0);
		assert_int_equal(sample.call.us, changed ? ABSENT : 600);
	}
	scene.record.call_ns = 400 * US;
	scene.ticks[1].tick_ns = 390 * US; /* tick of a clock, during an earlier call */
	sample = *sample_absent();
	record_call(&scene.record, &scene.scan_time, STATE_ON, &sample, &hint);
	assert_int_equal(sample.call.us, ABSENT);
}

/* A thread that was ON at the scan time, computing, and then left in a system call. */
static void who_left_is_told_by_a_look_before(void **state)
{
	const struct {
		uint64_t tick_ns;
		bool computing; /* computing according to the look, else as it left */
	} looks[] = {{1005 * US, true}, {1015 * US, false}, {995 * US, false}, {0, false}};
	struct scene scene = scene_make();
	struct lookup_hint hint = {0};
	struct sample sample;

	scene.record.sched.in_ns = 100 * US;
	scene.record.sched.out_ns = 1010 * US;
	scene.scan_time.ticks = scene.ticks;
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct cpu_tick tick = {.tick_ns = looks[i].tick_ns, .tid = 7};

		memset(tick.registers, 0xff, sizeof(tick.registers)); /* not in a call */
		scene.ticks[1] = tick;
		sample = *sample_absent();
		record_call(&scene.record, &scene.scan_time, STATE_ON, &sample, &hint);
		assert_int_equal(sample.call.nr == ABSENT, looks[i].computing);
		assert_int_equal(hint.no_call, looks[i].computing);
	}
}

static void totals_grow_by_the_present_state(void **state)
{
	struct scene scene = scene_make();
	struct live_totals totals;

	scene.record.sched.cpu_ns = 10 * US;
	scene.record.sched.in_ns = 900 * US;
	scene.record.sched.out_ns = 800 * US;
	scene.record.sched.on_cpu = 1;
	record_totals(&scene.record, &scene.scan_time, STATE_ON, &totals);
	assert_int_equal(totals.cpu_ns, 110 * US);
	scene.record.sched.on_cpu = 0;
	scene.record.sched.out_ns = 950 * US;
	scene.record.sched.state = 2;
	record_totals(&scene.record, &scene.scan_time, STATE_DISK, &totals);
	assert_int_equal(totals.disk_ns, 50 * US);
	assert_int_equal(totals.cpu_ns, 10 * US);
	scene.record.wake.wake_ns = 970 * US;
	record_totals(&scene.record, &scene.scan_time, STATE_RQ, &totals);
	assert_int_equal(totals.disk_ns, 20 * US);
	assert_int_equal(totals.runq_ns, 30 * US);
	assert_int_equal(totals.sleep_ns, 0);
	scene.record.wake.wake_ns = 949 * US; /* on its way out: it never slept */
	record_totals(&scene.record, &scene.scan_time, STATE_RQ, &totals);
	assert_int_equal(totals.disk_ns, 0);
	assert_int_equal(totals.runq_ns, 50 * US);
	scene.record.sched.in_ns = 100 * US;
	scene.record.wake.wake_ns = 849 * US; /* it ran on, and what woke it later was not seen */
	record_totals(&scene.record, &scene.scan_time, STATE_RQ, &totals);
	assert_int_equal(totals.disk_ns, 50 * US);
	assert_int_equal(totals.runq_ns, 0);
}

static void totals_are_given_out_once(void **state)
{
	struct totals_table table = {0};
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1};
	struct live_totals now = {.cpu_ns = 2500, .voluntary_count = 3};

	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.cpu_us, 2);
	assert_int_equal(sample.sums.vcsw, 3);
	now.cpu_ns = 3100; /* 0.5 us were left over */
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.cpu_us, 1);
	assert_int_equal(sample.sums.vcsw, 0);
	now.cpu_ns = 100; /* never less than before */
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.cpu_us, 0);
	sample.thread.start_ns = 2; /* another thread with that tid */
	now.cpu_ns = 5000;
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.cpu_us, 5);
	totals_done(&table);
}

/* Totals of a scan that was copied before an account and is processed after it. */
static void totals_of_before_are_not_told(void **state)
{
	struct totals_table table = {0};
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1},
		      gone = {.thread.tid = 8, .thread.start_ns = 1};
	struct live_totals account = {.at_ns = 20, .cpu_ns = 5000, .voluntary_count = 3},
			   copied = {.at_ns = 10, .cpu_ns = 3000, .voluntary_count = 2},
			   later = {.at_ns = 30, .cpu_ns = 6000, .voluntary_count = 4};

	totals_take(&table, &account, &sample);
	assert_int_equal(sample.sums.cpu_us, 5);
	totals_take(&table, &copied, &sample);
	assert_int_equal(sample.sums.cpu_us, 0);
	assert_int_equal(sample.sums.vcsw, 0);
	totals_take(&table, &copied, &gone); /* the thread's end has been reported since */
	assert_int_equal(gone.sums.cpu_us, 0);
	totals_take(&table, &later, &sample);
	assert_int_equal(sample.sums.cpu_us, 1);
	assert_int_equal(sample.sums.vcsw, 1);
	totals_take(&table, &later, &gone);
	assert_int_equal(gone.sums.cpu_us, 6);
	totals_done(&table);
}

/* Totals of older copies: for a scan that is processed late a walk reads records that are younger
 * than the next scan's copies. A record that began anew is younger than both. */
static void totals_of_older_copies_are_not_told(void **state)
{
	struct totals_table table = {0};
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1};
	struct live_totals
		walked = {.at_ns = 10, .cpu_ns = 900000, .voluntary_count = 90, .switched_ns = 25},
		copied = {.at_ns = 20, .cpu_ns = 800000, .voluntary_count = 80, .switched_ns = 19},
		later = {.at_ns = 30, .cpu_ns = 950000, .voluntary_count = 95, .switched_ns = 29},
		anew = {.at_ns = 40, .cpu_ns = 3000, .voluntary_count = 1, .switched_ns = 39};

	totals_take(&table, &walked, &sample);
	assert_int_equal(sample.sums.cpu_us, 900);
	totals_take(&table, &copied, &sample);
	assert_int_equal(sample.sums.cpu_us, 0);
	assert_int_equal(sample.sums.vcsw, 0);
	totals_take(&table, &later, &sample);
	assert_int_equal(sample.sums.cpu_us, 50);
	assert_int_equal(sample.sums.vcsw, 5);
	totals_take(&table, &anew, &sample);
	assert_int_equal(sample.sums.cpu_us, 3);
	assert_int_equal(sample.sums.vcsw, 1);
	totals_done(&table);
}

/* Totals across a sweep: threads swept while scans wait in a queue may be in a scan that was copied
 * before. */
static void totals_go_on_over_a_sweep(void **state)
{
	struct totals_table table = {0};
	struct sample here = {.thread.tid = 7, .thread.start_ns = 1},
		      gone = {.thread.tid = 8, .thread.start_ns = 1};
	int64_t now_ns = clock_monotonic_ns();
	struct live_totals totals = {.at_ns = now_ns, .cpu_ns = 5000};

	totals_take(&table, &totals, &here);
	totals_take(&table, &totals, &gone);
	totals_unmark(&table);
	totals_mark(&table, here.thread.tid);
	totals_sweep(&table);
	totals.cpu_ns = 7000; /* scan of before the sweep */
	totals_take(&table, &totals, &here);
	assert_int_equal(here.sums.cpu_us, 2);
	totals_take(&table, &totals, &gone);
	assert_int_equal(gone.sums.cpu_us, 0);
	totals.at_ns = now_ns + NS_PER_SECOND * 60;
	totals_take(&table, &totals, &gone); /* another thread with the same number */
	assert_int_equal(gone.sums.cpu_us, 7);
	totals_done(&table);
}

static void totals_are_carried_over(void **state)
{
	struct totals_table table = {0};
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1},
		      later = {.thread.tid = 8, .thread.start_ns = 1};
	struct live_totals seeded = {.sleep_ns = 9000}, before = {.sleep_ns = 10000},
			   now = {.sleep_ns = 2000, .cpu_ns = 3000};

	totals_take(&table, &seeded, &sample);
	assert_int_equal(sample.sums.sleep_us, 9);
	totals_carry(&table, &before, &sample); /* slept on for 1 us, then began to count anew */
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.sleep_us, 3);
	assert_int_equal(sample.sums.cpu_us, 3);
	totals_carry(&table, &before, &later); /* not sampled before */
	totals_take(&table, &now, &later);
	assert_int_equal(later.sums.sleep_us, 12);
	totals_done(&table);
}

#define LATER_MS 1000000000000 /* time later than any record is read */

/* Makes totals of cpu, runq, disk, sleep in ms; until: their time. */
static struct live_totals totals_at(int64_t cpu, int64_t runq, int64_t disk, int64_t sleep,
				    int64_t until)
{
	return (struct live_totals){.cpu_ns = cpu * NS_PER_MS,
				    .runq_ns = runq * NS_PER_MS,
				    .disk_ns = disk * NS_PER_MS,
				    .sleep_ns = sleep * NS_PER_MS,
				    .until_ns = (LATER_MS + until) * NS_PER_MS};
}

static int64_t told_ms(const struct sample *sample)
{
	if (sample->sums.cpu_us == ABSENT)
		return -1;
	return (sample->sums.cpu_us + sample->sums.runq_us + sample->sums.dwait_us +
		sample->sums.sleep_us) /
	       1000;
}

/* Two takes of a thread that began at 1 s; the second is at 2 s. */
static void totals_add_up_or_are_absent(void **state)
{
	static const struct {
		int64_t totals[4], first, second, third; /* ms; third: at 3 s, having slept on */
	} rows[] = {
		{{200, 300, 0, 500}, 500, 500, 1000},
		{{0, 0, 0, 1005}, 500, 505, 995},  /* record read a little later */
		{{980, 0, 0, 500}, 500, -1, -1},   /* a switch that was not seen */
		{{0, 300, 0, 29000}, 500, -1, -1}, /* a sleep counted again and again */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct totals_table table = {.begun_ns = (LATER_MS + 1000) * NS_PER_MS};
		struct live_totals now = totals_at(0, 0, 0, 500, 1500);
		struct sample sample = {.thread.tid = 7, .thread.start_ns = 1};
		const int64_t *ms = rows[i].totals;

		totals_take(&table, &now, &sample);
		assert_int_equal(told_ms(&sample), rows[i].first);
		now = totals_at(ms[0], ms[1], ms[2], ms[3], 2000);
		totals_take(&table, &now, &sample);
		assert_int_equal(told_ms(&sample), rows[i].second);
		assert_int_equal(sample.sums.vcsw == ABSENT, rows[i].second < 0);
		assert_int_equal(table.hidden_count, rows[i].second < 0);
		now = totals_at(ms[0], ms[1], ms[2], ms[3] + 1000 - (i == 1 ? 5 : 0), 3000);
		totals_take(&table, &now, &sample);
		assert_int_equal(told_ms(&sample), rows[i].third);
		totals_done(&table);
	}
}

static void totals_are_held_back_for_a_while(void **state)
{
	struct totals_table table = {.begun_ns = (LATER_MS + 1000) * NS_PER_MS};
	struct live_totals now = totals_at(0, 0, 0, 500, 1500);
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1};

	totals_take(&table, &now, &sample);
	now = totals_at(0, 0, 0, 500, 2000);
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), -1);
	now = totals_at(1000, 0, 0, 500, 2500); /* the record was only read too early */
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), 1000);
	assert_int_equal(table.hidden_count, 0);
	now = totals_at(1000, 0, 0, 500, 13000); /* the missing time will never be known */
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), -1);
	assert_int_equal(table.hidden_count, 1);
	now = totals_at(1000, 1000, 0, 500, 14000);
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), 1000);
	assert_int_equal(table.hidden_count, 0);
	now.until_ns = 0; /* the thread is a zombie, for long */
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), 0);
	totals_done(&table);
}

/* The record was read 300 ms after the scan time, and has counted a switch since. */
static void totals_may_reach_beyond_the_scan_time(void **state)
{
	const int64_t first_ns = clock_monotonic_ns() - NS_PER_SECOND;
	struct totals_table table = {.begun_ns = first_ns - NS_PER_SECOND};
	struct live_totals now = {.cpu_ns = 1300 * NS_PER_MS, .until_ns = first_ns};
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1};

	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), 1300);
	now = (struct live_totals){.cpu_ns = 32 * NS_PER_SECOND,
				   .until_ns = first_ns + 31 * NS_PER_SECOND};
	totals_take(&table, &now, &sample);
	assert_int_equal(told_ms(&sample), 30700);
	assert_int_equal(table.hidden_count, 0);
	now = (struct live_totals){.cpu_ns = 32 * NS_PER_SECOND,
				   .until_ns = first_ns + 32 * NS_PER_SECOND};
	totals_take(&table, &now, &sample); /* no late read this time */
	assert_int_equal(told_ms(&sample), -1);
	totals_done(&table);
}

static void totals_are_not_older_than_tsnap(void **state)
{
	struct totals_table table = {.begun_ns = (LATER_MS + 1000) * NS_PER_MS};
	struct live_totals wild = totals_at(0, 20, 0, 1500, 2000),
			   late = totals_at(100, 0, 0, 0, 2000);
	struct sample sample = {.thread.tid = 7, .thread.start_ns = 1},
		      begun = {.thread.tid = 8, .thread.start_ns = 1};

	totals_take(&table, &wild, &sample);
	assert_int_equal(told_ms(&sample), -1);
	totals_take(&table, &late, &begun); /* the thread began 0.1 s ago */
	assert_int_equal(told_ms(&begun), 100);
	assert_int_equal(table.hidden_count, 1);
	totals_sweep(&table);
	totals_sweep(&table);
	assert_int_equal(table.hidden_count, 0);
	totals_done(&table);
}

static int tids_known(struct totals_table *table)
{
	int known = 0;

	for (uint64_t tid = 1; tid <= 3000; tid++)
		known += id_map_get(&table->rows_by_tid, tid) != 0;
	return known;
}

static void totals_forget_the_dead(void **state)
{
	struct totals_table table = {0};
	struct live_totals now = {.at_ns = INT64_MAX, .cpu_ns = 5000};

	for (int round = 0; round < 3; round++) {
		for (int64_t tid = 1; tid <= 1000; tid++) {
			struct sample sample = {.thread.tid = tid + round * 1000,
						.thread.start_ns = 1};

			totals_take(&table, &now, &sample);
			assert_int_equal(sample.sums.cpu_us, 5);
		}
		totals_mark(&table, 1);
		totals_sweep(&table); /* rows used since the last sweep stay */
		assert_int_equal(tids_known(&table), round ? 1001 : 1000);
		totals_mark(&table, 1);
		totals_mark(&table, 123456);
		totals_sweep(&table);
	}
	assert_int_equal(table.count, 1001); /* rows of exited threads were reused */
	struct sample sample = {.thread.tid = 1, .thread.start_ns = 1};
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.cpu_us, 0); /* the marked one was kept */
	totals_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_of_one_scan_time),
		cmocka_unit_test(zombies_stay_zombies),
		cmocka_unit_test(displaced_thread_is_on),
		cmocka_unit_test(wakes_of_the_same_interrupt_are_later),
		cmocka_unit_test(looks_tell_missed_switches),
		cmocka_unit_test(nothing_runs_on_a_cpu_that_is_offline),
		cmocka_unit_test(later_arrivals_tell_missed_switches),
		cmocka_unit_test(seeded_thread_runs_where_it_is_seen),
		cmocka_unit_test(kernel_threads_have_no_call),
		cmocka_unit_test(registers_are_decoded),
		cmocka_unit_test(calls_began_when_two_reads_agree),
		cmocka_unit_test(who_left_is_told_by_a_look_before),
		cmocka_unit_test(totals_grow_by_the_present_state),
		cmocka_unit_test(totals_are_given_out_once),
		cmocka_unit_test(totals_of_before_are_not_told),
		cmocka_unit_test(totals_of_older_copies_are_not_told),
		cmocka_unit_test(totals_go_on_over_a_sweep),
		cmocka_unit_test(totals_are_carried_over),
		cmocka_unit_test(totals_add_up_or_are_absent),
		cmocka_unit_test(totals_are_held_back_for_a_while),
		cmocka_unit_test(totals_may_reach_beyond_the_scan_time),
		cmocka_unit_test(totals_are_not_older_than_tsnap),
		cmocka_unit_test(totals_forget_the_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
