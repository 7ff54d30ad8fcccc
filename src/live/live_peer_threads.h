/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of a process that has the other end of something, and what they do. Each process is
 * looked at once in a scan. Two things are remembered over scans: which threads it has, as long as
 * the kernel counts as many and all of them are there; and what a thread was seen to do, while it
 * sleeps on. For live_peers.c. */
#ifndef TSNAP_LIVE_LIVE_PEER_THREADS_H
#define TSNAP_LIVE_LIVE_PEER_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/index.h"
#include "waits/chain.h"

struct live_context;

struct peer_thread {
	int64_t tid;
	int64_t holder; /* holder of the lock that it waits for; ABSENT: it waits for none */
	bool active;	/* on a CPU, in a queue for one, in D; asleep as part of a request */
	bool rests;	/* call in which threads wait for something to do */
	bool loops;	/* call that waits for several descriptors, not just for new connections */
	int64_t set_fd; /* epoll set of set_count descriptors that it waits for; ABSENT: none */
	int64_t set_count;
	/* the socket or pipe that its call is about, or the socket of the client that it works for;
	 * by peer_link_of(); 0: none */
	uint64_t end;
};

/* A process. At most 1024 of its threads are known. */
struct peer_process {
	int64_t pid;
	size_t first, count; /* slots in struct live_peer_threads' threads */
	bool whole;	     /* these are all its threads */
	bool single;	     /* the process has one thread, which is not among these */
	bool goroutines;     /* a Go program: no thread has work of its own while it sleeps */
	size_t actives, loops;
	size_t active, loop; /* slot of the last such thread, plus one; 0: none */
};

/* Zeroed is empty. */
struct live_peer_threads {
	/* known in this scan */
	struct peer_thread *threads;
	size_t count, capacity;
	struct keyed processes; /* struct peer_process, by pid */
	struct index by_tid;	/* tid to the thread's slot, plus one */
	struct index by_end; /* process and end to a thread's slot, plus one, and above 32 bits to
				how many there are */
	/* remembered over scans */
	struct cache lists; /* struct thread_list, by pid */
	struct cache seen;  /* struct seen_thread, by tid */
	int64_t swept_ns;
};

/* Returns a number for the inode of a socket or a pipe (EDGE_SOCKET, EDGE_PIPE), never 0. */
uint64_t peer_link_of(enum edge_kind kind, int64_t inode);

/* Finds a process; its threads are read if this scan has not done so. All that these functions
 * return is valid until the next process is looked at. */
struct peer_process *peer_process_find(struct live_peer_threads *threads,
				       struct live_context *context, int64_t pid);
/* Return a thread of a process, by its slot plus one, or by its id; NULL: there is none. */
const struct peer_thread *peer_thread_at(const struct live_peer_threads *threads, size_t slot);
const struct peer_thread *peer_thread_find(const struct live_peer_threads *threads,
					   const struct peer_process *process, int64_t tid);
/* Returns how many threads are in a call on that end; *thread: one of them. */
size_t peer_threads_in_call(const struct live_peer_threads *threads,
			    const struct peer_process *process, uint64_t end,
			    const struct peer_thread **thread);
/* Reads what a thread does, also one that is not listed for its process. False: it is gone, or of
 * another process. */
bool peer_thread_read(struct live_peer_threads *threads, struct live_context *context, int64_t tid,
		      int64_t pid, struct peer_thread *thread);

void live_peer_threads_begin(struct live_peer_threads *threads, int64_t now_ns); /* a new scan */
void live_peer_threads_done(struct live_peer_threads *threads);

#endif
