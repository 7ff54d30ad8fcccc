/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of the live source. */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_CONFIG_H
#define TSNAP_LIVE_CONTEXT_LIVE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* Strings belong to the caller and must outlive the source. */
struct live_config {
	int64_t rate_hz;	  /* scans per second */
	const char *process;	  /* -p as typed: ids or a name pattern; NULL: all */
	const char *cgroup;	  /* --cgroup as typed; NULL: all */
	bool descendants;	  /* processes that these fork are sampled, too */
	const char *threads;	  /* -t as typed: tids; NULL: all */
	int64_t daemon_ports;	  /* local ports below it are servers' (sample/wait_rule.h) */
	int64_t max_threads;	  /* capacity of the maps; 0: fit to the host */
	const char *kernel_types; /* a row of kernel/type_source.c, or NULL: the first that works */
	const char *btf_file;	  /* a file with kernel types; NULL: the kernel's own */
	const char *offsets_file; /* a file of offsets, as --write-offsets makes it; NULL: none */
	const char *write_offsets; /* file to write offsets to; NULL: none */
	const char *without;	   /* kernel features that are not to be used; NULL: none */
	uint32_t traces;	   /* kinds of --trace, bits 1 << LATENCY_x */
	int64_t slower_ms;	   /* single events that took at least so long; 0: none */
	bool events;		   /* true if single events are reported */
	bool distributions;	   /* true if what is traced is shown as distributions */
	int64_t stack_bytes;	   /* bytes of a running thread's stack, copied for its walk */
	bool frame_pointers;	   /* walks follow frame pointers, not unwind tables */
	bool python;		   /* stacks have Python's functions */
	bool no_realtime;	   /* scans begin at normal priority */
	bool kept;		   /* the parent process is tsnap's, too */
	bool no_sandbox;	   /* all privileges stay as they are */
	bool writes;		   /* files are written while it samples, or at the end */
	bool loads_more;	   /* another source may be opened for other needs */
	bool self;		   /* true if costs of tsnap itself are reported */
	const char *share;	   /* name under which others may attach; NULL: none */
	const char *attach;	   /* name to attach to; NULL: probes of its own */
};

#endif
