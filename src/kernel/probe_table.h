/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The probes: for each group of facts about threads the ways to get it, best first. A new way is a
 * row here and a variant in the fragment bpf_text/<name>.bpf.c.
 */
#ifndef TSNAP_KERNEL_PROBE_TABLE_H
#define TSNAP_KERNEL_PROBE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/feature_table.h"
#include "kernel/field_table.h"

#include <linux/bpf.h>

enum probe_kind {
	PROBE_TYPED_TRACEPOINT, /* raw tracepoint; the verifier knows its arguments' types */
	PROBE_RAW_TRACEPOINT,
	PROBE_TRACEPOINT,
	PROBE_KPROBE,
	PROBE_LOOK,
	PROBE_PERF_CLOCK,
	PROBE_FUNCTION, /* of a program: struct own_row (own_probe.h) says where */
	PROBE_FUNCTION_RETURN,
	PROBE_KERNEL_FUNCTION, /* of the kernel, as struct own_row says */
	PROBE_KERNEL_FUNCTION_RETURN,
};

#define OWN_PROBES_MAX 4 /* probes of the user's own at a time */

/* Groups of a record that probes fill. */
enum probe_group {
	GROUP_SWITCH,	   /* on CPU or off it, since when, registers, totals */
	GROUP_WAKE,	   /* runnable since when, and the waker */
	GROUP_NEW,	   /* threads from their start on */
	GROUP_NAME,	   /* new names */
	GROUP_EXEC,	   /* users and tids changed by exec */
	GROUP_EXIT,	   /* zombies that were waited for */
	GROUP_CLOCK,	   /* activity of threads on a CPU */
	GROUP_REQUEST,	   /* registers of threads off their CPUs, else kept at every switch */
	GROUP_STACK,	   /* registers for walks of user stacks */
	GROUP_BLOCK_QUEUE, /* requests to block devices when a thread makes them */
	GROUP_BLOCK_ISSUE, /* requests when the driver gets them */
	GROUP_BLOCK_DONE,  /* requests when they are completed */
	GROUP_BLOCK_MERGE, /* requests when they become part of others */
	GROUP_CONNECTION,  /* states of TCP connections */
	GROUP_SIGNAL,	   /* signals that are sent */
	GROUP_END,	   /* ends of processes */
	GROUP_CALL,	   /* system calls from their entry on */
	GROUP_RETURN,	   /* ends of system calls */
	GROUP_THROTTLE,	   /* control groups that are held back for their quota */
	GROUP_UNTHROTTLE,  /* control groups that may run again */
	GROUP_HARDIRQ,	   /* handlers of hardware interrupts, when they begin */
	GROUP_HARDIRQ_END,
	GROUP_SOFTIRQ, /* softirqs, when they begin */
	GROUP_SOFTIRQ_END,
	GROUP_PACKET_SENT,     /* packets that are handed to network devices */
	GROUP_PACKET_RECEIVED, /* packets that come from network devices */
	GROUP_OWN,	       /* the user's own probes: for each its entry, then its return */
	GROUP_OWN_LAST = GROUP_OWN + 2 * OWN_PROBES_MAX - 1,
	GROUP_COUNT,
};

/* Bit of a group in a mask of groups. */
#define GROUP_BIT(group) (UINT64_C(1) << (group))
_Static_assert(GROUP_COUNT <= 64, "groups fit a mask");

/* Parts of records that probes keep only if they are needed. */
enum record_part {
	PART_REGISTERS, /* registers at switches and on a CPU: the system call */
	PART_TOTALS,	/* exact times, and switches */
	PART_WAKER,	/* waker of the thread */
	PART_PROGRAM,	/* stamp of the thread's exec */
	PART_STACKS,	/* stacks of threads that leave their CPU right before a scan */
	PART_WAKES,	/* waits that a scan has seen, reported when they end */
	PART_MEMORY,	/* memory of threads on a CPU, at addresses that the sampler gives */
	PART_COUNT,
};

extern const char *const record_part_knobs[PART_COUNT];

struct probe_group_row {
	const char *name;
	const char *without; /* lack of a report without the group; NULL: none, at a higher cost */
	bool required;
	unsigned int fields; /* sets of fields that its programs read, except on tracepoints */
};

struct probe_row {
	const char *name; /* the fragment bpf_text/<name>.bpf.c */
	enum probe_kind kind;
	enum probe_group gives;
	enum feature wants;
	const char *knob;     /* #defined to choose the variant; NULL: the fragment has only one */
	const char *event;    /* "sched_switch", "sched:sched_switch", or the kernel function */
	const char *function; /* name of the program in the fragment */
};

extern const struct probe_group_row probe_group_rows[GROUP_COUNT];
extern const struct probe_row probe_rows[];
extern const size_t probe_row_count;
/* Names for users, and the kernel's program types, by enum probe_kind. */
extern const char *const probe_kind_names[];
extern const enum bpf_prog_type probe_program_types[];

/* Reason why a plan has no row for GROUP_BLOCK_MERGE where requests are seen through tracepoints,
 * which identify them by their sectors, or not at all. */
extern const char probe_merge_useless[];

/* The row chosen for each group, or NULL. */
struct probe_plan {
	const struct probe_row *chosen[GROUP_COUNT];
};

/* Chooses for each group the first row that `has` confirms, as probe_offered() does; has is called
 * only where needed. needs: GROUP_BIT()s; required groups are always taken. -ENOTSUP where a
 * required group has no way. */
int probe_plan_make(uint64_t needs, bool (*has)(void *of, const struct probe_row *row), void *of,
		    struct probe_plan *plan, struct error *e);

#endif
