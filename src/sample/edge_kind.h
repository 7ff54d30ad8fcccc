/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of edges in wait chains: what is between a thread and the one that it waits for. A new kind
 * needs a row here, and the wait object that makes it (waits/wait_object.h). */
#ifndef TSNAP_SAMPLE_EDGE_KIND_H
#define TSNAP_SAMPLE_EDGE_KIND_H

struct sample;
struct text;

/* Properties of a kind. */
enum edge_trait {
	ENDS_CHAIN = 1, /* the edge leads to no thread */
	/* a lock's name means the same lock in all processes, which an address does not */
	LOCK_OF_HOST = 2,
	MARKS_DOUBT = 4, /* texts mark a link that is not certain, as others of its kind are */
	/* lock of a runtime: who waits for it never holds it */
	OF_RUNTIME = 8,
	SLEEPS_BRIEFLY = 16, /* each of these sleeps is much shorter than the wait */
	NEVER_CERTAIN = 32,  /* that it is waited for is never certain */
	SLEEPS_ONCE = 64,    /* the wait is one sleep, and has its time limit */
};

/* Columns of the table: id; traits; function that distinguishes one lock from another (edge_kind.c;
 * NULL: it is no lock); what whoever is waited for has not done yet (NULL: answered); then a part
 * of the help of column blocker_kind: text before the name, the name, and text after it. */
/* clang-format off */
#define EDGE_KIND_ROWS(ROW) \
	ROW(EDGE_MUTEX,       MARKS_DOUBT | SLEEPS_ONCE,   lock_address, NULL,              ": ", "mutex", "") \
	ROW(EDGE_GIL,         OF_RUNTIME | SLEEPS_BRIEFLY, lock_name,    NULL,              ", ", "GIL", " (Python's)") \
	ROW(EDGE_MONITOR,     OF_RUNTIME,                  lock_monitor, NULL,              ", ", "monitor", " (Java's)") \
	ROW(EDGE_JAVA_LOCK,   OF_RUNTIME | SLEEPS_ONCE,    lock_monitor, NULL,              ", ", "Java lock", \
	    " (of java.util.concurrent)") \
	ROW(EDGE_PYTHON_LOCK, OF_RUNTIME | SLEEPS_ONCE,    lock_monitor, NULL,              ", ", "Python lock", \
	    " (threading.RLock)") \
	ROW(EDGE_THREAD,      0,                           NULL,         "ended",           ", ", "thread", " (its end)") \
	ROW(EDGE_FILE_LOCK,   LOCK_OF_HOST,                lock_file,    NULL,              ", ", "file lock", "") \
	ROW(EDGE_DATABASE,    0,                           lock_waits_on, NULL,            ", ", "database lock", \
	    " (PostgreSQL's)") \
	ROW(EDGE_KERNEL_LOCK, LOCK_OF_HOST,                lock_kernel,  NULL,              ", ", "kernel lock", " (Linux 5.10)") \
	ROW(EDGE_CHILD,       0,                           NULL,         "ended",           ", ", "child", "") \
	ROW(EDGE_PIPE,        0,                           NULL,         "read or written", ", ", "pipe", "") \
	ROW(EDGE_SOCKET,      0,                           NULL,         NULL,              ", ", "socket", "") \
	ROW(EDGE_SERVER,      0,                           NULL,         NULL,              ", ", "server", \
	    " (FUSE, fanotify, a journal, ...)") \
	ROW(EDGE_WAKER,       0,                           NULL,         NULL,              ", ", "waker", \
	    " (nothing is known but who ended the last waits)") \
	ROW(EDGE_IO,          ENDS_CHAIN,                  NULL,         NULL,              "; ", "io", ": a block device") \
	ROW(EDGE_CPU,         ENDS_CHAIN,                  NULL,         NULL,              ", ", "cpu", \
	    ": a CPU that the other one runs on") \
	ROW(EDGE_QUOTA,       ENDS_CHAIN | NEVER_CERTAIN,  NULL,         NULL,              ", ", "quota", \
	    ": the CPU quota of a control group")
/* clang-format on */

#define EDGE_KIND_ID(id, ...) id,
enum edge_kind { EDGE_NONE, EDGE_KIND_ROWS(EDGE_KIND_ID) EDGE_KIND_COUNT };
#undef EDGE_KIND_ID

/* Help of column blocker_kind. */
#define EDGE_KIND_WORDS(id, traits, lock, not_done, before, name, after) before name after
#define EDGE_KIND_HELP "what is between the two" EDGE_KIND_ROWS(EDGE_KIND_WORDS)

struct edge_kind_row {
	const char *name;    /* value of column blocker_kind; NULL: of EDGE_NONE */
	unsigned int traits; /* enum edge_trait */
	const char *not_done;
	/* Adds the sample's lock as the list of locks names it ("mutex 0x55d0c8"); nothing, if that
	 * is not known. */
	void (*lock_add)(const struct sample *sample, const char *name, struct text *text);
};

extern const struct edge_kind_row edge_kinds[EDGE_KIND_COUNT];

/* Follows the name of a link's kind with MARKS_DOUBT. */
#define EDGE_DOUBT "?"

/* The kind with that name; EDGE_NONE: there is none, or name is NULL. */
enum edge_kind edge_kind_of(const char *name);

#endif
