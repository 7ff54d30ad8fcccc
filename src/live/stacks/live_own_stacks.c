/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_own_stacks.h"
#include "base/clock.h"
#include "kernel/map_table.h"
#include "kernel/record.h"
#include "live/stacks/live_cpu_stacks.h"
#include "live/stacks/live_stacks.h"

#include <bcc/libbpf.h>

#define OPENING_NS (10 * NS_PER_MS)

struct own_stacks {
	uint32_t user, kernel; /* numbers in the table, or STACK_NONE */
};

/* Reads a stack of the kernel's map, innermost first; number: of a key, 0: none. Returns its
 * length. */
static uint32_t chain_read(const struct live_stacks *stacks, uint32_t number,
			   uint64_t chain[KERNEL_CHAIN_MAX])
{
	const int map = stacks->context->kernel.compiled.maps[KERNEL_MAP_PROBE_STACKS];
	uint32_t count = 0;

	if (!number--)
		return 0;
	if (map < 0 || bpf_lookup_elem(map, &number, chain))
		return 0;
	while (count < KERNEL_CHAIN_MAX && chain[count])
		count++;
	return count;
}

static uint32_t user_take(struct live_stacks *stacks, const struct latency_key *key,
			  const uint64_t *chain, uint32_t count)
{
	static struct stack_walk walk;
	struct stack_thread thread = {.pid = key->tgid,
				      .tid = key->shown_tid,
				      .now_ns = stacks->context->now.scan_time.now_ns};
	struct thread_state record;
	struct thread_table *table = &stacks->context->kernel.table;
	uint32_t slot;

	if (!count || !key->tgid)
		return STACK_NONE;
	if (!thread_table_key(table, key->tid, &slot) && !thread_table_get(table, slot, &record) &&
	    record.sched.tid == key->tid && record.identity.tgid == key->tgid)
		thread = live_stack_thread(stacks, &record);
	else if (thread.pid == thread.tid) /* it has ended, and its process with it */
		return STACK_NONE;
	unwinder_walk_chain(&stacks->unwinder, &thread, chain, count, &walk);
	return stack_of_walk(&stacks->table, &walk);
}

static uint32_t kernel_take(struct live_stacks *stacks, const uint64_t *chain, uint32_t count)
{
	static struct kernel_stack kernel;
	const struct kernel_symbols *symbols = count ? live_kernel_symbols(stacks) : NULL;

	if (!symbols || !kernel_stack_of_chain(&kernel, symbols, chain, count, false))
		return STACK_NONE;
	kernel_stack_leave_tracepoint(&kernel);
	return stack_of_kernel(&stacks->table, &kernel);
}

static struct own_stacks stacks_take(struct live_stacks *stacks, const struct latency_key *key)
{
	const uint32_t marks = key->what[PROBE_MARKS];
	uint64_t chain[KERNEL_CHAIN_MAX];
	struct own_stacks taken = {STACK_NONE, STACK_NONE};
	uint32_t count;

	if (stacks->needs & NEED_USTACK) {
		count = chain_read(stacks, marks >> PROBE_USER_SHIFT & PROBE_STACK_MASK, chain);
		taken.user = user_take(stacks, key, chain, count);
	}
	if (stacks->needs & NEED_KSTACK) {
		count = chain_read(stacks, marks >> PROBE_KERNEL_SHIFT & PROBE_STACK_MASK, chain);
		taken.kernel = kernel_take(stacks, chain, count);
	}
	return taken;
}

void live_own_stacks_want(struct live_stacks *stacks, const struct latency_key *key,
			  int64_t until_ns)
{
	uint64_t refused = stacks->modules.refused;
	struct own_stacks taken = stacks_take(stacks, key);

	while (stacks->modules.refused > refused && clock_monotonic_ns() < until_ns) {
		module_table_next_scan(&stacks->modules, OPENING_NS);
		refused = stacks->modules.refused;
		taken = stacks_take(stacks, key);
	}
	if (taken.user != STACK_NONE)
		stack_table_want(&stacks->table, taken.user);
	if (taken.kernel != STACK_NONE)
		stack_table_want(&stacks->table, taken.kernel);
}

void live_own_stacks_fill(struct live_stacks *stacks, const struct latency_key *key,
			  struct sample *who)
{
	const struct own_stacks taken = stacks_take(stacks, key);

	live_stacks_words_fill(stacks, taken.user, taken.kernel, who);
}
