/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of the column waits_on. A recording has nothing else of what a thread waited for, so the
 * words by which waits are told apart are defined here: for those who write them, the things that
 * threads wait for (waits/wait_object.h), and for those who read them.
 */
#ifndef TSNAP_SAMPLE_WAITS_ON_H
#define TSNAP_SAMPLE_WAITS_ON_H

struct text;

/* What a text begins with: a stopped process, a frozen cgroup or file system, and states of memory.
 */
#define WAITS_ON_SIGCONT "SIGCONT"
#define WAITS_ON_FROZEN "frozen "
#define WAITS_ON_NO_MEMORY "out of memory"
#define WAITS_ON_RECLAIM "reclaim"
#define WAITS_ON_COMPACTION "compaction"
#define WAITS_ON_DIRTY "dirty pages"
#define WAITS_ON_SWAP "swap-in"
/* What is before a process or thread: at the other end of a connection; which has not accepted the
 * connection yet; which has the lock. */
#define WAITS_ON_PEER " peer "
#define WAITS_ON_FOR_CLIENT " for a client"
#define WAITS_ON_UNACCEPTED " not accepted by "
#define WAITS_ON_HOLDER " held by "
/* What is between a TCP connection that leads to no process of this host and the verdict on it. */
#define WAITS_ON_NET "; "
/* What is before the address of a UDP socket. */
#define WAITS_ON_UDP "udp "
/* What is between a thread that took a lock and why it can't release it. */
#define WAITS_ON_LEFT " a thread "
/* What the name of a lock of the kernel ends with; the lock of a process's memory map. */
#define WAITS_ON_MUTEX "_mutex"
#define WAITS_ON_MAP "mmap_lock"

enum waits_on_trait {
	WAITS_FOR_THAW = 1,
	WAITS_FOR_MEMORY = 2,
	WAITS_FOR_PEER = 4,	  /* a process of this host is at the other end */
	WAITS_FOR_ACCEPTANCE = 8, /* that process has not accepted the connection */
	WAITS_FOR_SIGCONT = 16,
	WAITS_FOR_NOBODY = 32,	 /* nobody can release the lock */
	WAITS_FOR_DATAGRAM = 64, /* of a UDP socket: what was sent may be lost */
};

/* The traits of a text, or 0 for NULL. */
unsigned int waits_on_traits(const char *waits_on);

/* Appends waits_on with * in place of what differs for waits of one kind: the holder of a lock and
 * the lock's address, ids of processes and threads, ports from 32768 on (those of clients, but not
 * one that is listened on), and values that change during the wait. "mutex 0x7f21c3a0 held by 123
 * worker" becomes "mutex * held by *", "tcp 10.0.0.9:5432 peer 77 postgres" becomes "tcp
 * 10.0.0.9:5432 peer * postgres". */
void waits_on_fold(struct text *to, const char *waits_on);

/* Appends waits_on, folded or not, in short, as a row has little space for it: "tcp :3306 mariadbd
 * 99" for "1 fd: tcp 127.0.0.1:3306 peer 99 mariadbd", "mutex of worker 4711" for "mutex 0x7f21c3a0
 * held by 4711 worker". */
void waits_on_shorten(struct text *to, const char *waits_on);

#endif
