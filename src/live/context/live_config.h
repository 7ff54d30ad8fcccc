/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of the live source; a part of struct config (cli/config.h). */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_CONFIG_H
#define TSNAP_LIVE_CONTEXT_LIVE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define SOURCE_BPF "bpf"
#define SOURCE_PROC "proc"

struct own_probes;

/* Strings belong to the caller and must outlive the source. */
struct live_config {
	int64_t rate_hz;	    /* -F: scans per second */
	const char *process;	    /* -p as typed: ids or a name pattern; NULL: all */
	const char *cgroup;	    /* --cgroup pattern; NULL: all */
	bool descendants;	    /* -r: processes that these fork are sampled, too */
	const char *threads;	    /* -t as typed: tids; NULL: all */
	int64_t daemon_ports;	    /* --daemon-ports: local ports below it are servers'
				     * (sample/wait_rule.h) */
	int64_t max_threads;	    /* --max-threads: capacity of the maps; 0: fit to the host */
	const char *kernel_types;   /* --kernel-types: a row of kernel/type_source.c, or NULL: the
				     * first that works */
	const char *btf_file;	    /* --btf: kernel types; NULL: the kernel's own */
	const char *offsets_file;   /* --offsets: as --write-offsets makes it; NULL: none */
	const char *write_offsets;  /* --write-offsets: file to write them to; NULL: none */
	const char *programs_file;  /* --programs: file of compiled programs; NULL: none */
	const char *write_programs; /* --write-programs: file to add them to; NULL: none */
	bool no_cache;		    /* --no-cache: programs are compiled, and not kept */
	const char *source;	    /* --source: SOURCE_BPF, SOURCE_PROC; NULL: BPF, else /proc */
	const char *needs_bpf;	    /* an option that only BPF programs can serve; NULL: none */
	const char *without;	    /* --without: kernel features not to be used; NULL: none */
	uint32_t traces;	    /* --trace, --probe: kinds, bits 1 << LATENCY_x */
	uint32_t traces_unasked;    /* those that are done without where the host has no probe */
	struct own_probes *own;	    /* --probe: kernel/own_probe.h; NULL: none */
	bool own_events;	    /* --events: each event of --probe is reported by itself */
	int64_t probe_budget;	    /* --probe-budget: tenths of a percent of a CPU */
	int64_t slower_us;	    /* --slower: least duration of single events; 0: none */
	bool events;		    /* single events are reported */
	bool distributions;	    /* what is traced is shown as distributions */
	int64_t stack_bytes; /* --stack-bytes: of a running thread's stack, copied for its walk */
	bool frame_pointers; /* --fp: walks follow frame pointers, not unwind tables */
	bool python;	     /* --python: stacks have Python's functions */
	bool no_realtime;    /* --no-realtime: scans begin at normal priority */
	bool kept;	     /* the parent process is tsnap's, too: keeper/keeper.h */
	bool no_sandbox;     /* --no-sandbox: all privileges stay as they are */
	bool writes;	     /* files are written while it samples, or at the end */
	bool loads_more;     /* another source may be opened for other needs */
	bool hides_texts;    /* --query-text off: statements without values */
	bool self;	     /* --self: costs of tsnap itself are reported */
	const char *share;   /* --share: name under which others may attach; NULL: none */
	const char *attach;  /* --attach: name to attach to; NULL: probes of its own */
};

#endif
