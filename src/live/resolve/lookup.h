/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills facts that the kernel's record does not hold, for sampled threads only, from /proc, the
 * user database and libseccomp; each kind cached and bounded. Knows nothing of BPF, columns or
 * terminals. */
#ifndef TSNAP_LIVE_RESOLVE_LOOKUP_H
#define TSNAP_LIVE_RESOLVE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/apps.h"
#include "proc/containers.h"
#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"
#include "waits/waits.h"

struct lookup;

/* proc_root: "/proc", or a fixture. Never fails (out of memory ends the process). Holds interned
 * names: free it before names_transient_clear(). */
struct lookup *lookup_new(const char *proc_root);
void lookup_free(struct lookup *lookup);
/* What lookups know of waits. */
struct waits *lookup_waits(const struct lookup *lookup);
/* What lookups know of programs that say what they do. */
struct apps *lookup_apps(const struct lookup *lookup);
/* Sets the reader of files of containers' runtimes; at first this process reads them. */
void lookup_set_container_reader(struct lookup *lookup, container_file_reader *read, void *of);

/* Reads a thread's effective uid, and a number that is another one once it is in other cgroups.
 * False: not known. */
typedef bool task_reader(int64_t tid, int64_t *uid, uint64_t *groups);
/* Sets the reader of what the kernel itself has of a thread; at first there is none. */
void lookup_set_task_reader(struct lookup *lookup, task_reader *read);

/* Fills the fields of sample that needs names and that are still absent: user, ppid, cmdline, exe,
 * syscall, fd, filename, cgroup, container_name, waker_comm, waker_pid, pid_ns, ns_pid, ns_tid,
 * what waits_fill() does (waits/waits.h), and apps_fill() (apps/apps.h), why, and what proc_values
 * points to; and with NEED_USER uid, present or not, because a uid changes while the record stands.
 * A field that can't be had (the thread is gone, no permission) stays absent. tid, pid, start_ns,
 * comm, state, kthread, syscall_nr, arg and waker_tid must be set by the caller, and proc_values
 * where it is wanted. needs must be closed (sample_needs_close). now_ns: monotonic.
 *
 * Facts that were read serve the same tid and start_ns, never past a change of comm. If the thread
 * ran since then, they serve for LOOKUP_RAN_NS. If it did not, it cannot have called exec or
 * setuid, and only others can move it to a cgroup or take its parent: then they serve for
 * LOOKUP_STILL_NS to twice that, its uid until it runs, and its cgroup, while the leader of its
 * process is in the same, for ten times that. A task_reader shows at each of these times whether
 * the cgroup is another: while it is not, what was read serves that long even if the thread ran.
 * Facts that threads of a process share are read once for all of them, so at worst they are two
 * LOOKUP_RAN_NS old. A waker is known by its tid alone: its name can be as old as that. */
void lookup_fill(struct lookup *lookup, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns);

/* Returns the name of a user, interned; the number as text where there is none. */
const char *lookup_user(struct lookup *lookup, int64_t uid, int64_t now_ns);

/* Returns the name of any thread, transient, up to LOOKUP_RAN_NS old. NULL: there is none. */
const char *lookup_comm(struct lookup *lookup, int64_t tid, int64_t now_ns);

/* Drops what is cached about threads not sampled for a while; call about once a second. */
void lookup_sweep(struct lookup *lookup, int64_t now_ns);

/* Returns containers_unnamed() of proc/containers.h. */
size_t lookup_unnamed_containers(const struct lookup *lookup, bool refused);

#endif
