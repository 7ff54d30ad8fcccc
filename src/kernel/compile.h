/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The short-lived child that finds kernel types, compiles with libbcc, loads the programs and hands
 * their descriptors over. The parent never touches LLVM and stays small; whatever the child prints
 * is caught; whatever happens to it becomes one error. Where the cache
 * (program_cache.h) has programs that are right for this start, the child does not touch LLVM,
 * either.
 */
#ifndef TSNAP_KERNEL_COMPILE_H
#define TSNAP_KERNEL_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/field_table.h"
#include "kernel/host.h"
#include "kernel/map_table.h"
#include "kernel/program_text.h"

struct compile_request {
	const struct host *host;
	const struct features *features;
	const struct probe_plan *plan; /* NULL: find the types only */
	const char *types_choice;      /* --kernel-types, or NULL */
	const char *btf_file, *offsets_file;
	const char *cache_path;	    /* directory of the cache; NULL: no cache */
	const char *programs_file;  /* --programs: the only source of programs; or NULL */
	const char *write_programs; /* --write-programs: file that they are added to; or NULL */
	struct program_knobs knobs; /* but for what the child finds out: registers, pids */
	int latency_control;	    /* map that is shared with the set before; -1: none */
	char parent_name[16];	    /* name of the child's parent; set in the child */
};

struct compile_result {
	struct field_layout layout;
	char types_source[32];		       /* the type source used */
	struct text types_tried;	       /* a line for each source tried */
	char programs_source[ERROR_LINE_SIZE]; /* where the programs are from, in words */
	bool compiled;			       /* they were compiled now */
	struct text output;		       /* output of the child */
	uint32_t stack_registers;	       /* 0: calibration failed, or was not needed */
	uint32_t registers_kept;    /* enum registers_kept, if stack_registers is known */
	int calibration;	    /* -errno: why calibration failed */
	bool pids_translated;	    /* records hold the ids of /proc's pid namespace */
	uint32_t own_tid;	    /* the kernel's own tid of this thread */
	int programs[GROUP_COUNT];  /* descriptors; -1: not in the plan */
	int maps[KERNEL_MAP_COUNT]; /* descriptors; -1: of a fragment that is not in the plan */
	uint32_t threads_max;
};

/* Forks, waits, collects. 0: *result is the caller's to compile_result_done(), also with -1
 * descriptors where the plan has no such row; -EINTR when a signal came first; another -errno with
 * e filled. */
int compile_child_run(const struct compile_request *request, struct compile_result *result,
		      struct error *e);
void compile_result_init(struct compile_result *result, uint32_t threads_max); /* holds nothing */
void compile_result_done(struct compile_result *result);

#endif
