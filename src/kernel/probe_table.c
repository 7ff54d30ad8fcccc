/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/probe_table.h"

#include <errno.h>
#include <string.h>

const char *const probe_kind_names[] = {
	[PROBE_TYPED_TRACEPOINT] = "typed raw tracepoint",
	[PROBE_RAW_TRACEPOINT] = "raw tracepoint",
	[PROBE_TRACEPOINT] = "tracepoint",
	[PROBE_KPROBE] = "kprobe",
	[PROBE_LOOK] = "program run",
	[PROBE_PERF_CLOCK] = "perf clock",
	[PROBE_FUNCTION] = "uprobe",
	[PROBE_FUNCTION_RETURN] = "uretprobe",
	[PROBE_KERNEL_FUNCTION] = "kprobe",
	[PROBE_KERNEL_FUNCTION_RETURN] = "kretprobe",
};

const enum bpf_prog_type probe_program_types[] = {
	[PROBE_TYPED_TRACEPOINT] = BPF_PROG_TYPE_TRACING,
	[PROBE_RAW_TRACEPOINT] = BPF_PROG_TYPE_RAW_TRACEPOINT,
	[PROBE_TRACEPOINT] = BPF_PROG_TYPE_TRACEPOINT,
	[PROBE_KPROBE] = BPF_PROG_TYPE_KPROBE,
	[PROBE_LOOK] = BPF_PROG_TYPE_RAW_TRACEPOINT,
	[PROBE_PERF_CLOCK] = BPF_PROG_TYPE_PERF_EVENT,
	[PROBE_FUNCTION] = BPF_PROG_TYPE_KPROBE,
	[PROBE_FUNCTION_RETURN] = BPF_PROG_TYPE_KPROBE,
	[PROBE_KERNEL_FUNCTION] = BPF_PROG_TYPE_KPROBE,
	[PROBE_KERNEL_FUNCTION_RETURN] = BPF_PROG_TYPE_KPROBE,
};

const struct probe_group_row probe_group_rows[GROUP_COUNT] = {
	[GROUP_SWITCH] = {"switch", "everything", true, 0},
	[GROUP_WAKE] = {"wake-up", "RQ of woken threads, waker_tid and waker_comm", false, 0},
	[GROUP_NEW] = {"new thread", "a thread before its first switch", false, 0},
	[GROUP_NAME] = {"rename", "names changed since a thread was first seen", false, 0},
	[GROUP_EXEC] = {"exec", "users changed by exec", false, 0},
	[GROUP_EXIT] = {"exit", "the moment when a zombie goes (known within a second)", false, 0},
	[GROUP_CLOCK] = {"on CPU", "the system call of threads on a CPU", false, 0},
	[GROUP_REQUEST] = {"registers", NULL, false, 0}, /* else every switch keeps them */
	[GROUP_STACK] = {"user stacks", "some user stacks", false, 0},
	[GROUP_BLOCK_QUEUE] = {"block queue", "--trace blockq", false, FIELDS_BLOCK},
	[GROUP_BLOCK_ISSUE] = {"block issue", "--trace block and columns io_*", false,
			       FIELDS_BLOCK},
	[GROUP_BLOCK_DONE] = {"block done", "--trace block and columns io_*", false, FIELDS_BLOCK},
	[GROUP_BLOCK_MERGE] = {"block merge", "that a request was merged into another", false, 0},
	[GROUP_CONNECTION] = {"connection", "--trace connections", false, FIELDS_SOCKET},
	[GROUP_SIGNAL] = {"signal", "senders of signals in --trace incidents", false, FIELDS_END},
	[GROUP_END] = {"end", "ends of processes in --trace incidents", false, FIELDS_END},
	[GROUP_CALL] = {"call", "syscall_us, and --trace syscalls and opens", false, 0},
	[GROUP_RETURN] = {"return", "--trace syscalls, opens and connections", false, 0},
	[GROUP_THROTTLE] = {"throttle", "throttled_ns of --trace runq", false, FIELDS_QUOTA},
	[GROUP_UNTHROTTLE] = {"unthrottle", "throttled_ns of --trace runq", false, FIELDS_QUOTA},
	[GROUP_HARDIRQ] = {"hardirq", "--trace irq and column irq", false, 0},
	[GROUP_HARDIRQ_END] = {"hardirq end", "--trace irq and column irq", false, 0},
	[GROUP_SOFTIRQ] = {"softirq", "--trace irq and column irq", false, 0},
	[GROUP_SOFTIRQ_END] = {"softirq end", "--trace irq and column irq", false, 0},
	[GROUP_PACKET_SENT] = {"packet sent", "--trace dns", false, FIELDS_PACKET},
	[GROUP_PACKET_RECEIVED] = {"packet received", "--trace dns", false, FIELDS_PACKET},
	[GROUP_OWN... GROUP_OWN_LAST] = {"own probe", "--probe", false, 0},
};

const char *const record_part_knobs[PART_COUNT] = {
	[PART_REGISTERS] = "KEEP_REGISTERS", [PART_TOTALS] = "KEEP_TOTALS",
	[PART_WAKER] = "KEEP_WAKER",	     [PART_PROGRAM] = "KEEP_PROGRAM",
	[PART_STACKS] = "KEEP_STACKS",	     [PART_WAKES] = "TELL_WAKES",
	[PART_MEMORY] = "LOOK_AT_MEMORY",
};

#define TYPED PROBE_TYPED_TRACEPOINT
#define RAW PROBE_RAW_TRACEPOINT
#define TRACE PROBE_TRACEPOINT
#define KPROBE PROBE_KPROBE

/* clang-format off */
const struct probe_row probe_rows[] = {
	{"sched_switch", TYPED, GROUP_SWITCH, FEATURE_TYPED_TRACEPOINT, "SCHED_SWITCH_TYPED",
	 "sched_switch", "raw_tracepoint__sched_switch"},
	{"sched_switch", RAW, GROUP_SWITCH, FEATURE_RAW_TRACEPOINT, "SCHED_SWITCH_RAW",
	 "sched_switch", "raw_tracepoint__sched_switch"},
	{"sched_switch", TRACE, GROUP_SWITCH, FEATURE_TRACEPOINT, "SCHED_SWITCH_TRACEPOINT",
	 "sched:sched_switch", "tracepoint__sched__sched_switch"},
	{"sched_switch", KPROBE, GROUP_SWITCH, FEATURE_SWITCH_FIRST, "SCHED_SWITCH_KPROBE",
	 "finish_task_switch", "kprobe__finish_task_switch"},
	{"sched_switch", KPROBE, GROUP_SWITCH, FEATURE_SWITCH_SECOND, "SCHED_SWITCH_KPROBE_SECOND",
	 "finish_task_switch", "kprobe__finish_task_switch"},

	{"sched_wakeup", TYPED, GROUP_WAKE, FEATURE_TYPED_TRACEPOINT, "SCHED_WAKEUP_TYPED",
	 "sched_waking", "raw_tracepoint__sched_waking"},
	{"sched_wakeup", RAW, GROUP_WAKE, FEATURE_RAW_TRACEPOINT, "SCHED_WAKEUP_RAW",
	 "sched_waking", "raw_tracepoint__sched_waking"},
	{"sched_wakeup", TRACE, GROUP_WAKE, FEATURE_TRACEPOINT, "SCHED_WAKEUP_TRACEPOINT",
	 "sched:sched_waking", "tracepoint__sched__sched_waking"},
	{"sched_wakeup", KPROBE, GROUP_WAKE, FEATURE_KPROBE, "SCHED_WAKEUP_KPROBE",
	 "try_to_wake_up", "kprobe__try_to_wake_up"},

	{"thread_new", RAW, GROUP_NEW, FEATURE_RAW_TRACEPOINT, "THREAD_NEW_RAW",
	 "task_newtask", "raw_tracepoint__task_newtask"},
	{"thread_new", TRACE, GROUP_NEW, FEATURE_TRACEPOINT, "THREAD_NEW_TRACEPOINT",
	 "task:task_newtask", "tracepoint__task__task_newtask"},
	{"thread_new", KPROBE, GROUP_NEW, FEATURE_KPROBE, "THREAD_NEW_KPROBE",
	 "wake_up_new_task", "kprobe__wake_up_new_task"},

	{"thread_rename", RAW, GROUP_NAME, FEATURE_RAW_TRACEPOINT, "THREAD_RENAME_RAW",
	 "task_rename", "raw_tracepoint__task_rename"},
	{"thread_rename", TRACE, GROUP_NAME, FEATURE_TRACEPOINT, "THREAD_RENAME_TRACEPOINT",
	 "task:task_rename", "tracepoint__task__task_rename"},
	{"thread_rename", KPROBE, GROUP_NAME, FEATURE_KPROBE, "THREAD_RENAME_KPROBE",
	 "__set_task_comm", "kprobe____set_task_comm"},

	{"thread_exec", RAW, GROUP_EXEC, FEATURE_RAW_TRACEPOINT, "THREAD_EXEC_RAW",
	 "sched_process_exec", "raw_tracepoint__sched_process_exec"},
	{"thread_exec", TRACE, GROUP_EXEC, FEATURE_TRACEPOINT, "THREAD_EXEC_TRACEPOINT",
	 "sched:sched_process_exec", "tracepoint__sched__sched_process_exec"},

	{"thread_exit", RAW, GROUP_EXIT, FEATURE_RAW_TRACEPOINT, "THREAD_EXIT_RAW",
	 "sched_process_free", "raw_tracepoint__sched_process_free"},
	{"thread_exit", TRACE, GROUP_EXIT, FEATURE_TRACEPOINT, "THREAD_EXIT_TRACEPOINT",
	 "sched:sched_process_free", "tracepoint__sched__sched_process_free"},

	{"on_cpu", PROBE_LOOK, GROUP_CLOCK, FEATURE_RUN_ON_CPU, "ON_CPU_LOOK",
	 "demand", "ts_look"},
	{"on_cpu", PROBE_PERF_CLOCK, GROUP_CLOCK, FEATURE_PERF_CLOCK, "ON_CPU_CLOCK",
	 "cpu-clock", "ts_clock"},

	{"registers", PROBE_LOOK, GROUP_REQUEST, FEATURE_ASK_REGISTERS, "REGISTERS_REQUESTED",
	 "demand", "ts_request"},

	{"user_stack", PROBE_LOOK, GROUP_STACK, FEATURE_ASK_REGISTERS, NULL,
	 "demand", "ts_request_stack"},

	{"block_queue", TYPED, GROUP_BLOCK_QUEUE, FEATURE_TYPED_BLOCK_IO_START,
	 "BLOCK_QUEUE_START_TYPED", "block_io_start", "raw_tracepoint__block_io_start"},
	{"block_queue", RAW, GROUP_BLOCK_QUEUE, FEATURE_BLOCK_IO_START, "BLOCK_QUEUE_START",
	 "block_io_start", "raw_tracepoint__block_io_start"},
	{"block_queue", RAW, GROUP_BLOCK_QUEUE, FEATURE_RAW_TRACEPOINT, "BLOCK_QUEUE_INSERT",
	 "block_rq_insert", "raw_tracepoint__block_rq_insert"},
	{"block_queue", TRACE, GROUP_BLOCK_QUEUE, FEATURE_TRACEPOINT, "BLOCK_QUEUE_TRACEPOINT",
	 "block:block_rq_insert", "tracepoint__block__block_rq_insert"},

	{"block_issue", TYPED, GROUP_BLOCK_ISSUE, FEATURE_TYPED_TRACEPOINT, "BLOCK_ISSUE_TYPED",
	 "block_rq_issue", "raw_tracepoint__block_rq_issue"},
	{"block_issue", RAW, GROUP_BLOCK_ISSUE, FEATURE_RAW_TRACEPOINT, "BLOCK_ISSUE_RAW",
	 "block_rq_issue", "raw_tracepoint__block_rq_issue"},
	{"block_issue", TRACE, GROUP_BLOCK_ISSUE, FEATURE_TRACEPOINT, "BLOCK_ISSUE_TRACEPOINT",
	 "block:block_rq_issue", "tracepoint__block__block_rq_issue"},

	{"block_done", TYPED, GROUP_BLOCK_DONE, FEATURE_TYPED_TRACEPOINT, "BLOCK_DONE_TYPED",
	 "block_rq_complete", "raw_tracepoint__block_rq_complete"},
	{"block_done", RAW, GROUP_BLOCK_DONE, FEATURE_RAW_TRACEPOINT, "BLOCK_DONE_RAW",
	 "block_rq_complete", "raw_tracepoint__block_rq_complete"},
	{"block_done", TRACE, GROUP_BLOCK_DONE, FEATURE_TRACEPOINT, "BLOCK_DONE_TRACEPOINT",
	 "block:block_rq_complete", "tracepoint__block__block_rq_complete"},

	{"block_merge", RAW, GROUP_BLOCK_MERGE, FEATURE_BLOCK_MERGE, "BLOCK_MERGE_RAW",
	 "block_rq_merge", "raw_tracepoint__block_rq_merge"},
	{"block_merge", KPROBE, GROUP_BLOCK_MERGE, FEATURE_KPROBE, "BLOCK_MERGE_KPROBE",
	 "elv_merge_requests", "kprobe__elv_merge_requests"},

	{"connection", RAW, GROUP_CONNECTION, FEATURE_RAW_TRACEPOINT, "CONNECTION_RAW",
	 "inet_sock_set_state", "raw_tracepoint__inet_sock_set_state"},
	{"connection", KPROBE, GROUP_CONNECTION, FEATURE_KPROBE, "CONNECTION_KPROBE",
	 "tcp_set_state", "kprobe__tcp_set_state"},

	{"signal_sent", RAW, GROUP_SIGNAL, FEATURE_RAW_TRACEPOINT, "SIGNAL_SENT_RAW",
	 "signal_generate", "raw_tracepoint__signal_generate"},
	{"signal_sent", TRACE, GROUP_SIGNAL, FEATURE_TRACEPOINT, "SIGNAL_SENT_TRACEPOINT",
	 "signal:signal_generate", "tracepoint__signal__signal_generate"},

	{"process_end", RAW, GROUP_END, FEATURE_RAW_TRACEPOINT, "PROCESS_END_RAW",
	 "sched_process_exit", "raw_tracepoint__sched_process_exit"},
	{"process_end", TRACE, GROUP_END, FEATURE_TRACEPOINT, "PROCESS_END_TRACEPOINT",
	 "sched:sched_process_exit", "tracepoint__sched__sched_process_exit"},

	{"syscall_enter", TYPED, GROUP_CALL, FEATURE_TYPED_TRACEPOINT, "SYSCALL_ENTER_TYPED",
	 "sys_enter", "raw_tracepoint__sys_enter"},
	{"syscall_enter", RAW, GROUP_CALL, FEATURE_RAW_TRACEPOINT, "SYSCALL_ENTER_RAW",
	 "sys_enter", "raw_tracepoint__sys_enter"},
	{"syscall_enter", TRACE, GROUP_CALL, FEATURE_TRACEPOINT, "SYSCALL_ENTER_TRACEPOINT",
	 "raw_syscalls:sys_enter", "tracepoint__raw_syscalls__sys_enter"},

	{"syscall_exit", TYPED, GROUP_RETURN, FEATURE_TYPED_TRACEPOINT, "SYSCALL_EXIT_RAW",
	 "sys_exit", "raw_tracepoint__sys_exit"},
	{"syscall_exit", RAW, GROUP_RETURN, FEATURE_RAW_TRACEPOINT, "SYSCALL_EXIT_RAW",
	 "sys_exit", "raw_tracepoint__sys_exit"},
	{"syscall_exit", TRACE, GROUP_RETURN, FEATURE_TRACEPOINT, "SYSCALL_EXIT_TRACEPOINT",
	 "raw_syscalls:sys_exit", "tracepoint__raw_syscalls__sys_exit"},

	{"throttle", KPROBE, GROUP_THROTTLE, FEATURE_KPROBE, "THROTTLE_KPROBE",
	 "tg_throttle_down", "kprobe__tg_throttle_down"},
	{"unthrottle", KPROBE, GROUP_UNTHROTTLE, FEATURE_KPROBE, "UNTHROTTLE_KPROBE",
	 "tg_unthrottle_up", "kprobe__tg_unthrottle_up"},

	{"hardirq_begin", RAW, GROUP_HARDIRQ, FEATURE_RAW_TRACEPOINT, "HARDIRQ_BEGIN_RAW",
	 "irq_handler_entry", "raw_tracepoint__irq_handler_entry"},
	{"hardirq_begin", TRACE, GROUP_HARDIRQ, FEATURE_TRACEPOINT, "HARDIRQ_BEGIN_TRACEPOINT",
	 "irq:irq_handler_entry", "tracepoint__irq__irq_handler_entry"},
	{"hardirq_end", RAW, GROUP_HARDIRQ_END, FEATURE_RAW_TRACEPOINT, "HARDIRQ_END_RAW",
	 "irq_handler_exit", "raw_tracepoint__irq_handler_exit"},
	{"hardirq_end", TRACE, GROUP_HARDIRQ_END, FEATURE_TRACEPOINT, "HARDIRQ_END_TRACEPOINT",
	 "irq:irq_handler_exit", "tracepoint__irq__irq_handler_exit"},
	{"softirq_begin", RAW, GROUP_SOFTIRQ, FEATURE_RAW_TRACEPOINT, "SOFTIRQ_BEGIN_RAW",
	 "softirq_entry", "raw_tracepoint__softirq_entry"},
	{"softirq_begin", TRACE, GROUP_SOFTIRQ, FEATURE_TRACEPOINT, "SOFTIRQ_BEGIN_TRACEPOINT",
	 "irq:softirq_entry", "tracepoint__irq__softirq_entry"},
	{"softirq_end", RAW, GROUP_SOFTIRQ_END, FEATURE_RAW_TRACEPOINT, "SOFTIRQ_END_RAW",
	 "softirq_exit", "raw_tracepoint__softirq_exit"},
	{"softirq_end", TRACE, GROUP_SOFTIRQ_END, FEATURE_TRACEPOINT, "SOFTIRQ_END_TRACEPOINT",
	 "irq:softirq_exit", "tracepoint__irq__softirq_exit"},

	{"packet_sent", TYPED, GROUP_PACKET_SENT, FEATURE_TYPED_TRACEPOINT, "PACKET_SENT_TYPED",
	 "net_dev_queue", "raw_tracepoint__net_dev_queue"},
	{"packet_sent", RAW, GROUP_PACKET_SENT, FEATURE_RAW_TRACEPOINT, "PACKET_SENT_RAW",
	 "net_dev_queue", "raw_tracepoint__net_dev_queue"},
	{"packet_sent", TRACE, GROUP_PACKET_SENT, FEATURE_TRACEPOINT, "PACKET_SENT_TRACEPOINT",
	 "net:net_dev_queue", "tracepoint__net__net_dev_queue"},
	{"packet_received", TYPED, GROUP_PACKET_RECEIVED, FEATURE_TYPED_TRACEPOINT, "PACKET_RECEIVED_TYPED",
	 "netif_receive_skb", "raw_tracepoint__netif_receive_skb"},
	{"packet_received", RAW, GROUP_PACKET_RECEIVED, FEATURE_RAW_TRACEPOINT, "PACKET_RECEIVED_RAW",
	 "netif_receive_skb", "raw_tracepoint__netif_receive_skb"},
	{"packet_received", TRACE, GROUP_PACKET_RECEIVED, FEATURE_TRACEPOINT,
	 "PACKET_RECEIVED_TRACEPOINT", "net:netif_receive_skb", "tracepoint__net__netif_receive_skb"},
};
/* clang-format on */

const size_t probe_row_count = sizeof(probe_rows) / sizeof(probe_rows[0]);

const char probe_merge_useless[] =
	"it tells requests apart by their addresses, and no other probe here does";

int probe_plan_make(uint64_t needs, bool (*has)(void *of, const struct probe_row *row), void *of,
		    struct probe_plan *plan, struct error *e)
{
	struct probe_plan made = {{NULL}};

	for (size_t i = 0; i < probe_row_count; i++) {
		const struct probe_row *row = &probe_rows[i];

		if (made.chosen[row->gives] ||
		    !(needs >> row->gives & 1 || probe_group_rows[row->gives].required))
			continue;
		if (has(of, row))
			made.chosen[row->gives] = row;
	}
	if (!made.chosen[GROUP_BLOCK_DONE] ||
	    made.chosen[GROUP_BLOCK_DONE]->kind == PROBE_TRACEPOINT)
		made.chosen[GROUP_BLOCK_MERGE] = NULL; /* probe_merge_useless */
	for (int group = 0; group < GROUP_COUNT; group++)
		if (probe_group_rows[group].required && !made.chosen[group])
			return error_set(
				e, ENOTSUP, EXIT_HOST_CANNOT,
				"this kernel offers no way to see scheduler switches: neither raw "
				"tracepoints (4.17), nor tracepoints (is tracefs mounted?), nor "
				"kprobes; tsnap --check says more");
	*plan = made;
	return 0;
}
