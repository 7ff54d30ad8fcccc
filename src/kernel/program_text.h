/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the BPF text together: knobs, types, the record, maps, then the fragments of the chosen
 * probes; and the private tree of tiny headers that libbcc sees instead of a kernel's.
 */
#ifndef TSNAP_KERNEL_PROGRAM_TEXT_H
#define TSNAP_KERNEL_PROGRAM_TEXT_H

#include "base/error.h"
#include "base/text.h"
#include "kernel/bcc_library.h"
#include "kernel/field_table.h"
#include "kernel/own_probe.h"
#include "kernel/pid_namespace.h"
#include "kernel/probe_table.h"

/* The BPF text, embedded byte for byte by cmake/embed.cmake. */
struct embedded_file {
	const char *name; /* "bpf_text/maps.bpf.c" */
	const char *text; /* NUL-terminated */
};

extern const struct embedded_file embedded_files[]; /* ends with a NULL name */

/* Returns the text of bpf_text/<name>; every name that this program uses exists (a unit test checks
 * that). */
const char *embedded_text(const char *name);

/* System calls of this machine that --trace syscalls measures, as the filter wants no others. */
#define TRACE_CALLS_MAX 8
#define TRACE_CALLS_LISTED 512 /* calls with higher numbers are always measured */

struct trace_calls {
	unsigned int count; /* 0: all */
	uint32_t numbers[TRACE_CALLS_MAX];
};

struct program_knobs {
	uint32_t threads_max, cpus_max;
	uint32_t stack_registers;    /* saved registers above task->stack, bytes; 0: not known */
	unsigned int registers_kept; /* enum registers_kept */
	unsigned int parts;	     /* bits 1 << PART_x */
	uint32_t latency_kinds;	     /* bits 1 << LATENCY_x, of --trace */
	uint32_t turn_first;	     /* first turn of this set, see bpf_text/latency.h */
	uint32_t thread_flags;	     /* kernel_thread_flags_of() */
	uint32_t block_argument;     /* argument that is the request, as block.bpf.c has it */
	bool read_into_map, probe_read_kernel, thread_slots, process_totals;
	uint64_t slower_ns;		     /* events as long are reported singly; 0: none */
	const char *trace_pids, *trace_tids; /* traced ids with commas between; NULL: all */
	struct trace_calls trace_calls;
	const struct own_probes *own; /* probes of the user's own, or NULL */
	struct pid_namespace pids;
};

/* Returns the number of threads that stands for this one and others in the text: beside the sizes
 * of maps it has only a power of two above it. */
uint32_t program_near_threads(uint32_t threads_max);

void program_text_write(const struct probe_plan *plan, const struct field_layout *layout,
			const struct program_knobs *knobs, struct text *to);

/* Writes the header tree below work_dir/types and points libbcc (BCC_KERNEL_SOURCE) to it. */
int program_headers_write(const char *work_dir, uint32_t kernel_code, struct error *e);

/* Compiles the text and makes its maps, after program_headers_write(). NULL: libbcc has printed
 * why. The module is the caller's to bpf_module_destroy(). */
void *program_compile(const struct bcc_library *bcc, const struct program_knobs *knobs,
		      const struct text *text);

#endif
