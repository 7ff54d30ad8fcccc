/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/register_asker.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/registers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ASKS_BYTES (ASKERS_MAX * sizeof(struct registers_ask))
#define STACK_ASKS_BYTES (ASKERS_MAX * sizeof(struct stack_ask))

_Static_assert(sizeof(struct registers_ask) % 8 == 0, "values of an array are rounded up to 8");

/* Takes a place that is free, or that of a sampler that is gone. */
static int place_take(struct register_asker *asker)
{
	uint32_t own = (uint32_t)getpid();

	for (uint32_t i = 0; i < ASKERS_MAX; i++) {
		uint32_t *place = &asker->asks[i].asker,
			 holder = __atomic_load_n(place, __ATOMIC_ACQUIRE);

		if (holder && (!kill((pid_t)holder, 0) || errno != ESRCH))
			continue;
		if (__atomic_compare_exchange_n(place, &holder, own, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			asker->number = i;
			return 0;
		}
	}
	return -EBUSY;
}

int register_asker_init(struct register_asker *asker, int program, int sampling_map, int asks_map)
{
	int err;

	*asker = (struct register_asker){.program = program, .stack_program = -1};
	if (program < 0)
		return 0;
	err = bpf_call_map_mapped(sampling_map, sizeof(*asker->sampling),
				  (void **)&asker->sampling);
	if (!err)
		err = bpf_call_map_mapped(asks_map, ASKS_BYTES, (void **)&asker->asks);
	if (!err)
		err = place_take(asker);
	if (err && asker->asks) { /* no place to give back */
		munmap(asker->asks, ASKS_BYTES);
		asker->asks = NULL;
	}
	return err;
}

int register_asker_add_stacks(struct register_asker *asker, int program, int asks_map)
{
	int err;

	if (program < 0 || !asker->asks)
		return 0;
	err = bpf_call_map_mapped(asks_map, STACK_ASKS_BYTES, (void **)&asker->stack_asks);
	if (!err)
		asker->stack_program = program;
	return err;
}

void register_asker_done(struct register_asker *asker)
{
	if (asker->asks) {
		__atomic_store_n(&asker->asks[asker->number].asker, 0, __ATOMIC_RELEASE);
		munmap(asker->asks, ASKS_BYTES);
	}
	if (asker->stack_asks)
		munmap(asker->stack_asks, STACK_ASKS_BYTES);
	if (asker->sampling)
		munmap(asker->sampling, sizeof(*asker->sampling));
	*asker = (struct register_asker){.program = -1, .stack_program = -1};
}

int64_t registers_want(struct register_asker *asker, int64_t until_ns)
{
	int64_t now_ns = clock_monotonic_ns();
	__u64 *until, before;

	if (!asker->sampling)
		return 0;
	until = &asker->sampling->registers_until_ns;
	before = __atomic_load_n(until, __ATOMIC_RELAXED);
	if (before < (__u64)now_ns)
		asker->since_ns = now_ns;
	while (before < (__u64)until_ns &&
	       !__atomic_compare_exchange_n(until, &before, (__u64)until_ns, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	return asker->since_ns;
}

void registers_want_no_more(struct register_asker *asker, int64_t until_ns)
{
	__u64 until = (__u64)until_ns;

	if (asker->sampling)
		__atomic_compare_exchange_n(&asker->sampling->registers_until_ns, &until,
					    (__u64)clock_monotonic_ns(), false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
}

void registers_want_from(struct register_asker *asker, int64_t from_ns)
{
	if (asker->sampling)
		__atomic_store_n(&asker->sampling->registers_from_ns, (__u64)from_ns,
				 __ATOMIC_SEQ_CST);
}

static uint64_t out_sequence(const struct thread_state *record)
{
	return record->sched.sequence_done - record->sched.on_cpu;
}

bool registers_there(const struct thread_state *record)
{
	return record->sched.known & SCHED_SWITCHED_OUT &&
	       record->sched.registers_sequence == out_sequence(record);
}

bool registers_lacking(const struct register_asker *asker, const struct thread_state *record)
{
	return asker->program >= 0 && record->kernel_stack && !record->sched.on_cpu &&
	       record->sched.known & (SCHED_SWITCHED_OUT | SCHED_SEEDED) &&
	       !registers_there(record);
}

/* One number for both, as a thread that begins after another has ended does so by more ns than that
 * one was switched. */
static uint64_t stay_of(const struct thread_state *record)
{
	return record->identity.start_boot_ns + out_sequence(record);
}

/* The registers of that switch out. */
static void registers_put(struct thread_state *record, const __u64 *registers)
{
	memcpy(record->sched.registers, registers, sizeof(record->sched.registers));
	record->sched.registers_sequence = out_sequence(record);
	record->sched.known |= SCHED_SWITCHED_OUT; /* before anybody looked, may be */
}

void registers_recall(const struct asked_registers *asked, struct thread_state *record)
{
	if (asked->stay && asked->stay == stay_of(record) && !record->sched.on_cpu)
		registers_put(record, asked->registers);
}

/* sequence: the thread's number before its registers were read. */
static void registers_take(struct thread_table *table, struct thread_state *record,
			   uint64_t sequence, const __u64 *registers)
{
	uint64_t out = out_sequence(record);
	struct thread_state now;

	if (thread_table_get(table, record->key, &now) ||
	    now.sched.sequence_begun != now.sched.sequence_done)
		return;
	if (registers_there(&now) && now.sched.registers_sequence == out)
		registers = now.sched.registers; /* kept when it came back */
	else if (record->sched.on_cpu || sequence != out || now.sched.sequence_done != out)
		return;
	registers_put(record, registers);
	if (!table->asked)
		return;
	table->asked[record->key].stay = stay_of(record);
	memcpy(table->asked[record->key].registers, registers, sizeof(record->sched.registers));
}

void registers_fill(struct register_asker *asker, struct thread_table *table,
		    struct thread_state *const *records, uint32_t count)
{
	struct registers_ask *ask;

	if (asker->program < 0)
		return;
	if (!table->asked && table->store == &thread_slots)
		table->asked = memory_get(table->entries_max * sizeof(*table->asked));
	ask = &asker->asks[asker->number];
	for (uint32_t i = 0; i < count; i++)
		ask->keys[i] = records[i]->key;
	ask->count = count;
	if (bpf_call_run(asker->program, asker->number))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (!registers_there(records[i]))
			registers_take(table, records[i], ask->sequences[i], ask->registers[i]);
}

void stack_registers_ask(struct register_asker *asker, const struct thread_state *const *records,
			 uint32_t count)
{
	struct stack_ask *ask;

	if (asker->stack_program < 0)
		return;
	ask = &asker->stack_asks[asker->number];
	for (uint32_t i = 0; i < count; i++) {
		ask->keys[i] = records[i]->key;
		ask->sequences[i] = UINT64_MAX; /* should the program not run */
	}
	ask->count = count;
	bpf_call_run(asker->stack_program, asker->number);
}

bool stack_registers_get(struct register_asker *asker, const struct thread_state *record,
			 uint32_t at, struct user_registers *registers)
{
	const struct stack_ask *ask;

	if (asker->stack_program < 0 || !record->kernel_stack)
		return false;
	ask = &asker->stack_asks[asker->number];
	if (ask->sequences[at] != record->sched.sequence_done)
		return false;
	registers_user((const uint64_t *)ask->registers[at], registers);
	return registers->sp;
}

bool record_still(struct thread_table *table, const struct thread_state *record)
{
	return thread_table_is_out(table, record->key, record->sched.tid,
				   record->sched.sequence_done);
}
