/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread waits for: told when it is sampled, once for each wait in a system call and again
 * every second of it.
 *
 * A table has a row for each system call that tells it in its own way (wait_table.c); of all others
 * it is the file behind their descriptor (file_kinds.c).
 *
 * Sockets come from tables by inode (sock_diag, one of a kind in each network namespace); other
 * ends from a walk over /proc/PID/fd (holders); both are read in pieces with a budget for each
 * scan, and answers that are not there yet are asked for again in the next one. Memory of
 * threads is read through proc/user_memory alone: pages that are there, nothing else. Rules of
 * sample/wait_rule.h look at the answer as numbers (struct wait_facts), found without the search
 * for other ends.
 */
#ifndef TSNAP_WAITS_WAITS_H
#define TSNAP_WAITS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

struct cache;
struct text;

/* Holders of file locks that others wait for, by the waiting process, as of a scan. */
struct file_locks {
	struct index holders;
	int64_t read_ns; /* 0: not read yet */
};

/* One question, on its way through those that answer it. */
struct wait {
	struct waits *waits;
	int64_t pid, tid, now_ns;
	int64_t start_ns; /* start of the thread: with tid, its identity */
	bool compat;
	uint64_t episode;   /* another one whenever the thread was switched */
	const int64_t *arg; /* arguments of the call */
	int fd;		    /* descriptor among them; -1: none */
	const char *link;   /* link of fd; NULL: not known */
	bool anew;	    /* what this scan has read before does not serve */
	bool numbers_only;  /* nobody reads the text: no search for who is at the other end */
	/* the answer */
	struct text *text;
	struct wait_facts facts;
	const struct socket_facts *socket; /* socket behind fd; until the next lookup of any */
	const char *connection, *remote;   /* the connection that decides about a set; NULL: none */
	bool pending;			   /* a later scan knows more */
	bool of_thread; /* threads of the process that wait so may have other answers */
};

/* comms: for the names of others (proc/comm.h); like proc_root it must stay. */
struct waits *waits_new(const char *proc_root, struct cache *comms);
void waits_free(struct waits *waits);
void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns);

/* Fills connection, remote, waits_on, waits_on_pid, inflight, filetype and wchan, as far as needs
 * asks for them; syscall, fd and filename must be there. */
void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns);

/* Fills why (sample/wait_rule.h) of a thread in S and in a system call: by the call alone; as it
 * was less than a second ago, when the thread waited in the same call for the same descriptor or
 * lock; as of another thread of the process that waits for the same; or by what it waits for. The
 * first three need syscall and return whether that decides; the last needs fd and filename, too,
 * and may leave why absent until a later scan, as a scan has only so much time for it. */
bool waits_class_by_call(struct waits *waits, struct sample *sample);
bool waits_class_as_before(struct waits *waits, struct sample *sample, int64_t now_ns);
bool waits_class_of_peer(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
			 int64_t now_ns);
void waits_class(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 int64_t now_ns);
/* True if that thread's why, of which waits_class() was asked, may be another in a later scan
 * though the thread sleeps on. */
bool waits_class_changes(const struct waits *waits, int64_t tid);
/* Gives waits_class() so much time in the scan of now_ns. */
void waits_give_time(struct waits *waits, int64_t now_ns, int64_t time_ns);
/* Local ports below that are servers'; DAEMON_PORTS_DEFAULT at first. */
void waits_set_daemon_ports(struct waits *waits, int64_t ports);

/* Fills *facts with what waits_fill() found for that sample, as numbers; anew: read now, without a
 * search for other ends. False: not known yet. */
bool waits_facts(struct waits *waits, const struct sample *sample, const struct lookup_hint *hint,
		 bool anew, int64_t now_ns, struct wait_facts *facts);

/* When facts of that thread's wait are found out anew, monotonic; where none are known, until when
 * it may be left at that. sequence: of its switch out. */
int64_t waits_until(struct waits *waits, int64_t tid, uint64_t sequence, int64_t now_ns);

/* A lock of a language's runtime that a futex belongs to, and its holder. */
struct runtime_lock {
	const char *name;   /* static */
	uint64_t address;   /* 0: the process has only one such lock */
	bool free;	    /* nobody holds it */
	int64_t holder;	    /* id of a thread, as its process knows it; 0: not known */
	int64_t turn;	    /* another number for each holder */
	bool changing;	    /* the holder may be about to change */
	char location[176]; /* position of the holder in its program; "": not known */
};

/* True if the thread waits for a runtime's lock; with_location: fill lock->place. */
typedef bool runtime_lock_finder(void *finder, const struct wait *wait, uint64_t futex,
				 bool with_location, struct runtime_lock *lock);

/* Sets the function that knows these locks; there is none at first. */
void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder);

/* True if the system call that the sample sleeps in was given a time after which it returns: one of
 * those that wait for locks. */
bool wait_has_limit(const struct sample *sample);
/* True if only a thread can end the wait in that call, apart from signals. A read waits so if what
 * it waits for is an event (WAIT_EVENT). */
bool wait_threads_end(const struct sample *sample);

/* Why sockets are not told, -errno; 0: they are. */
int waits_sockets_error(const struct waits *waits);

/* --- for those that answer */

typedef void wait_describer(struct wait *wait);

/* NULL: the call waits for what is behind its descriptor. name: interned. */
wait_describer *wait_describer_find(const char *syscall_name);

const char *wait_root(const struct wait *wait);
bool wait_own_ids(const struct wait *wait); /* /proc numbers threads as system calls do */
struct sockets *wait_sockets(const struct wait *wait);
struct holders *wait_holders(const struct wait *wait);
struct file_locks *wait_file_locks(const struct wait *wait);
/* Asks the runtime_lock_finder about the futex; false if there is none. */
bool wait_runtime_lock(const struct wait *wait, uint64_t futex, struct runtime_lock *lock);
/* Reads from the thread's memory, all or nothing. */
bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size);
/* /proc/PID/fdinfo/FD of wait->fd, proc(5), until the next call; "" where it can't be read. cut, or
 * NULL: whether there is more of it. */
const char *wait_fdinfo(const struct wait *wait, bool *cut);
/* An argument as an address, of a 32-bit call too. */
uint64_t wait_address(const struct wait *wait, int arg);

/* Another descriptor of the thread, as part of the answer. Whether only its own process can make it
 * ready: an eventfd, a pipe whose other end it has, too. */
bool descriptor_describe(struct wait *wait, int fd);
/* Tells what wait->fd and wait->link lead to. */
void file_describe(struct wait *wait);
/* " by 123 worker" */
void wait_add_thread(struct wait *wait, const char *before, int64_t tid);
/* The thread that a process knows by this number in its own pid namespace; 0: there is none. */
int64_t thread_of_inner(const struct wait *wait, int64_t inner);

/* Threads that have no other ids than those that /proc shows: a cache of the caller's. */
void outer_threads_init(struct cache *threads);
struct cache *wait_outer_threads(const struct wait *wait);

/* Words of locks that threads wait for (futex.c): a cache of the caller's, of all waits. */
void locks_init(struct cache *locks);
struct cache *wait_locks(const struct wait *wait);

/* Threads of servers and their connections (served.c): a cache of the caller's, of all waits. */
void served_init(struct cache *served);
struct cache *wait_served(const struct wait *wait);
/* Takes note of the connection if that is what the thread of a server waits for. */
void served_note(struct cache *served, const struct wait *wait, int64_t daemon_ports);
/* True if anything is noted of the thread. */
bool served_has(struct cache *served, int64_t tid);
/* Adds to the answer that the client of the thread's connection waits, if it does. */
void served_describe(struct cache *served, struct wait *wait);

/* Epoll sets that take long to list (poll_set.c): a cache of the caller's, of all waits. */
void long_sets_init(struct cache *sets);
struct cache *wait_long_sets(const struct wait *wait);

/* Counts which of the `count` requests that the io_uring behind wait->fd took last only let time
 * pass. taken: requests that it has ever taken; mask: the ring's. */
int64_t ring_timeouts(const struct wait *wait, uint32_t taken, uint32_t mask, int64_t count);

/* One word for what a link of /proc/PID/fd leads to ("socket"); of a path: NULL, see
 * file_type.h. */
const char *file_word(const char *link);

wait_describer futex_describe, futex_wait_describe, futex_waitv_describe;
wait_describer poll_describe, select_describe, epoll_describe;
wait_describer child_describe, child_id_describe;
wait_describer uring_describe, aio_describe;
wait_describer flock_describe, fcntl_describe;
wait_describer timer_describe, signal_describe;

#endif
