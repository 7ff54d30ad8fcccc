/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/register_requester.h"
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

#define ASKS_BYTES (REQUESTERS_MAX * sizeof(struct registers_request))
#define STACK_REQUESTS_BYTES (REQUESTERS_MAX * sizeof(struct stack_request))

_Static_assert(sizeof(struct registers_request) % 8 == 0, "values of an array are rounded up to 8");

/* Takes a slot that is free, or that of a sampler that is gone. */
static int slot_take(struct register_requester *requester)
{
	uint32_t own = (uint32_t)getpid();

	for (uint32_t i = 0; i < REQUESTERS_MAX; i++) {
		uint32_t *slot = &requester->requests[i].requester,
			 holder = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (holder && (!kill((pid_t)holder, 0) || errno != ESRCH))
			continue;
		if (__atomic_compare_exchange_n(slot, &holder, own, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			requester->number = i;
			return 0;
		}
	}
	return -EBUSY;
}

int register_requester_init(struct register_requester *requester, int program, int sampling_map,
			    int requests_map)
{
	int err;

	*requester = (struct register_requester){.program = program, .stack_program = -1};
	if (program < 0)
		return 0;
	err = bpf_call_map_mapped(sampling_map, sizeof(*requester->sampling),
				  (void **)&requester->sampling);
	if (!err)
		err = bpf_call_map_mapped(requests_map, ASKS_BYTES, (void **)&requester->requests);
	if (!err)
		err = slot_take(requester);
	if (err && requester->requests) { /* no slot to give back */
		munmap(requester->requests, ASKS_BYTES);
		requester->requests = NULL;
	}
	return err;
}

int register_requester_add_stacks(struct register_requester *requester, int program,
				  int requests_map)
{
	int err;

	if (program < 0 || !requester->requests)
		return 0;
	err = bpf_call_map_mapped(requests_map, STACK_REQUESTS_BYTES,
				  (void **)&requester->stack_requests);
	if (!err)
		requester->stack_program = program;
	return err;
}

void register_requester_done(struct register_requester *requester)
{
	if (requester->requests) {
		__atomic_store_n(&requester->requests[requester->number].requester, 0,
				 __ATOMIC_RELEASE);
		munmap(requester->requests, ASKS_BYTES);
	}
	if (requester->stack_requests)
		munmap(requester->stack_requests, STACK_REQUESTS_BYTES);
	if (requester->sampling)
		munmap(requester->sampling, sizeof(*requester->sampling));
	*requester = (struct register_requester){.program = -1, .stack_program = -1};
}

int64_t registers_want(struct register_requester *requester, int64_t until_ns)
{
	int64_t now_ns = clock_monotonic_ns();
	__u64 *until, before;

	if (!requester->sampling)
		return 0;
	until = &requester->sampling->registers_until_ns;
	before = __atomic_load_n(until, __ATOMIC_RELAXED);
	if (before < (__u64)now_ns)
		requester->since_ns = now_ns;
	while (before < (__u64)until_ns &&
	       !__atomic_compare_exchange_n(until, &before, (__u64)until_ns, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	return requester->since_ns;
}

void registers_want_no_more(struct register_requester *requester, int64_t until_ns)
{
	__u64 until = (__u64)until_ns;

	if (requester->sampling)
		__atomic_compare_exchange_n(&requester->sampling->registers_until_ns, &until,
					    (__u64)clock_monotonic_ns(), false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
}

void registers_want_from(struct register_requester *requester, int64_t from_ns)
{
	if (requester->sampling)
		__atomic_store_n(&requester->sampling->registers_from_ns, (__u64)from_ns,
				 __ATOMIC_SEQ_CST);
}

bool registers_there(const struct thread_state *record)
{
	return record->sched.known & SCHED_SWITCHED_OUT &&
	       record->sched.registers_sequence == record_out_sequence(record);
}

bool registers_lacking(const struct register_requester *requester,
		       const struct thread_state *record)
{
	return requester->program >= 0 && record->kernel_stack && !record->sched.on_cpu &&
	       record->sched.known & (SCHED_SWITCHED_OUT | SCHED_SEEDED) &&
	       !registers_there(record);
}

/* sequence: the thread's number before its registers were read. */
static void registers_take(struct thread_table *table, struct thread_state *record,
			   uint64_t sequence, const __u64 *registers)
{
	uint64_t out = record_out_sequence(record);
	struct thread_state now;

	if (thread_table_get(table, record->key, &now) ||
	    now.sched.sequence_begun != now.sched.sequence_done)
		return;
	if (registers_there(&now) && now.sched.registers_sequence == out)
		registers = now.sched.registers; /* kept when it came back */
	else if (record->sched.on_cpu || sequence != out || now.sched.sequence_done != out)
		return;
	thread_table_put_registers(table, record, registers);
}

void registers_fill(struct register_requester *requester, struct thread_table *table,
		    struct thread_state *const *records, uint32_t count)
{
	struct registers_request *request;

	if (requester->program < 0)
		return;
	if (!table->requested && table->mapped)
		table->requested = memory_get(table->entries_max * sizeof(*table->requested));
	request = &requester->requests[requester->number];
	for (uint32_t i = 0; i < count; i++)
		request->keys[i] = records[i]->key;
	request->count = count;
	if (bpf_call_run(requester->program, requester->number))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (!registers_there(records[i]))
			registers_take(table, records[i], request->sequences[i],
				       request->registers[i]);
}

void stack_registers_request(struct register_requester *requester,
			     const struct thread_state *const *records, uint32_t count)
{
	struct stack_request *request;

	if (requester->stack_program < 0)
		return;
	request = &requester->stack_requests[requester->number];
	for (uint32_t i = 0; i < count; i++) {
		request->keys[i] = records[i]->key;
		request->sequences[i] = UINT64_MAX; /* in case the program does not run */
	}
	request->count = count;
	bpf_call_run(requester->stack_program, requester->number);
}

bool stack_registers_get(struct register_requester *requester, const struct thread_state *record,
			 uint32_t at, struct user_registers *registers)
{
	const struct stack_request *request;

	if (requester->stack_program < 0 || !record->kernel_stack)
		return false;
	request = &requester->stack_requests[requester->number];
	if (request->sequences[at] != record->sched.sequence_done)
		return false;
	registers_user((const uint64_t *)request->registers[at], registers);
	return registers->sp;
}

bool record_still(struct thread_table *table, const struct thread_state *record)
{
	return thread_table_is_out(table, record->key, record->sched.tid,
				   record->sched.sequence_done);
}
