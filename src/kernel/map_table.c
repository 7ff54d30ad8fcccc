/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/map_table.h"
#include "kernel/record.h"

const struct kernel_map_row kernel_map_rows[KERNEL_MAP_COUNT] = {
	[KERNEL_MAP_THREADS] = {"ts_threads", sizeof(struct thread_state), ENTRIES_PER_THREAD},
	[KERNEL_MAP_SLOTS] = {"ts_slots", sizeof(__u32), ENTRIES_PER_THREAD},
	[KERNEL_MAP_FREE] = {"ts_free", sizeof(__u32), ENTRIES_PER_THREAD},
	[KERNEL_MAP_NEAR] = {"ts_near", sizeof(__u32), ENTRIES_FIXED},
	[KERNEL_MAP_COUNTERS] = {"ts_counters", sizeof(struct probe_counters), ENTRIES_FIXED},
	[KERNEL_MAP_SAMPLING] = {"ts_sampling", sizeof(struct sampling), ENTRIES_FIXED},
	[KERNEL_MAP_CHANGED] = {"ts_changed", sizeof(struct changed_ring), ENTRIES_PER_CPU},
	[KERNEL_MAP_SCAN_TIME] = {"ts_scan_time", sizeof(struct scan_time_ring), ENTRIES_PER_CPU},
	[KERNEL_MAP_TICKS] = {"ts_ticks", sizeof(struct cpu_tick), ENTRIES_FIXED},
	[KERNEL_MAP_REQUESTS] = {"ts_requests", sizeof(struct registers_request), ENTRIES_FIXED},
	[KERNEL_MAP_LATENCY] = {"ts_latency", sizeof(struct latency_control), ENTRIES_FIXED},
	[KERNEL_MAP_LATENCY_ONE] = {"ts_latency_one", sizeof(struct latency), ENTRIES_FIXED},
	[KERNEL_MAP_LATENCY_TWO] = {"ts_latency_two", sizeof(struct latency), ENTRIES_FIXED},
	[KERNEL_MAP_PROCESSES] = {"ts_processes", sizeof(struct process_totals), ENTRIES_FIXED},
	[KERNEL_MAP_STACK_REQUESTS] = {"ts_stack_reqs", sizeof(struct stack_request),
				       ENTRIES_FIXED},
	[KERNEL_MAP_BLOCK] = {"ts_block", sizeof(struct block_request), ENTRIES_FIXED},
	[KERNEL_MAP_SLOTS_ONE] = {"ts_slots_one", sizeof(struct latency_slot), ENTRIES_PER_CPU},
	[KERNEL_MAP_SLOTS_TWO] = {"ts_slots_two", sizeof(struct latency_slot), ENTRIES_PER_CPU},
	[KERNEL_MAP_EVENTS] = {"ts_events", sizeof(struct event_ring), ENTRIES_PER_CPU},
	[KERNEL_MAP_KEPT] = {"ts_kept", sizeof(__u32), ENTRIES_PER_CPU},
	[KERNEL_MAP_WINDOW] = {"ts_window", sizeof(struct capture_window), ENTRIES_FIXED},
	[KERNEL_MAP_LOOKED] = {"ts_looked", sizeof(__u32), ENTRIES_PER_CPU},
	[KERNEL_MAP_WAKES] = {"ts_wakes", sizeof(struct wake_ring), ENTRIES_PER_CPU},
	[KERNEL_MAP_CONNECTIONS] = {"ts_connections", sizeof(struct connection), ENTRIES_FIXED},
	[KERNEL_MAP_TEXTS] = {"ts_probe_texts", sizeof(struct probe_text), ENTRIES_FIXED},
	[KERNEL_MAP_WORK] = {"ts_work", sizeof(struct work_slot), ENTRIES_PER_THREAD},
};
