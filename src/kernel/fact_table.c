/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/fact_table.h"
#include "kernel/fact_try.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRACEPOINT_REMEDY \
	"mount -t tracefs tracefs /sys/kernel/tracing; before 4.15 end what else uses tracepoints"

const struct fact_row fact_rows[FACT_COUNT] = {
	[FACT_BPF] = {"bpf", "BPF maps and programs may be made", FACT_SINCE(4, 4),
		      "run as root (sudo tsnap), or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE "
		      "(or CAP_SYS_ADMIN)",
		      try_bpf},
	[FACT_RAW_TRACEPOINT] = {"raw_tracepoint", "raw tracepoints, the cheapest probes",
				 FACT_SINCE(4, 17), NULL, try_raw_tracepoint},
	[FACT_TYPED_TRACEPOINT] = {"typed_tracepoint",
				   "raw tracepoints whose arguments have types (needs btf)",
				   FACT_SINCE(5, 5), NULL, try_typed_tracepoint},
	[FACT_TRACEPOINT] = {"tracepoint", "perf tracepoints, through tracefs", FACT_SINCE(4, 7),
			     TRACEPOINT_REMEDY, try_tracepoint},
	[FACT_KPROBE] = {"kprobe", "kprobes", FACT_SINCE(4, 1), NULL, try_kprobe},
	[FACT_RUN_ON_CPU] = {"run_on_cpu", "a program can be run on a CPU when it is wanted",
			     FACT_SINCE(5, 10), NULL, try_run_on_cpu},
	[FACT_PERF_CLOCK] = {"perf_clock", "a perf clock that runs a program on each CPU",
			     FACT_SINCE(4, 9),
			     "sysctl kernel.perf_event_paranoid=2, or run as root", try_perf_clock},
	[FACT_CPU_SAMPLES] = {"cpu_samples", "stacks of threads on a CPU, by perf samples",
			      FACT_SINCE(4, 1),
			      "sysctl kernel.perf_event_paranoid=0, or run as root",
			      try_cpu_samples},
	[FACT_MAP_BATCH] = {"map_batch", "maps read in batches", FACT_SINCE(5, 6), NULL,
			    try_map_batch},
	[FACT_THREAD_SLOTS] = {"thread_slots",
			       "the thread state array in shared memory, with stacks of free slots",
			       FACT_SINCE(5, 5), NULL, try_thread_slots},
	[FACT_ASK_REGISTERS] =
		{"ask_registers",
		 "registers of sleeping threads can be asked for (needs thread_slots)",
		 FACT_SINCE(5, 10), NULL, try_ask_registers},
	[FACT_READ_INTO_MAP] = {"read_into_map", "helpers may write to a map value",
				FACT_SINCE(4, 14), NULL, try_read_into_map},
	[FACT_PROBE_READ_KERNEL] = {"probe_read_kernel", "the helper bpf_probe_read_kernel",
				    FACT_SINCE(5, 5), NULL, try_probe_read_kernel},
	[FACT_PROBE_READ_USER] = {"probe_read_user", "the helper bpf_probe_read_user",
				  FACT_SINCE(5, 5), NULL, try_probe_read_user},
	[FACT_CGROUP_ID] = {"cgroup_id", "a program can tell a thread's cgroup", FACT_SINCE(4, 18),
			    NULL, try_cgroup_id},
	[FACT_LONG_PROGRAM] = {"long_program", "programs of more than 4096 instructions",
			       FACT_SINCE(5, 2), NULL, try_long_program},
	[FACT_BPF_STATS] = {"bpf_stats", "runs of programs are counted while tsnap asks for it",
			    FACT_SINCE(5, 8),
			    "for --self, since 5.1: sysctl kernel.bpf_stats_enabled=1",
			    try_bpf_stats},
	[FACT_PINNED_LINKS] = {"pinned_links",
			       "links can be pinned: what --share began outlives its starter",
			       FACT_SINCE(5, 7),
			       "needed only to outlive the starter of --share: Linux 5.7 with raw "
			       "tracepoints, and mount -t bpf -o mode=0700 bpf /sys/fs/bpf",
			       try_pinned_links},
	[FACT_BLOCK_IO_START] = {"block_io_start",
				 "the tracepoint block_io_start, which tells who makes a request",
				 FACT_SINCE(6, 5), NULL, try_block_io_start},
	[FACT_TYPED_BLOCK_IO_START] = {"typed_block_start",
				       "the same with types (needs typed_tracepoint)",
				       FACT_SINCE(6, 5), NULL, try_typed_block_io_start},
	[FACT_BLOCK_MERGE] = {"block_rq_merge",
			      "the tracepoint block_rq_merge: a request becomes part of another",
			      FACT_SINCE(5, 9), NULL, try_block_merge},
	[FACT_BLOCK_QUEUE_ARGUMENT] =
		{"block_queue_arg",
		 "block tracepoints hand over a queue before the request (until 5.10)",
		 FACT_SINCE(4, 17), "not needed: later kernels hand over the request alone",
		 try_block_queue_argument},
	[FACT_KERNEL_LOCKS] = {"kernel_locks",
			       "who holds a mutex, rwsem or semaphore of the kernel (needs btf)",
			       FACT_SINCE(6, 16),
			       "a kernel built with CONFIG_DETECT_HUNG_TASK_BLOCKER",
			       try_kernel_locks},
	[FACT_BTF] = {"btf", "the kernel's own type information", FACT_SINCE(5, 2), NULL, try_btf},
	[FACT_KHEADERS] = {"kheaders", "the kernel's headers in /sys/kernel", FACT_SINCE(5, 2),
			   "as root: --kernel-types kheaders, which loads the module; not needed "
			   "where there is BTF",
			   try_kheaders},
	[FACT_UNWINDER] = {"unwinder",
			   "user stacks by the unwind tables of programs; else by frame pointers",
			   0, "a build with libdw of elfutils", try_unwinder},
};

bool fact_has(struct facts *facts, enum fact fact)
{
	if (facts->state[fact] == FACT_UNTRIED) {
		int result = fact_rows[fact].try(facts->why[fact]);

		facts->state[fact] = !result				     ? FACT_THERE
				     : result == -EPERM || result == -EACCES ? FACT_FORBIDDEN
									     : FACT_MISSING;
	}
	return facts->state[fact] == FACT_THERE;
}

static int fact_of_name(const char *name, size_t length)
{
	for (int fact = 0; fact < FACT_COUNT; fact++)
		if (strlen(fact_rows[fact].name) == length &&
		    !strncmp(fact_rows[fact].name, name, length))
			return fact;
	return -1;
}

static void fact_take_away(struct facts *facts, int fact)
{
	if (fact == FACT_BTF || fact == FACT_RAW_TRACEPOINT) /* it is one, with types */
		fact_take_away(facts, FACT_TYPED_TRACEPOINT);
	if (fact == FACT_BTF)
		fact_take_away(facts, FACT_KERNEL_LOCKS);
	if (fact == FACT_RAW_TRACEPOINT) {
		fact_take_away(facts, FACT_BLOCK_IO_START);
		fact_take_away(facts, FACT_BLOCK_MERGE);
	}
	if (fact == FACT_TYPED_TRACEPOINT || fact == FACT_BLOCK_IO_START)
		fact_take_away(facts, FACT_TYPED_BLOCK_IO_START);
	if (fact == FACT_THREAD_SLOTS) /* registers are asked for through slots */
		fact_take_away(facts, FACT_ASK_REGISTERS);
	facts->state[fact] = FACT_TAKEN_AWAY;
	snprintf(facts->why[fact], FACT_WHY_SIZE, "taken away by --without");
}

/* "kernel-4.14" of a list; 0: it is not of that form. */
static uint32_t release_of_name(const char *name, size_t length)
{
	unsigned int major, minor;
	int used = 0;

	if (sscanf(name, "kernel-%3u.%3u%n", &major, &minor, &used) != 2 ||
	    (size_t)used != length || minor > 255)
		return 0;
	return FACT_SINCE(major, minor);
}

static int fact_unknown(const char *name, size_t length, struct error *e)
{
	struct text names = {0};
	int err;

	for (int i = 0; i < FACT_COUNT; i++)
		text_add_format(&names, "%s, ", fact_rows[i].name);
	err = error_set(e, EINVAL, EXIT_USAGE,
			"--without: no fact is named '%.*s'; there are %sand kernel-4.9 (or any "
			"release) for all that came later",
			(int)(length < 40 ? length : 40), name, text_string(&names));
	text_done(&names);
	return err;
}

int facts_take_away(struct facts *facts, const char *list, struct error *e)
{
	while (list && *list) {
		size_t length = strcspn(list, ",");
		int fact = fact_of_name(list, length);
		uint32_t release = release_of_name(list, length);

		if (fact < 0 && !release)
			return fact_unknown(list, length, e);
		for (int i = 0; i < FACT_COUNT; i++)
			if (i == fact || (release && fact_rows[i].since > release))
				fact_take_away(facts, i);
		list += length + (list[length] == ',');
	}
	return 0;
}
