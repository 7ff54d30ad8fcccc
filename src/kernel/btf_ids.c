/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/btf_ids.h"
#include "kernel/btf_types.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

static int kernel_id(uint32_t (*find)(const struct btf_types *btf, const char *name),
		     const char *prefix, const char *of)
{
	struct btf_types btf;
	struct error e = {0};
	uint32_t id;
	char name[64];
	int result = btf_types_open(&btf, KERNEL_BTF_PATH, &e);

	error_done(&e);
	if (result)
		return result;
	snprintf(name, sizeof(name), "%s%s", prefix, of);
	id = find(&btf, name);
	btf_types_close(&btf);
	return id && id <= INT32_MAX ? (int)id : -ENOENT;
}

int btf_tracepoint_id(const char *event)
{
	/* include/trace/bpf_probe.h makes a typedef of this name for each tracepoint */
	return kernel_id(btf_typedef_find, "btf_trace_", event);
}

int btf_iterator_id(const char *of)
{
	/* DEFINE_BPF_ITER_FUNC of include/linux/bpf.h */
	return kernel_id(btf_function_find, "bpf_iter_", of);
}
