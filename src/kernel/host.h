/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Features of this host, read and never changed: for --check, error messages and defaults. */
#ifndef TSNAP_KERNEL_HOST_H
#define TSNAP_KERNEL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_TEXT_SIZE 128

struct host {
	char name[HOST_TEXT_SIZE], release[HOST_TEXT_SIZE], machine[HOST_TEXT_SIZE];
	char distribution[HOST_TEXT_SIZE];    /* PRETTY_NAME of os-release, or "" */
	char distribution_id[HOST_TEXT_SIZE]; /* ID and ID_LIKE of os-release, space between */
	char lockdown[HOST_TEXT_SIZE];	      /* none, integrity, confidentiality; "" unknown */
	char tracefs[HOST_TEXT_SIZE]; /* mount point of tracefs if it is readable, else "" */
	int jit;		      /* bpf_jit_enable: 0 off, 1 or 2 on, -1 unknown */
	bool root, cap_bpf, cap_perfmon, cap_admin, cap_ptrace;
	/* CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE: /proc/PID/fd and others are the owner's only */
	bool cap_read;
	bool cap_nice; /* CAP_SYS_NICE */
	bool seccomp;  /* a filter of system calls is in force */
	/* "pid:[4026531836]", or "" where the kernel has no pid namespaces */
	char pid_namespace[HOST_TEXT_SIZE];
	int64_t own_pid; /* pid of tsnap in /proc; 0: not known */
	int own_pid_err; /* -errno of why not */
	int pid_depth;	 /* pid namespaces from the one of /proc down to our own: 1 or more */
	uint64_t memlock_bytes; /* soft RLIMIT_MEMLOCK, UINT64_MAX: unlimited */
	int cpus;		/* online */
	int cpus_possible;	/* size of a per-CPU map value array */
	uint32_t kernel_code;	/* LINUX_VERSION_CODE: host.h */
};

/* True if tsnap is in the first pid namespace, where ids are the kernel's own. */
bool host_pids_first(const struct host *host);

void host_read(struct host *host);
/* Returns why own_pid is not known; NULL: it is. */
const char *host_proc_lacks(const struct host *host);

/* Lists the CPUs online now, at most count numbers; returns how many. */
int host_cpus_online(int *cpus, int count);

/* Opens the list of CPUs that are online, for host_cpus_offline(): a read of it costs an eighth of
 * one by name. Returns a descriptor, or -errno. */
int host_online_open(void);

/* Sets offline[CPU] to 1 for each of the first count CPUs that is offline now, else to 0. False:
 * none is, or that can't be read; nothing is set. */
bool host_cpus_offline(int online, unsigned char *offline, int count);

/* Returns the number of threads on the host now, kernel threads and zombies counted, from
 * /proc/loadavg; -errno if unreadable. */
int64_t host_threads_count(void);

/* Returns the limit below which thread ids are, so that there are never more threads: the sysctl
 * kernel.pid_max, where it is the whole host's; elsewhere PID_MAX_LIMIT. */
int64_t host_threads_limit(const struct host *host);

/* LINUX_VERSION_CODE of the running kernel. Before 5.0 a kprobe program must carry exactly this
 * number, and uname reports another one where a distribution has a numbering of its own: 4.9.0-19
 * of Debian is 4.9.320.
 */

#define KERNEL_CODE(major, minor) ((uint32_t)(major) << 16 | (minor) << 8)

/* Returns the code from the vDSO, else Ubuntu's /proc/version_signature, else release (uname's). 0:
 * not known. */
uint32_t version_code_read(const char *release);

/* Version code from a vDSO's image, from version_signature ("Ubuntu 4.15.0-20.21-generic 4.15.17"),
 * from a release ("4.9.0-19-amd64"). 0: it does not say. */
uint32_t version_code_of_vdso(const void *image, size_t size);
uint32_t version_code_of_signature(const char *text);
uint32_t version_code_of_release(const char *release);

/* Which threads run nothing but the kernel's code. The registers that such a thread saved last are
 * no system call: those of a worker in a process are its creator's.
 */

/* Returns the flags of which such a thread has at least one (PF_* of task_struct.flags, as
 * /proc/TID/stat shows them), in the kernel with that LINUX_VERSION_CODE. */
uint32_t kernel_thread_flags_of(uint32_t kernel_code);
/* Returns these of the running kernel. */
uint32_t kernel_thread_flags(void);

#endif
