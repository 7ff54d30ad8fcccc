/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids in records are those that /proc shows, so that lookups there find the same thread. In the
 * first pid namespace ids are the kernel's own. In another one (a container) the BPF text reads
 * each thread's number in it; what it needs to know for that is found here, by looking at this
 * process's own struct pid. */
#ifndef TSNAP_KERNEL_PID_NAMESPACE_H
#define TSNAP_KERNEL_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/field_table.h"
#include "kernel/host.h"

struct pid_namespace {
	bool translated;       /* ids are not the kernel's own */
	uint64_t address;      /* address of the struct pid_namespace of /proc */
	uint32_t level;	       /* depth of that namespace below the first */
	uint32_t number_bytes; /* size of a struct upid */
	uint32_t parent_tid;   /* the kernel's id of this process's parent, translated or not */
};

/* Finds the pid namespace of /proc; called by the compile child, whose parent is the sampler. 0, or
 * -errno with e (exit code 77): this namespace is not the first, and the kernel did not let a
 * program look. */
int pid_namespace_find(const struct field_layout *layout, const struct host *host,
		       struct pid_namespace *namespace, struct error *e);

/* Decodes the numbers of a thread (pure). words: as the kernel holds the numbers of a thread, all
 * from the first namespace on, count words of them; level: depth of its own namespace; own_pid: its
 * number there; depth: namespaces from /proc's to its own. Fills address, level and number_bytes;
 * -EINVAL where the words do not fit. */
int pid_namespace_decode(const uint64_t *words, unsigned int count, uint32_t level,
			 uint32_t own_pid, int depth, struct pid_namespace *namespace);

#endif
