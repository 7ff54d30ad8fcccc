/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/bpf_cost.h"
#include "kernel/bpf_call.h"
#include "base/host_file.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATS_SYSCTL "/proc/sys/kernel/bpf_stats_enabled"

/* Part of struct bpf_prog_info that is read: recursion_misses follows run_cnt, and is not yet in
 * the header of 5.10. */
union program_info {
	struct bpf_prog_info known;
	struct {
		char before[offsetof(struct bpf_prog_info, run_time_ns)];
		uint64_t run_time_ns, run_count, recursion_misses;
	} cost;
};

static int64_t reported(uint64_t value, size_t end, uint32_t size)
{
	return end <= size ? (int64_t)value : -1;
}

int program_cost_read(int program, struct program_cost *cost)
{
	union program_info info;
	uint32_t size = sizeof(info); /* the kernel sets it to the bytes that it has filled */

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info(program, &info, &size))
		return -errno;
	*cost = (struct program_cost){
		.ns = reported(info.cost.run_time_ns,
			       offsetof(union program_info, cost.run_time_ns) + 8, size),
		.runs = reported(info.cost.run_count,
				 offsetof(union program_info, cost.run_count) + 8, size),
		.skipped = reported(info.cost.recursion_misses,
				    offsetof(union program_info, cost.recursion_misses) + 8, size),
		.jited_bytes = info.known.jited_prog_len,
	};
	return 0;
}

int64_t bpf_fdinfo_number(int descriptor, const char *key)
{
	char path[64], text[1024];
	const char *line;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", descriptor);
	got = host_file_read(path, text, sizeof(text));
	if (got < 0)
		return got;
	line = strstr(text, key);
	return line ? strtoll(line + strlen(key), NULL, 0) : -ENODATA;
}

int64_t bpf_memory_bytes(int descriptor)
{
	return bpf_fdinfo_number(descriptor, "memlock:");
}

int bpf_stats_open(struct features *features, const char **why)
{
	char text[16];
	int fd = feature_has(features, FEATURE_BPF_STATS) ? bpf_call_stats() : -ENOTSUP;

	*why = NULL;
	if (fd >= 0)
		return fd;
	if (host_file_read(STATS_SYSCTL, text, sizeof(text)) < 0)
		*why = "this kernel cannot count the runs of BPF programs: 5.1 was the first";
	else if (text[0] == '1')
		return fd;
	else if (features->state[FEATURE_BPF_STATS] == FEATURE_FORBIDDEN)
		*why = "only with CAP_SYS_ADMIN, or sysctl kernel.bpf_stats_enabled=1, are the "
		       "runs of BPF programs counted";
	else
		*why = "this kernel counts the runs of BPF programs only with sysctl "
		       "kernel.bpf_stats_enabled=1";
	return fd;
}
