/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread in one scan: the only form in which samples reach columns, filters and renderers.
 *
 * Filled by live/threads and live/resolve when live, by recording/sample_file when replayed. Plain
 * data: copying a sample is an assignment; text fields point to interned names, which are freed at
 * source->release() at the earliest, and are not owned.
 */
#ifndef TSNAP_SAMPLE_SAMPLE_H
#define TSNAP_SAMPLE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/needs.h"

/* Every number is an int64_t so that absent has one spelling; absent text is NULL. */
#define ABSENT INT64_MIN

/* State of a thread. Values are indexes into the table of state_row(). */
enum thread_state_kind {
	STATE_ON,      /* on a CPU */
	STATE_RQ,      /* runnable, waiting in a run queue */
	STATE_DISK,    /* D: uninterruptible sleep */
	STATE_SLEEP,   /* S: interruptible sleep */
	STATE_STOPPED, /* T: stopped by a signal or a tracer */
	STATE_IDLE,    /* I: an idle kernel thread (TASK_IDLE) */
	STATE_ZOMBIE,  /* Z: dead, not yet waited for */
	STATE_PARKED,  /* P: a parked kernel thread */
	STATE_COUNT,
};

struct state_row {
	const char *name; /* ON RQ D S T I Z P */
	const char *help;
	const char *proc; /* letters of this state in /proc/TID/stat */
	bool active;	  /* shown without -a */
};

/* The row of a value of enum thread_state_kind; NULL for any other value. */
const struct state_row *state_row(int64_t state);
/* The value whose row has this name (as in the state column); ABSENT if none. */
int64_t state_of_name(const char *name);
/* The value for a state letter of /proc/TID/stat; R gives STATE_RQ. ABSENT if unknown. */
int64_t state_of_proc_letter(char letter);

#define SAMPLE_ARG_COUNT 6

struct proc_values;

struct sample {
	/* the scan */
	int64_t time_us;   /* UTC */
	int64_t weight_us; /* time that this sample stands for: since the previous scan */
	/* identity: sample_account() copies all of it */
	int64_t tid, pid, ppid, uid;
	int64_t start_ns; /* boot time clock; with tid, the thread's identity. Not a column */
	int64_t kthread;  /* 1 kernel thread, also one of a process (kernel_thread.h); 0 not */
	const char *user, *comm, *commsum, *cmdline, *script, *exe, *cgroup;
	const char *container, *container_runtime, *container_name, *pod, *pod_name, *unit;
	int64_t pid_ns, ns_pid, ns_tid;
	/* activity */
	int64_t state; /* enum thread_state_kind */
	int64_t state_us, cpu;
	int64_t syscall_nr, arg[SAMPLE_ARG_COUNT];
	const char *syscall;
	int64_t syscall_us;
	const char *error;	 /* errno of a call that --trace saw fail: "ENOENT" */
	const char *comm_before; /* name before the exec that --trace reports */
	int64_t fd;
	const char *filename, *filenamesum;
	/* object of the activity */
	const char *filetype, *connection, *remote, *waits_on, *waits_onsum, *wchan;
	const char *why; /* name of the rule of sample/wait_rule.h that applies; only in S */
	int64_t waits_on_pid, inflight;
	/* cause of the wait */
	const char *runq_why; /* reason of the wait for a CPU; only in RQ */
	int64_t waker_tid, waker_pid;
	const char *waker_comm;
	/* stacks as hashes, and words of unwind/stack_table.h; stack: both, outermost frame first,
	 * ';' between; see render/frame_kind.h for annotations */
	int64_t ustack, kstack;
	const char *ufunc, *ufuncs, *kfunc, *kfuncs, *stack;
	const char *ufiles; /* files of the user frames in stack: see sample/stack_files.h */
	/* stacks of the thread that woke it last; waker_stack: see sample/waker_stack.h */
	int64_t waker_ustack, waker_kstack;
	const char *waker_stack;
	/* the oldest request to a block device that it has in flight */
	const char *io_dev, *io_op;
	int64_t io_bytes, io_us;
	const char *io_others; /* other processes with requests in flight on that device */
	/* thread that it waits for, and the last one of that chain; see waits/chain.h */
	int64_t blocker_tid, blocker_pid;
	const char *blocker_kind, *blocker_sure, *oncpu_comm, *oncpu_cgroup;
	const char *chain;
	int64_t depth; /* number of threads that the chain leads to */
	int64_t root_tid, root_pid, root_state;
	const char *root, *root_why, *root_waits_on, *root_syscall;
	/* path to the sample's thread, with --critical-path; and the first thread of it */
	const char *path_end, *path, *path_of;
	int64_t path_depth, path_of_tid;
	/* exact values since the thread's previous sample: sample_account() copies these, too */
	int64_t cpu_us, runq_us, dwait_us, sleep_us, vcsw, ivcsw;
	/* counts of an account (sample/source.h); not columns */
	int64_t forks, execs, exits, dead_cpu_us;
	/* threads that were made; the processes that made most of these, and of the forks */
	int64_t new_threads, thread_maker_pid, forker_pid;
	/* time for which the thread has waited for the same answer before it fell asleep, as in a
	 * loop of poll(2). Not a column */
	int64_t waited_before_us;
	bool wait_open;	 /* a later scan knows more of this wait. Not a column */
	bool names_open; /* a later scan knows more names of its stacks' functions. Not a column */
	/* Scans that left the thread out, and that this sample stands for, too: weight_us has their
	 * time (struct source, take_again). Not a column */
	uint32_t repeats;
	/* paths in cgroup v1's other hierarchies, a line each; NULL: none. Not a column */
	const char *cgroup_others;
	/* owned by the source until its next scan; NULL: none. Columns lead into it, see
	 * proc_values.h */
	struct proc_values *proc_values;
};

/* Number of scans that a sample stands for. */
static inline int64_t sample_scans(const struct sample *sample)
{
	return 1 + (int64_t)sample->repeats;
}

/* A sample with all fields absent. */
const struct sample *sample_absent(void);

/* Account (sample/source.h) of the sample's thread: all fields but those of its activity. */
struct sample sample_account(const struct sample *sample);

/* Fills the fields that follow from other fields of the same sample (commsum, filenamesum,
 * container, container_runtime, pod, unit), live and replayed alike, if they are in needs. */
void sample_derive(struct sample *sample, uint64_t needs);

/* One scan: what a sampler delivers at one tick, or a batch of it. samples belong to the source and
 * are valid until its next scan or batch. */
struct scan {
	int64_t time_us;      /* UTC */
	int64_t weight_us;    /* since the previous scan; for the first one, the requested period */
	int64_t scan_time_ns; /* time_us by the monotonic clock; 0: a recording */
	int64_t silent_us; /* time before weight_us in which scans saw no threads, so that they are
			      not in the recording; 0 live, where such scans are delivered */
	int64_t clock_step_us; /* how far the clock of time_us was set forward since the previous
				  scan (back: below 0); 0: it was not */
	struct sample *samples;
	size_t count;
	size_t threads; /* threads seen in this scan, shown or not; 0 if not known (replay, or in a
			   batch) */
};

#endif
