/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out what a thread waits for: when it is sampled, once for each wait in a system call and
 * again every second of the wait.
 *
 * A table has a row for each system call that needs a function of its own (wait_table.c); all other
 * calls wait for the file that their descriptor refers to (file_kinds.c).
 *
 * Sockets come from tables by inode (sock_diag, one for each protocol in each network namespace),
 * other ends from a walk over /proc/PID/fd (holders). Both are read in pieces with a budget for
 * each scan; results that are not there yet are requested again in the next scan. Memory of threads
 * is read through proc/user_memory alone, which reads nothing but pages that are in memory. The
 * rules of sample/wait_rule.h use the result as numbers (struct wait_facts), found without the
 * search for other ends.
 */
#ifndef TSNAP_WAITS_WAITS_H
#define TSNAP_WAITS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

struct cache;
struct lock_list;
struct text;

/* One wait that is looked up: the parameters, and the result that describers fill in. */
struct wait {
	struct waits *waits;
	int64_t pid, tid, now_ns;
	int64_t start_ns; /* start of the thread: with tid, its identity */
	bool compat;
	uint64_t episode;   /* number of the switch-out: differs for each wait */
	const int64_t *arg; /* arguments of the call */
	int fd;		    /* descriptor among the arguments; -1: none */
	const char *link;   /* link of fd; NULL: not known */
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

/* Makes an empty state. comms: names of other threads (proc/comm.h); like proc_root it must outlive
 * the state. */
struct waits *waits_new(const char *proc_root, struct cache *comms);
void waits_free(struct waits *waits);
void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns);

/* Fills the fields connection, remote, waits_on, waits_on_pid, inflight, filetype and wchan that
 * are in needs; syscall, fd and filename must be filled before. */
void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns);

/* Fills the wait class, the field why (sample/wait_rule.h), of a thread in S and in a system call.
 * Four ways: by the call alone; as less than a second ago, when the thread waited in the same call
 * for the same descriptor or lock; as another thread of the process that waits for the same; or by
 * what the thread waits for. The first three need syscall and return whether they decided; the last
 * needs fd and filename, too, and may leave why absent until a later scan, as its time in a scan is
 * limited. */
bool waits_class_by_call(struct waits *waits, struct sample *sample);
bool waits_class_as_before(struct waits *waits, struct sample *sample, int64_t now_ns);
bool waits_class_of_peer(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
			 int64_t now_ns);
void waits_class(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 int64_t now_ns);
/* True if the wait class that was found last for this thread may change in a later scan though the
 * thread sleeps on. */
bool waits_class_changes(const struct waits *waits, int64_t tid);
/* Sets the time that waits_class() has in the scan of now_ns. */
void waits_give_time(struct waits *waits, int64_t now_ns, int64_t time_ns);
/* Sets the number below which local ports are taken for a server's; DAEMON_PORTS_DEFAULT at
 * first. */
void waits_set_daemon_ports(struct waits *waits, int64_t ports);

/* Fills *facts with the result of waits_fill() for that sample, as numbers. anew: read now, without
 * a search for other ends. False: not known yet. */
bool waits_facts(struct waits *waits, const struct sample *sample, const struct lookup_hint *hint,
		 bool anew, int64_t now_ns, struct wait_facts *facts);

/* Monotonic time at which the facts of the thread's wait become stale; where none are known, time
 * of the next lookup. sequence: of the thread's switch-out. */
int64_t waits_until(struct waits *waits, int64_t tid, uint64_t sequence, int64_t now_ns);

/* Fills again what a thread waits for, in a sample that waits_fill() has filled before in the same
 * wait; it holds until waits_until(). False: it is not all known yet, or the wait class may be
 * another one. */
bool waits_renew(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns);

/* A lock of a language's runtime that a futex belongs to, and its holder. */
struct runtime_lock {
	const char *name;   /* static */
	uint64_t address;   /* 0: the process has only one such lock */
	bool free;	    /* no thread holds it */
	int64_t holder;	    /* id of a thread, as its process knows it; 0: not known */
	int64_t turn;	    /* a number that differs for each holder */
	bool changing;	    /* the holder may be about to change */
	bool later;	    /* not found yet: a later scan may find it */
	char location[176]; /* position of the holder in its program; "": not known */
};

/* True if the thread waits for a runtime's lock. with_location: fill lock->location. */
typedef bool runtime_lock_finder(void *finder, const struct wait *wait, uint64_t futex,
				 bool with_location, struct runtime_lock *lock);

/* Sets the function that finds locks of runtimes; there is none at first. */
void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder);

/* True if the system call that the sample sleeps in has a time limit; false for calls that don't
 * wait for locks. */
bool wait_has_limit(const struct sample *sample);
/* True if only a thread can end the wait in that call, apart from signals. A read waits so if what
 * it waits for is an event (WAIT_EVENT). */
bool wait_threads_end(const struct sample *sample);

/* -errno of the kernel's refusal to list sockets; 0: it lists them. */
int waits_sockets_error(const struct waits *waits);

/* --- for functions that describe waits */

typedef void wait_describer(struct wait *wait);

/* The function that describes waits in that call. NULL: the call waits for the file that its
 * descriptor refers to. syscall_name: interned. */
wait_describer *wait_describer_find(const char *syscall_name);

const char *wait_root(const struct wait *wait);
bool wait_own_ids(const struct wait *wait); /* ids in /proc are those of system calls */
struct sockets *wait_sockets(const struct wait *wait);
struct holders *wait_holders(const struct wait *wait);
struct lock_list *wait_file_locks(const struct wait *wait);
/* Calls the runtime_lock_finder for the futex; false if there is none. */
bool wait_runtime_lock(const struct wait *wait, uint64_t futex, struct runtime_lock *lock);
/* Reads from the thread's memory. False: not all of it could be read. */
bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size);
/* Text of /proc/PID/fdinfo/FD for wait->fd, proc(5), valid until the next call; "" if it can't be
 * read. *cut, unless NULL: the text is truncated. */
const char *wait_fdinfo(const struct wait *wait, bool *cut);
/* An argument of the call as an address; of a 32-bit call, its lower 32 bits. */
uint64_t wait_address(const struct wait *wait, int arg);

/* Adds another descriptor of the thread to the result. True if only the process itself can make it
 * ready: an eventfd, or a pipe whose other end it has, too. */
bool descriptor_describe(struct wait *wait, int fd);
/* Describes the file that wait->fd and wait->link refer to. */
void file_describe(struct wait *wait);
/* Adds `before` and the thread with its name: " by 123 worker". */
void wait_add_thread(struct wait *wait, const char *before, int64_t tid);
/* The thread that has this id in the pid namespace of the waiting thread; 0: there is none. */
int64_t thread_of_inner(const struct wait *wait, int64_t inner);

/* Threads that have no other ids than those that /proc shows (inner_ids.c): a cache of the
 * caller's. */
void outer_threads_init(struct cache *threads);
struct cache *wait_outer_threads(const struct wait *wait);

/* Words of locks that threads wait for (futex.c): a cache of the caller's for all waits. */
void locks_init(struct cache *locks);
struct cache *wait_locks(const struct wait *wait);

/* Threads of servers and their connections (served.c): a cache of the caller's for all waits. */
void served_init(struct cache *served);
struct cache *wait_served(const struct wait *wait);
/* Notes the connection if a thread of a server waits for it. */
void served_note(struct cache *served, const struct wait *wait, int64_t daemon_ports);
/* True if a connection is noted for the thread. */
bool served_has(struct cache *served, int64_t tid);
/* Adds the thread's noted connection to the result if its client waits for an answer. */
void served_describe(struct cache *served, struct wait *wait);

/* Epoll sets that take long to list (poll_set.c): a cache of the caller's for all waits. */
void long_sets_init(struct cache *sets);
struct cache *wait_long_sets(const struct wait *wait);

/* Counts the requests that only let time pass, among the last `count` that the io_uring of wait->fd
 * took. taken: number of requests that it has ever taken; mask: the ring's. */
int64_t ring_timeouts(const struct wait *wait, uint32_t taken, uint32_t mask, int64_t count);

/* One word for the file that a link of /proc/PID/fd refers to ("socket"); NULL for a path: see
 * file_type.h. */
const char *file_word(const char *link);

wait_describer futex_describe, futex_wait_describe, futex_waitv_describe;
wait_describer poll_describe, select_describe, epoll_describe;
wait_describer child_describe, child_id_describe;
wait_describer uring_describe, aio_describe;
wait_describer flock_describe, fcntl_describe;
wait_describer timer_describe, signal_describe;

#endif
