/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/feature_table.h"
#include "kernel/feature_try.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRACEPOINT_REMEDY \
	"mount -t tracefs tracefs /sys/kernel/tracing; before 4.15 end what else uses tracepoints"

const struct feature_row feature_rows[FEATURE_COUNT] = {
	[FEATURE_BPF] =
		{"bpf", "BPF maps and programs may be made", FEATURE_SINCE(4, 4),
		 "run as root (sudo tsnap), or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE "
		 "(or CAP_SYS_ADMIN)",
		 try_bpf, NULL},
	[FEATURE_RAW_TRACEPOINT] = {"raw_tracepoint", "raw tracepoints, the cheapest probes",
				    FEATURE_SINCE(4, 17), NULL, try_raw_tracepoint, NULL},
	[FEATURE_TYPED_TRACEPOINT] = {"typed_tracepoint",
				      "raw tracepoints whose arguments have types (needs btf)",
				      FEATURE_SINCE(5, 5), NULL, try_typed_tracepoint, NULL},
	[FEATURE_TRACEPOINT] = {"tracepoint", "perf tracepoints, through tracefs",
				FEATURE_SINCE(4, 7), TRACEPOINT_REMEDY, try_tracepoint, NULL},
	[FEATURE_KPROBE] = {"kprobe", "kprobes", FEATURE_SINCE(4, 1), NULL, try_kprobe, NULL},
	[FEATURE_SWITCH_FIRST] =
		{"switch_first",
		 "finish_task_switch() is handed the leaving thread first (needs kprobe)",
		 FEATURE_SINCE(3, 19), NULL, try_switch_first, NULL},
	[FEATURE_SWITCH_SECOND] =
		{"switch_second",
		 "the same with a run queue before the thread (until 3.18; needs kprobe)", 0,
		 "not needed: later kernels hand over the thread alone", try_switch_second, NULL},
	[FEATURE_RUN_ON_CPU] = {"run_on_cpu", "a program can be run on a CPU when it is wanted",
				FEATURE_SINCE(5, 10), NULL, try_run_on_cpu, NULL},
	[FEATURE_PERF_CLOCK] = {"perf_clock", "a perf clock that runs a program on each CPU",
				FEATURE_SINCE(4, 9),
				"sysctl kernel.perf_event_paranoid=2, or run as root",
				try_perf_clock, NULL},
	[FEATURE_CPU_SAMPLES] = {"cpu_samples", "stacks of threads on a CPU, by perf samples",
				 FEATURE_SINCE(4, 1),
				 "sysctl kernel.perf_event_paranoid=0, or run as root",
				 try_cpu_samples, "stacks of threads on a CPU"},
	[FEATURE_MAP_BATCH] = {"map_batch", "maps read in batches", FEATURE_SINCE(5, 6), NULL,
			       try_map_batch, NULL},
	[FEATURE_THREAD_SLOTS] =
		{"thread_slots",
		 "the thread state array in shared memory, with stacks of free slots",
		 FEATURE_SINCE(5, 5), NULL, try_thread_slots, NULL},
	[FEATURE_ASK_REGISTERS] =
		{"ask_registers",
		 "registers of sleeping threads can be read on demand (needs thread_slots)",
		 FEATURE_SINCE(5, 10), NULL, try_request_registers, NULL},
	[FEATURE_READ_INTO_MAP] = {"read_into_map", "helpers may write to a map value",
				   FEATURE_SINCE(4, 14), NULL, try_read_into_map, NULL},
	[FEATURE_PROBE_READ_KERNEL] = {"probe_read_kernel", "the helper bpf_probe_read_kernel",
				       FEATURE_SINCE(5, 5), NULL, try_probe_read_kernel, NULL},
	[FEATURE_PROBE_READ_USER] = {"probe_read_user", "the helper bpf_probe_read_user",
				     FEATURE_SINCE(5, 5), NULL, try_probe_read_user, NULL},
	[FEATURE_CGROUP_ID] = {"cgroup_id", "a program can read a thread's cgroup",
			       FEATURE_SINCE(4, 18), NULL, try_cgroup_id, NULL},
	[FEATURE_LONG_PROGRAM] = {"long_program", "programs of more than 4096 instructions",
				  FEATURE_SINCE(5, 2), NULL, try_long_program, NULL},
	[FEATURE_BPF_STATS] = {"bpf_stats", "runs of programs are counted while tsnap wants it",
			       FEATURE_SINCE(5, 8),
			       "for --self, since 5.1: sysctl kernel.bpf_stats_enabled=1",
			       try_bpf_stats, NULL},
	[FEATURE_PINNED_LINKS] =
		{"pinned_links", "links can be pinned: what --share began outlives its starter",
		 FEATURE_SINCE(5, 7),
		 "needed only to outlive the starter of --share: Linux 5.7 with raw "
		 "tracepoints, and mount -t bpf -o mode=0700 bpf /sys/fs/bpf",
		 try_pinned_links, "a --share that outlives its starter"},
	[FEATURE_BLOCK_IO_START] =
		{"block_io_start",
		 "the tracepoint block_io_start, which shows the thread that makes a request",
		 FEATURE_SINCE(6, 5), NULL, try_block_io_start, NULL},
	[FEATURE_TYPED_BLOCK_IO_START] = {"typed_block_start",
					  "the same with types (needs typed_tracepoint)",
					  FEATURE_SINCE(6, 5), NULL, try_typed_block_io_start,
					  NULL},
	[FEATURE_BLOCK_MERGE] = {"block_rq_merge",
				 "the tracepoint block_rq_merge: a request becomes part of another",
				 FEATURE_SINCE(5, 9), NULL, try_block_merge, NULL},
	[FEATURE_BLOCK_QUEUE_ARGUMENT] =
		{"block_queue_arg",
		 "block tracepoints hand over a queue before the request (until 5.10)",
		 FEATURE_SINCE(4, 17), "not needed: later kernels hand over the request alone",
		 try_block_queue_argument, NULL},
	[FEATURE_KERNEL_LOCKS] = {"kernel_locks",
				  "who holds a mutex, rwsem or semaphore of the kernel (needs btf)",
				  FEATURE_SINCE(6, 16),
				  "a kernel built with CONFIG_DETECT_HUNG_TASK_BLOCKER",
				  try_kernel_locks, "holders of kernel locks"},
	[FEATURE_BTF] = {"btf", "the kernel's own type information", FEATURE_SINCE(5, 2), NULL,
			 try_btf, NULL},
	[FEATURE_KHEADERS] =
		{"kheaders", "the kernel's headers in /sys/kernel", FEATURE_SINCE(5, 2),
		 "as root: --kernel-types kheaders, which loads the module; not needed "
		 "where there is BTF",
		 try_kheaders, NULL},
	[FEATURE_UNWINDER] =
		{"unwinder", "user stacks by the unwind tables of programs; else by frame pointers",
		 0, "a build with libdw of elfutils", try_unwinder,
		 "user stacks of programs without frame pointers"},
};

bool feature_has(struct features *features, enum feature feature)
{
	if (features->state[feature] == FEATURE_UNTRIED) {
		int result = feature_rows[feature].try(features->why[feature]);

		features->state[feature] = !result ? FEATURE_THERE
					   : result == -EPERM || result == -EACCES
						   ? FEATURE_FORBIDDEN
						   : FEATURE_MISSING;
	}
	return features->state[feature] == FEATURE_THERE;
}

static int feature_of_name(const char *name, size_t length)
{
	for (int feature = 0; feature < FEATURE_COUNT; feature++)
		if (strlen(feature_rows[feature].name) == length &&
		    !strncmp(feature_rows[feature].name, name, length))
			return feature;
	return -1;
}

static void feature_take_away(struct features *features, int feature)
{
	if (feature == FEATURE_BTF || feature == FEATURE_RAW_TRACEPOINT) /* typed ones need both */
		feature_take_away(features, FEATURE_TYPED_TRACEPOINT);
	if (feature == FEATURE_KPROBE) {
		feature_take_away(features, FEATURE_SWITCH_FIRST);
		feature_take_away(features, FEATURE_SWITCH_SECOND);
	}
	if (feature == FEATURE_BTF)
		feature_take_away(features, FEATURE_KERNEL_LOCKS);
	if (feature == FEATURE_RAW_TRACEPOINT) {
		feature_take_away(features, FEATURE_BLOCK_IO_START);
		feature_take_away(features, FEATURE_BLOCK_MERGE);
	}
	if (feature == FEATURE_TYPED_TRACEPOINT || feature == FEATURE_BLOCK_IO_START)
		feature_take_away(features, FEATURE_TYPED_BLOCK_IO_START);
	if (feature == FEATURE_THREAD_SLOTS) /* registers are requested through slots */
		feature_take_away(features, FEATURE_ASK_REGISTERS);
	features->state[feature] = FEATURE_TAKEN_AWAY;
	snprintf(features->why[feature], FEATURE_WHY_SIZE, "taken away by --without");
}

/* Returns the release of "kernel-4.14" in a list; 0: it is not of that form. */
static uint32_t release_of_name(const char *name, size_t length)
{
	unsigned int major, minor;
	int used = 0;

	if (sscanf(name, "kernel-%3u.%3u%n", &major, &minor, &used) != 2 ||
	    (size_t)used != length || minor > 255)
		return 0;
	return FEATURE_SINCE(major, minor);
}

static int feature_unknown(const char *name, size_t length, struct error *e)
{
	struct text names = {0};
	int err;

	for (int i = 0; i < FEATURE_COUNT; i++)
		text_add_format(&names, "%s, ", feature_rows[i].name);
	err = error_set(e, EINVAL, EXIT_USAGE,
			"--without: no feature is named '%.*s'; there are %sand kernel-4.9 (or any "
			"release) for all that came later",
			(int)(length < 40 ? length : 40), name, text_string(&names));
	text_done(&names);
	return err;
}

int features_take_away(struct features *features, const char *list, struct error *e)
{
	while (list && *list) {
		size_t length = strcspn(list, ",");
		int feature = feature_of_name(list, length);
		uint32_t release = release_of_name(list, length);

		if (feature < 0 && !release)
			return feature_unknown(list, length, e);
		for (int i = 0; i < FEATURE_COUNT; i++)
			if (i == feature || (release && feature_rows[i].since > release))
				feature_take_away(features, i);
		list += length + (list[length] == ',');
	}
	return 0;
}
