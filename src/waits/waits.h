/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out what a thread waits for: when it is sampled, once for each wait in a system call and
 * again every second of the wait.
 *
 * Each kind of thing that is waited for has a file and an entry (wait_object.h); this is what knows
 * no kinds.
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
#include "sample/app_lock.h"
#include "sample/runtime_lock.h"

struct cache;
struct waits;

/* Makes an empty state. comms: names of other threads (proc/processes.h); like proc_root it must
 * outlive the state. */
struct waits *waits_new(const char *proc_root, struct cache *comms);
void waits_free(struct waits *waits);
void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns);

/* Fills the fields connection, remote, serves, waits_on, waits_on_pid, inflight, filetype, wchan,
 * and net to sndbuf_pct that are in needs; syscall, fd and filename must be filled before. */
void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns);

/* Fills the wait class, the field why (sample/wait_rule.h), of a thread in S that is in a system
 * call, or in a page fault: it has no class elsewhere. Four ways, of which the last serves page
 * faults: by the call alone; as less than a second ago, when the thread waited in the same call
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

/* The thread's name, as columns have it; NULL: there is no such thread. */
const char *waits_comm(struct waits *waits, int64_t tid, int64_t now_ns);

/* What the wait for an answer, or for room, on a TCP connection is for (waits/net_verdict.h), in
 * words that do not change while that is so; NULL: not known, or the thread waits for something
 * else. The sample must be filled with NEED_WAITS and NEED_WAIT_CLASS. */
const char *waits_net_words(struct waits *waits, const struct sample *sample, int64_t now_ns);

/* Fills again what a thread waits for, in a sample that waits_fill() has filled before in the same
 * wait; it holds until waits_until(). False: it is not all known yet, or the wait class may be
 * another one. */
bool waits_renew(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns);

/* Sets the function that finds locks of runtimes; there is none at first. */
void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder);
/* Sets the functions that find what programs show of their threads; there are none at first. */
void waits_set_apps(struct waits *waits, app_lock_finder *locks, app_serves_finder *serves,
		    void *finder);

#endif
