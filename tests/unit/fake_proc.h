/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A proc tree in a temporary directory, which a test writes and changes while lookups read it. */
#ifndef TSNAP_TESTS_FAKE_PROC_H
#define TSNAP_TESTS_FAKE_PROC_H

#include <stddef.h>

struct fake_proc {
	char root[64];
};

void fake_proc_init(struct fake_proc *proc);
void fake_proc_done(struct fake_proc *proc);

/* Writes the file `name` of a thread ("fd/3", "ns/pid" and "exe": a link to text), replacing what
 * was there.
 */
void fake_proc_put(const struct fake_proc *proc, int pid, int tid, const char *name,
		   const char *text);
/* Writes PID/name, a file of a process. */
void fake_proc_put_process(const struct fake_proc *proc, int pid, const char *name,
			   const char *text);
/* Gives the thread a page of memory at this address, which begins with bytes. */
void fake_proc_put_page(const struct fake_proc *proc, int pid, int tid, unsigned long address,
			const void *bytes, size_t size);
/* Writes the thread's stat, with this parent. */
void fake_proc_put_stat(const struct fake_proc *proc, int pid, int tid, int ppid);
/* Removes all files of the thread. */
void fake_proc_drop(const struct fake_proc *proc, int pid, int tid);

#endif
