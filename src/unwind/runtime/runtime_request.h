/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser about the memory of a process that runs Python or Java, and its answers.
 * With each request come descriptors of the process' memory (/proc/TID/mem, which CAP_SYS_PTRACE
 * allows to open), so that a parser reads no other process' memory, and may be restarted at any
 * time. All that is followed there, from pointer to pointer, is followed without privileges, and no
 * word takes a message of its own. What a parser knows of a process it keeps by pid, as long as
 * exports and distance are the same.
 *
 * Memory can make its reader wait for ever, for a file system of its owner's. GILs and monitors are
 * read only in pages that are present, by /proc/TID/pagemap. For other requests a parser that does
 * not answer within RUNTIME_NS is given up; its process gets no more requests as long as its
 * standing is kept, and for a while no process does that has not answered before.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_REQUEST_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "parser/parser.h"
#include "unwind/elf/elf_exports.h"
#include "unwind/unwinder.h"

#define JAVA_HEAPS_MAX 8
#define JAVA_CODES_MAX 4096 /* addresses of one request */
#define GILS_MAX 16
#define PYTHON_LOCATION_SIZE 176
#define RUNTIME_NS (500 * 1000000ll)

enum runtime_request_kind {
	RUNTIME_PYTHON_STACK = PARSER_RUNTIMES, /* struct python_stack_answer */
	RUNTIME_GILS,				/* struct gils_answer */
	RUNTIME_GIL,				/* struct gil_answer */
	RUNTIME_PYTHON_LOCK,			/* struct python_lock_answer */
	RUNTIME_JAVA_CODE,			/* struct java_code_answer */
	RUNTIME_JAVA_LAYOUT,			/* struct java_layout_answer */
	RUNTIME_JAVA_MONITOR,			/* struct java_monitor_answer */
};

struct runtime_request {
	uint32_t kind;
	uint32_t count; /* addresses that follow the request */
	int64_t pid, tid;
	int64_t now_ns;
	uint64_t distance; /* addresses in the process, less those that are exported */
	struct runtime_exports exports;
	/* The members from here on are for some kinds only: */
	uint64_t id;	     /* thread id, as its process knows it */
	uint64_t address;    /* address of a GIL, or of the semaphore of a lock */
	uint64_t episode;    /* wait episode of the thread: runtime_locks.h */
	uint32_t calls_left; /* reads of memory that are left */
	uint8_t with_location;
	uint8_t anew; /* read again what may have changed */
};

struct python_stack_frame {
	uint64_t mark; /* address of the mark that its call of the interpreter has on the stack */
	uint32_t name; /* offset of the name in the texts */
	uint32_t unused;
};

#define PYTHON_TEXTS_BYTES \
	(PARSER_MESSAGE_MAX - 32 - STACK_FRAMES_MAX * sizeof(struct python_stack_frame))

struct python_stack_answer {
	uint64_t work;
	uint32_t count, text_bytes;
	uint8_t known;	/* the interpreter is of a version that is known */
	uint8_t broken; /* a part could not be read */
	uint8_t unused[14];
	struct python_stack_frame frames[STACK_FRAMES_MAX]; /* innermost first */
	char texts[PYTHON_TEXTS_BYTES];			    /* sent up to text_bytes */
};

_Static_assert(sizeof(struct python_stack_answer) == PARSER_MESSAGE_MAX, "one message");

struct gils_answer {
	uint64_t gils[GILS_MAX]; /* GILs of interpreters, which may share one */
	uint32_t count;
	uint32_t locked; /* offset of `locked` in a GIL */
	uint8_t known;
};

struct python_gil {
	uint64_t holder;   /* id of a thread, as the process knows it */
	uint64_t switches; /* times that another thread got it */
	uint8_t changing;  /* the GIL's mutex is held: the holder may be about to change */
	/* line that the holder is at, "app.py:88"; "": not known */
	char location[PYTHON_LOCATION_SIZE];
};

struct gil_answer {
	uint8_t found;
	struct python_gil gil;
};

/* A threading.RLock that a thread waits for. */
struct python_lock_answer {
	uint8_t requested; /* what the thread waits for could be read */
	uint8_t found;	   /* it waits for such a lock, whose owner is known */
	uint8_t lost;	   /* the interpreter has no such thread (any more) */
	uint64_t address;  /* of the lock */
	uint64_t owner;	   /* as the lock has it */
	uint64_t holder;   /* id of the owner, as the process knows it; 0: not known */
	char location[PYTHON_LOCATION_SIZE]; /* line that the holder is at; "": not known */
};

/* Bits of a word about code at an address; the lower half: how many words its frame has. */
#define JAVA_CODE_FOUND (1ull << 33)
#define JAVA_CODE_INCOMPLETE (1ull << 34)
#define JAVA_CODE_INTERPRETER (1ull << 35)

struct java_range {
	uint64_t first, end;
};

/* Answer for the addresses that follow the request. */
struct java_code_answer {
	struct java_range heaps[JAVA_HEAPS_MAX]; /* ranges that may have code */
	uint32_t heap_count, count, calls_used;
	uint8_t known;			/* the JVM's layout is known */
	uint64_t codes[JAVA_CODES_MAX]; /* words for the addresses, in their order */
};

struct java_layout_answer {
	uint8_t has_monitors;
};

#define JAVA_CLASS_SIZE 48

/* A monitor, or a lock of java.util.concurrent. */
struct java_monitor {
	uint64_t address;
	uint64_t owner; /* owner as the monitor has it; 0: nobody */
	int64_t holder; /* thread id of owner, as the process knows it; 0: not known */
	/* "ReentrantLock": what lock it is; its owner, a JavaThread, is 0 if that is a virtual
	 * thread. "": a monitor */
	char class[JAVA_CLASS_SIZE];
	char object[JAVA_CLASS_SIZE]; /* class of the monitor's object; "": not known */
};

struct java_monitor_answer {
	uint8_t known;	   /* false: the layout has to be requested first */
	uint8_t requested; /* the thread's monitor could be read */
	uint8_t waits;	   /* the thread waits for monitor */
	uint8_t later;	   /* it does not wait for one that is known, but may do so soon */
	struct java_monitor monitor;
};

struct runtime_reader {
	const char *proc_root;
	struct parser *parser; /* NULL: nothing is read, unless service is set */
	/* Service called in this process where there is no parser; or NULL */
	parser_service *service;
	int64_t strangers_ns; /* before that time only processes that have answered get requests */
};

/* Experience with reading a process' memory; zeroed at first. */
struct runtime_standing {
	bool answered, ended;
};

/* Sends a request, with request->count addresses, and fills answer, which has so many bytes.
 * Returns how many bytes came, or -errno. */
ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const uint64_t *addresses,
			void *answer, size_t size);

/* Sends a request of the services that list what a process has (goroutines, tasks), which may take
 * ten seconds. memory: descriptor of the process' memory; -1: the request needs none. 0: the answer
 * has exactly that many bytes; or -errno. */
int runtime_list_request(struct parser *parser, const void *request, size_t request_bytes,
			 int memory, void *answer, size_t bytes);

#endif
