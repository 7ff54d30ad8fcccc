/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Things that threads wait for: one file for each kind, which ends with the kind's entry. An entry
 * says how a wait for such a thing is recognised, describes it, and leads to whoever is waited for.
 * The table of entries is in wait_object.c; all that knows no kinds is in waits.c.
 */
#ifndef TSNAP_WAITS_WAIT_OBJECT_H
#define TSNAP_WAITS_WAIT_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/text.h"
#include "proc/cgroup.h"
#include "proc/mounts.h"
#include "proc/user_memory.h"
#include "sample/app_lock.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"
#include "waits/chain.h"
#include "waits/holders.h"
#include "waits/lock_list.h"
#include "sample/runtime_lock.h"
#include "waits/wait_peers.h"

/* State of the search for wait classes. */
struct wait_classes {
	struct index rules; /* interned name of a call to the rule that it decides by, or 0 */
	struct wait_peers peers;
	int64_t daemon_ports;
	int64_t scan_ns, left_ns; /* the present scan, and the time that classes have left in it */
	int64_t locks_left_ns;	  /* time that it has left for locks of runtimes */
	int64_t changes_tid;	  /* see waits_class_changes() */
};

/* What lasts from scan to scan. */
struct waits {
	const char *root;
	bool own_ids; /* ids in /proc are those that system calls of this process use */
	struct cache *comms;
	struct cache last_waits;
	struct holders holders;
	struct lock_list file_locks;
	struct user_memory memory;
	struct cgroup_mount memory_group; /* mount of the memory controller */
	bool memory_group_looked_for;
	runtime_lock_finder *runtime_locks; /* NULL: none */
	void *runtime_lock_finder;
	app_lock_finder *app_locks;    /* NULL: none */
	app_serves_finder *app_serves; /* likewise */
	void *app_finder;
	struct wait_classes classes;
	struct text text;
};

/* One wait that is looked up: the parameters, and the result that describers fill in. */
struct wait {
	struct waits *waits;
	int64_t pid, tid, now_ns;
	int64_t start_ns; /* start of the thread: with tid, its identity */
	bool compat;
	uint64_t episode;   /* number of the switch-out: differs for each wait */
	const char *call;   /* name of the call; NULL: it is in none */
	const int64_t *arg; /* arguments of the call */
	int fd;		    /* descriptor among the arguments; -1: none */
	const char *link;   /* link of fd, or path of the call; NULL: not known */
	bool anew;	    /* values that this scan has read before are read again */
	bool numbers_only; /* the text is not used, and the process at the other end not searched */
	/* the result */
	struct text *text;
	struct wait_facts facts;
	const struct socket_facts *socket; /* socket of fd; until the next socket_find() */
	const char *connection, *remote;   /* connection that decides about a set; NULL: none */
	bool pending;			   /* a later scan knows more */
	bool of_thread; /* the result is of this thread alone: others in the same call may have
			   another */
};

typedef void wait_describer(struct wait *wait);

/* A system call, of any architecture. */
struct wait_call {
	const char *name;
	wait_describer *describe; /* NULL: it waits for the file that its descriptor refers to */
	int limit;		  /* index of the argument that is a time limit; 0: it has none */
};

struct wait_link {
	const char *beginning; /* of the link in /proc/PID/fd */
	const char *word;      /* for the column filetype; NULL: the type of the file itself */
};

/* The later waits of a thread in the same call, with the same first argument, that have the same
 * wait class, for a second. */
enum wait_class_serves {
	SERVES_FILE, /* for the same file */
	SERVES_LOCK, /* all; but while the thread serves a connection, its client decides */
	SERVES_SET,  /* with the same second argument, until the set is read again */
	SERVES_NONE,
};

struct wait_object {
	enum wait_kind kind; /* for the rules of sample/wait_rule_table.c */
	enum wait_class_serves serves;
	/* A wait is for this thing if the first of these says so: its thread is stopped; the kernel
	 * function that /proc/TID/wchan shows (the registers may still show a call that the thread
	 * does not wait in, and a file may not be open yet), without ".isra.0" and the like; the
	 * call; the file of the call's descriptor, by its link (the longest beginning that fits) or
	 * its type. Each list ends with an empty row. */
	const char *const *functions;
	bool faults; /* page faults wait in its functions, too: the kernel's stack shows which */
	const struct wait_call *calls;
	const struct wait_link *links;
	const char *file_type;
	wait_describer *describe; /* of functions and files */
	/* Describes the wait if the kernel's stack of a thread that sleeps in D, is runnable (runs)
	 * or has a page fault shows it, whatever its registers show. False: the wait is for
	 * something else. */
	bool (*of_stack)(struct wait *wait, const char *stack, bool runs);
	/* Describes the wait of a thread that fell asleep in its call in S, if it waits for
	 * something else by now, without a switch. False: it does not. It is asked again as long as
	 * the thread sleeps. */
	bool (*of_sleeper)(struct wait *wait);
	/* Describes the wait of a thread that polls, but asks and serves nobody through what it
	 * polls, where its program says elsewhere what it waits for. False: it does not. */
	bool (*of_idle_set)(struct wait *wait);
	/* Finds the connection of wait->fd. NULL: such things have none. */
	const struct socket_facts *(*connection)(struct wait *wait);
	bool (*is_own)(const struct wait *wait); /* only the process itself can make it ready */
	bool nests;				 /* may contain other descriptors, and itself */
	/* Fills the edge to whoever is waited for, as far as facts show it. A pid without a tid is
	 * a process whose thread has to be chosen, and sure is then for a process with one thread.
	 * NULL: there is no edge. */
	void (*edge)(const struct wait_facts *facts, const struct sample *sample,
		     struct edge *edge);
	enum edge_kind ends; /* edges to the other end; links have its inode. EDGE_NONE: no ends */
	bool passes_on;	     /* the holder may change meanwhile: it is read anew in each scan */
	bool searched;	     /* finding who is waited for may take several scans */
	/* only threads can end waits for it and waits in its calls, apart from signals and time: no
	 * packet, no disk. The last waker is an edge, if there is no better one */
	bool threads_end;
	struct cache *known; /* what is known of such things; NULL: none. The engine sweeps it */
	int64_t known_ns;    /* how long that is kept while it is not used; 0: as all else */
	void (*sweep)(int64_t now_ns, int64_t idle_ns); /* of what else is known; NULL: nothing */
	void (*done)(void);
	uint64_t apart; /* bits of its calls' first argument in which waits for one thing differ */
};

/* All objects: NAME for NAME_object. */
/* clang-format off */
#define WAIT_OBJECTS(OBJECT) \
	OBJECT(aio) OBJECT(autofs) OBJECT(child) OBJECT(core_dump) OBJECT(disk) OBJECT(epoll) OBJECT(event) \
	OBJECT(eventfd) OBJECT(exec) OBJECT(fanotify) OBJECT(file) OBJECT(file_lock) OBJECT(file_server) OBJECT(frozen) \
	OBJECT(freezer) OBJECT(frozen_fs) OBJECT(fuse) OBJECT(futex) OBJECT(journal) OBJECT(kernel_work) OBJECT(lease) \
	OBJECT(memory) OBJECT(memory_map) OBJECT(messages) OBJECT(pidfd) OBJECT(pipe) OBJECT(poll) OBJECT(postgres) OBJECT(seccomp) OBJECT(semaphores) OBJECT(signal) \
	OBJECT(socket) OBJECT(stopped) OBJECT(terminal) OBJECT(thread) OBJECT(timer) OBJECT(timerfd) OBJECT(uring) \
	OBJECT(userfault) OBJECT(vfork)
/* clang-format on */

#define WAIT_OBJECT_EXTERN(name) extern const struct wait_object name##_object;
WAIT_OBJECTS(WAIT_OBJECT_EXTERN)

/* --- how a wait's object is found */

/* The call of that name, and its object; NULL: it waits for its descriptor's file, and more than
 * threads can end that. */
const struct wait_call *wait_call_find(const char *name, const struct wait_object **object);
/* True if the call that the sample sleeps in has a time limit. */
bool wait_has_limit(const struct sample *sample);
/* The object that a thread waits for which sleeps in that kernel function, whatever its call; NULL:
 * the function shows none. */
const struct wait_object *wait_object_of_function(const char *function);
/* The object of a file's link, never NULL; *row: the link's row. */
const struct wait_object *wait_object_of_link(const char *link, const struct wait_link **row);
/* Call of_stack(), of_sleeper() or of_idle_set() of the objects. */
bool wait_describe_of_stack(struct wait *wait, const char *stack, bool runs);
bool wait_describe_of_sleeper(struct wait *wait);
bool wait_describe_of_idle_set(struct wait *wait);
/* Describes a wait for that object. */
void wait_describe(struct wait *wait, const struct wait_object *object, wait_describer *describe);
/* Describes the file that wait->fd and wait->link refer to. */
void file_describe(struct wait *wait);
/* Adds another descriptor of the thread to the result. True if only the process itself can make it
 * ready: an eventfd, or a pipe whose other end it has, too. */
bool descriptor_describe(struct wait *wait, int fd);
/* Describes a wait for the end of another thread of the process. */
void wait_for_thread(struct wait *wait, int64_t tid);
/* A number for the other end with that inode, which an edge of that kind leads to; never 0. */
uint64_t wait_end(enum edge_kind kind, int64_t inode);
/* The number of the other end that a link leads to. 0: it has none, or is NULL. */
uint64_t wait_end_of_link(const char *link);

/* --- for describers */

/* Reads from the thread's memory. False: not all of it could be read. */
bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size);
/* Text of /proc/PID/fdinfo/FD for wait->fd, proc(5), valid until the next call; "" if it can't be
 * read. *cut, unless NULL: the text is truncated. */
const char *wait_fdinfo(const struct wait *wait, bool *cut);
/* The number after a line's key there; ABSENT. */
int64_t wait_fdinfo_number(const struct wait *wait, const char *key, int base);
/* An argument of the call as an address; of a 32-bit call, its lower 32 bits. */
uint64_t wait_address(const struct wait *wait, int arg);
/* True if the process is in the thread's namespace of that kind ("pid", "mnt"); pid 0: tsnap is. */
bool wait_shares_namespace(const struct wait *wait, const char *kind, int64_t pid);
/* Adds `before` and the thread with its name: " by 123 worker". */
void wait_add_thread(struct wait *wait, const char *before, int64_t tid);
/* Finds the mount of the call's descriptor or path. */
bool wait_mount(const struct wait *wait, struct mount_facts *mount);
/* The process that has such an open file (holders_find_file()); 0: none is found, or not yet. The
 * facts get the number of those that have it. */
int64_t wait_find_file(struct wait *wait, const struct holder_file *file, const char *which);
/* Adds the process that the kernel waits for, if pid is one, as wait_add_thread() does. */
void wait_on_server(struct wait *wait, const char *before, int64_t pid);
/* The thread that has this id in the pid namespace of the waiting thread; 0: there is none. */
int64_t thread_of_inner(const struct wait *wait, int64_t inner);
/* True: an is_own for files that only the process itself can make ready. */
bool wait_is_own(const struct wait *wait);

/* --- what objects share */

/* Sweeps, or frees, what is known of objects. */
void wait_objects_sweep(int64_t now_ns, int64_t idle_ns);
void wait_objects_done(void);

/* Connections that threads of servers serve (served.c). */
extern struct cache served;
/* Notes the connection if a thread of a server waits for it. */
void served_note(const struct wait *wait);
/* True if a connection is noted for the thread. */
bool served_has(int64_t tid);
/* The TCP connection on which the thread owes an answer, as its client's column connection has it;
 * NULL: none is known. searches: it may be searched for, where none is noted. */
const char *served_connection(struct wait *wait, bool searches);
/* Adds the thread's noted connection to the result if its client waits for an answer. */
void served_describe(struct wait *wait);

/* True if a thread with that stack in D waits for the thaw of a file system. Pure. */
bool frozen_fs_is_waited_for(const char *stack);
/* The object of files on that mount if a server has them; NULL: none has. */
const struct wait_object *wait_object_of_mount(const struct mount_facts *mount);
/* An edge to a process that the kernel waits for, if that is the only one which can answer. */
void server_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge);
/* Makes an edge to the process, or the thread, that has the other end; there is none to a process
 * that has both. */
void edge_to_end(enum edge_kind kind, const struct wait_facts *facts, const struct sample *sample,
		 struct edge *edge);
/* An edge to the device that the thread's I/O is under way on. */
void disk_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge);

#endif
