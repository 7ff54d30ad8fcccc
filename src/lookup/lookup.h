/* Fills what the kernel record does not hold, for sampled threads only, from /proc, the user database and
 * libseccomp; each kind cached and bounded. Knows nothing of BPF, columns or terminals.
 */
#ifndef TSNAP_LOOKUP_LOOKUP_H
#define TSNAP_LOOKUP_LOOKUP_H

#include <stdint.h>

#include "sample/sample.h"

struct lookup;

/* What lookup can't know by itself about one sample. */
struct lookup_hint {
	bool compat;	    /* the system call was made through the 32-bit entry */
	uint64_t sequence;  /* changes whenever the thread was switched; same sequence: same file */
};

/* proc_root: "/proc", or a fixture. Never fails (out of memory ends the process). */
struct lookup *lookup_new(const char *proc_root);
void lookup_free(struct lookup *lookup);

/* Fills the fields of sample that needs names and that are still absent: user, ppid, cmdline, exe,
 * syscall, fd, filename, cgroup, waker_comm. A field that can't be had (the thread is gone, no permission)
 * stays absent. tid, pid, start_ns, kthread, syscall_nr, arg and waker_tid must be set by the caller.
 * now_ns: monotonic; entries of a cache older than a second are looked up again where they can change. */
void lookup_fill(struct lookup *lookup, struct sample *sample, const struct lookup_hint *hint,
		 unsigned int needs, int64_t now_ns);

/* Drops what is cached about threads not sampled for a while; call about once a second. */
void lookup_sweep(struct lookup *lookup, int64_t now_ns);

/* System call name of this machine's architecture (compat: of its 32-bit one), interned; "syscall_N" for a
 * number that libseccomp does not know. */
const char *syscall_name(int64_t nr, bool compat);
/* Index of the argument that is a file descriptor (read: 0, mmap: 4), or -1. name: interned or not. */
int syscall_fd_arg(const char *name);

#endif
