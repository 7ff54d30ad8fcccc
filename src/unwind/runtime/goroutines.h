/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The goroutines of a Go process, grouped by state, wait reason and stack: they are read from the
 * runtime's list (unwind/elf/go_program.h) while the process runs. Everything in its memory may be
 * a lie: counts, time and depth are bounded, and each stack must lie within its goroutine's bounds.
 *
 * The layout of struct g is that of Go 1.13 and later (src/runtime/runtime2.go; two forms, which
 * differ by a word before its state). It is validated on the process before it is believed: each g
 * holds its own address and a number that no other one has. Stacks are followed by the depth of the
 * functions' frames, which the program's table of functions has (unwind/elf/go_program.h). A
 * goroutine counts if it was the same after its stack was read as before. A parser reads all of it.
 */
#ifndef TSNAP_UNWIND_RUNTIME_GOROUTINES_H
#define TSNAP_UNWIND_RUNTIME_GOROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "unwind/elf/go_program.h"
#include "unwind/file_request.h"

struct thread_memory;

#define GOROUTINE_FRAMES_MAX 128
#define GOROUTINE_GROUPS_MAX 65536
#define GOROUTINE_REASONS_MAX 96
#define GOROUTINE_REASON_SIZE 48
#define GOROUTINE_LABELS_SIZE 1024 /* with the NUL; more is cut */

/* A function at an address; name is NULL where there is none. */
struct goroutine_location {
	int32_t depth;	   /* depth of the function's frame; -1: not known */
	uint64_t function; /* hash of name */
	char *name;	   /* owned */
};

struct goroutine_group {
	uint64_t count;
	/* Longest wait of the group's goroutines. The runtime dates a wait when a collection of
	 * garbage meets it, with the time of the one before. -1: none is dated. */
	int64_t waited_ns;
	uint32_t state; /* number of the runtime's: goroutine_state_name() */
	uint8_t reason; /* index in `reasons`, if they wait */
	bool system;	/* goroutines of the runtime, which runtime.NumGoroutine leaves out */
	bool cut;	/* the stack is longer, or was lost */
	uint32_t frame_count;
	/* Stack of one of the goroutines: addresses as the file has them, innermost first;
	 * owned. */
	uint64_t *frames;
	char *labels; /* owned; NULL: it has none, or they were not asked for */
};

struct goroutine_counts {
	uint64_t program, system; /* goroutines in groups: of the program, of the runtime */
	uint64_t moved;		  /* goroutines that changed each time they were read */
	uint64_t unread;	  /* goroutines that could not be read, or make no sense */
	uint64_t left;		  /* goroutines left out: no time, or too many */
};

struct goroutines {
	char version[GO_VERSION_SIZE];
	char reasons[GOROUTINE_REASONS_MAX][GOROUTINE_REASON_SIZE];
	struct goroutine_group *groups; /* groups with most goroutines first */
	size_t group_count, group_capacity;
	struct index group_of;	/* hash of state, reason and stack, to position */
	struct keyed locations; /* struct goroutine_location, by address */
	struct goroutine_counts counts;
};

/* A process whose program is known. */
struct goroutine_source {
	struct thread_memory *memory; /* memory of the process */
	int64_t tid;		      /* argument of thread_memory_begin(); 0: it needs none */
	const struct go_program *program;
	bool labels;	   /* groups are of the same labels, too */
	uint64_t distance; /* addresses in the process, less those in the file */
	/* Requests the function at an address of the file. Returns 0 or -errno. */
	int (*request)(void *of, uint64_t address, struct file_go_frame_answer *answer);
	void *of;
};

/* Reads the goroutines out of a process' memory: in a parser. Returns 0, or -errno with *why, in
 * words. */
int goroutines_list(struct goroutines *goroutines, const struct goroutine_source *source,
		    const char **why);

/* The parser_service that reads goroutines, and answers requests about files as well. */
parser_service goroutine_service;

/* Reads the goroutines of a process by a parser of goroutine_service. pid: the process' id in
 * proc_root. labels: with the labels that runtime/pprof gave them. Returns 0, or -errno with e.
 * Zeroed goroutines are empty and valid. */
int goroutines_read(struct goroutines *goroutines, const char *proc_root, int64_t pid, bool labels,
		    struct parser *parser, struct error *e);
void goroutines_done(struct goroutines *goroutines);

const char *goroutine_state_name(uint32_t state);
bool goroutine_waits(uint32_t state); /* true: the reason counts */
/* Returns the name of the function at an address, or NULL. */
const char *goroutine_function(const struct goroutines *goroutines, uint64_t address);

#endif
