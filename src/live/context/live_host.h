/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of the kernel about the host as a whole, for the head and the footer of reports: control
 * groups that were held back for their quota of CPU time, or have a limit of I/O, and pressure
 * stall information. */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_HOST_H
#define TSNAP_LIVE_CONTEXT_LIVE_HOST_H

#include "apps/go_counters.h"
#include "base/cache.h"
#include "live/context/live_context.h"
#include "proc/cgroup.h"
#include "proc/cpu_quota.h"
#include "proc/io_limits.h"
#include "proc/jvm_counters.h"
#include "proc/listeners.h"
#include "sample/source.h"
#include "waits/unread.h"

/* A JVM of which a thread was sampled. */
struct live_jvm {
	int64_t pid, found_ns;
	uint64_t address; /* of its counters; 0: it shows none */
	struct jvm_counters first;
};

/* A Go program of which a thread was sampled. */
struct live_go {
	int64_t pid, found_ns;
	struct go_place place;
	struct go_counters first, last;
	int64_t seconds, grown_seconds;
};

struct live_host {
	struct live_context *context;
	int64_t began_ns; /* monotonic */
	struct cpu_quotas quotas;
	struct io_limits io_limits;
	struct listeners listeners;
	struct unread unread;
	struct live_jvm jvms[SOURCE_RUNTIMES_MAX]; /* those that came first */
	size_t jvm_count;
	struct live_go gos[SOURCE_RUNTIMES_MAX]; /* likewise */
	size_t go_count;
	struct cache looked_at; /* processes that were looked at, whether they run Go */
	struct cache go_files;
	int64_t go_read_ns;			  /* the last time that all were read */
	unsigned int go_looks;			  /* since then, at processes */
	struct cgroup_mount groups;		  /* cgroup v2: for its files of pressure */
	struct source_cpu taken[SOURCE_CPUS_MAX]; /* at the last status */
	size_t taken_count;
	int64_t taken_ns, taken_by_tick; /* when; as in struct source_status */
	struct cache paths;		 /* cgroup paths of threads in RQ: live_runq.c */
};

/* The name of the thread by which a JVM is known: the one that stops the others. */
#define LIVE_JVM_THREAD "VM Thread"
/* Notes a JVM, and reads its counters if it is new. */
void live_host_note_jvm(struct live_host *host, int64_t pid);
/* Notes a process that may run a Go program; reads the counters of those that do once a second. */
void live_host_note_go(struct live_host *host, int64_t pid, int64_t now_ns);
void live_host_init(struct live_host *host, struct live_context *context);
void live_host_done(struct live_host *host);

/* Adds what is known now to the status, where reports are made: counts since the start. */
void live_host_describe(struct live_host *host, struct source_status *status);
/* Reads what interrupts and the hypervisor took, as cpu_taken_read(). Where the kernel counts
 * interrupts by ticks and programs see them, by these: exact, without those of timers and between
 * CPUs. */
size_t live_taken_read(const struct live_context *context,
		       struct source_cpu taken[SOURCE_CPUS_MAX]);
/* True if that is so. */
bool live_taken_exact(const struct live_context *context);
/* Reads the load average of the last minute, "0.52 0.61 ...", proc_loadavg(5), in hundredths;
 * ABSENT: it can't be read. */
int64_t live_load_read(void);

#endif
