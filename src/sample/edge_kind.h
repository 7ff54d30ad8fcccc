/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of edges in wait chains: what is between a thread and the one that it waits for. A new kind
 * needs a row here, and the wait object that makes it (waits/wait_object.h). */
#ifndef TSNAP_SAMPLE_EDGE_KIND_H
#define TSNAP_SAMPLE_EDGE_KIND_H

#include <stdbool.h>

struct sample;
struct text;

/* Columns of the table: id; whether a chain ends there, as the edge leads to no thread; function
 * that distinguishes one lock from another (edge_kind.c; NULL: it is no lock); whether the lock's
 * name means the same lock in all processes, which an address does not; whether texts mark a link
 * that is not certain, as others of its kind are; then a part of the help of column blocker_kind:
 * text before the name, the name, and text after it. */
/* clang-format off */
#define EDGE_KIND_ROWS(ROW)                                                                                                         \
	ROW(EDGE_MUTEX,       false, lock_address, false, true,  ": ", "mutex", "")                                                 \
	ROW(EDGE_GIL,         false, lock_name,    false, false, ", ", "GIL", " (Python's)")                                        \
	ROW(EDGE_MONITOR,     false, lock_monitor, false, false, ", ", "monitor", " (Java's)")                                      \
	ROW(EDGE_THREAD,      false, NULL,         false, false, ", ", "thread", " (its end)")                                      \
	ROW(EDGE_FILE_LOCK,   false, lock_file,    true,  false, ", ", "file lock", "")                                             \
	ROW(EDGE_KERNEL_LOCK, false, lock_kernel,  true,  false, ", ", "kernel lock", " (Linux 6.16)")                              \
	ROW(EDGE_CHILD,       false, NULL,         false, false, ", ", "child", "")                                                 \
	ROW(EDGE_PIPE,        false, NULL,         false, false, ", ", "pipe", "")                                                  \
	ROW(EDGE_SOCKET,      false, NULL,         false, false, ", ", "socket", "")                                                \
	ROW(EDGE_WAKER,       false, NULL,         false, false, ", ", "waker", " (nothing is known but who ended the last waits)") \
	ROW(EDGE_IO,          true,  NULL,         false, false, "; ", "io", ": a block device")                                    \
	ROW(EDGE_CPU,         true,  NULL,         false, false, ", ", "cpu", ": a CPU that the other one runs on")                 \
	ROW(EDGE_QUOTA,       true,  NULL,         false, false, ", ", "quota", ": the CPU quota of a control group")
/* clang-format on */

#define EDGE_KIND_ID(id, ...) id,
enum edge_kind { EDGE_NONE, EDGE_KIND_ROWS(EDGE_KIND_ID) EDGE_KIND_COUNT };
#undef EDGE_KIND_ID

/* Help of column blocker_kind. */
#define EDGE_KIND_WORDS(id, ends, lock, of_host, doubt, before, name, after) before name after
#define EDGE_KIND_HELP "what is between the two" EDGE_KIND_ROWS(EDGE_KIND_WORDS)

struct edge_kind_row {
	const char *name; /* value of column blocker_kind; NULL: of EDGE_NONE */
	bool ends;
	/* Adds the sample's lock as the list of locks names it ("mutex 0x55d0c8"); nothing, if that
	 * is not known. */
	void (*lock_add)(const struct sample *sample, const char *name, struct text *text);
	bool lock_is_of_host;
	bool doubt_is_marked;
};

extern const struct edge_kind_row edge_kinds[EDGE_KIND_COUNT];

/* Follows the name of a link's kind where doubt_is_marked. */
#define EDGE_DOUBT "?"

/* The kind with that name; EDGE_NONE: there is none, or name is NULL. */
enum edge_kind edge_kind_of(const char *name);

#endif
