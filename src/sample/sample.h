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

/* The parts of a sample, one for each writer. A part is assigned, compared and absent as a whole.
 */

/* the scan */
struct sample_scan {
	int64_t time_us;   /* UTC */
	int64_t weight_us; /* time that the sample stands for: since the previous scan */
	/* skipped scans that the sample stands for, too: weight_us has their time (struct source,
	 * sums_up), or other threads (shares). Not a column */
	int64_t repeats;
	/* Samples of a recording with the same number have all ROLE_KEY columns in common, except
	 * timestamp, cpu and waker_tid; 0: not known. Not a column */
	uint32_t alike;
};

/* the thread, whatever it does */
struct sample_thread {
	int64_t tid, pid, uid;
	int64_t start_ns; /* boot time clock; with tid, the thread's identity. Not a column */
	int64_t kthread;  /* 1 kernel thread, also one of a process (host.h); 0 not */
	const char *user, *comm, *commsum;
};

/* its pid namespace, and its ids there */
struct sample_namespace {
	int64_t pid_ns, ns_pid, ns_tid;
};

/* its process: what all of the process' threads share; members of 8 bytes each (absent.c) */
struct sample_process {
	int64_t ppid;
	const char *parent_comm, *cmdline, *script, *exe;
};

/* its control group */
struct sample_cgroup {
	const char *path;
	const char *others; /* paths in cgroup v1's other hierarchies, a line each; NULL: none. Not
			     * a column */
	const char *container, *container_runtime, *container_name, *pod, *pod_name, *unit;
};

/* state at the scan */
struct sample_now {
	int64_t state; /* enum thread_state_kind */
	int64_t state_us, cpu;
	const char *runq_why;  /* reason of the wait for a CPU; only in RQ */
	const char *irq;       /* interrupt that its CPU handles; only ON */
	const char *workqueue; /* work queue whose work it does or did last; only of kworkers */
};

struct sample_call {
	int64_t nr, arg[SAMPLE_ARG_COUNT];
	const char *name;
	int64_t us;
};

/* only of single events of --trace */
struct sample_event {
	const char *error;	 /* errno of a call that failed: "ENOENT" */
	const char *comm_before; /* name before the exec */
	/* of a TCP connection; the numbers are not columns of samples */
	const char *outcome, *side, *local, *server;
	int64_t sent, received, connect_ns, retransmits;
	/* of a process that ended by a signal */
	const char *signal, *sender_comm;
	const char *qname, *qtype, *rcode; /* of a DNS query */
	const char *value;		   /* by which --probe counts: "SELECT 1", "0x7f" */
	int64_t sender_pid;
};

/* file of the call's descriptor or path */
struct sample_fd {
	int64_t fd;
	const char *name, *namesum, *type, *connection, *remote;
	int64_t size, cached, dirty, evicted; /* bytes, of the page cache */
	int64_t refault_bps;		      /* of the thread's control group */
	const char *serves; /* last: connection whose request it works on, waits/served.c */
};

/* what the thread waits for */
struct sample_wait {
	const char *on, *onsum; /* waits_on */
	const char *wchan;
	const char *why; /* name of the rule of sample/wait_rule.h that applies; only in S */
	int64_t pid, inflight;
	/* time for which the thread has waited for the same answer before it fell asleep, as in a
	 * loop of poll(2). Not a column */
	int64_t before_us;
	bool open; /* a later scan knows more of this wait. Not a column */
};

/* the TCP connection that it waits for, waits/net_verdict.h */
struct sample_net {
	const char *word, *why;
	int64_t us, rtt_us, retrans, unacked, unread, rwnd_pct, sndbuf_pct;
};

#define PROGRAM_VARIABLES_MAX 8 /* that the user names */

/* what its program says that it does, in the program's own words: src/apps */
struct sample_app {
	const char *wait, *state, *query, *querysum, *database, *user, *client;
	int64_t query_id;
	const char *trace, *span, *context; /* OpenTelemetry's, of the thread */
	const char *service, *instance;	    /* of its process */
	const char *request, *script, *function;
	union {
		int64_t number;
		const char *text;
	} variables[PROGRAM_VARIABLES_MAX]; /* see program_variable.h */
};

/* stacks as hashes, and words of unwind/stack_table.h */
struct sample_stack {
	int64_t ustack, kstack;
	const char *ufunc, *ufuncs, *kfunc, *kfuncs;
	const char *both;   /* outermost frame first, ';' between; see render/fold.h for
			     * annotations */
	const char *ufiles; /* files of the user frames in both: see sample/stack_files.h */
	bool names_open;    /* a later scan knows more names of its functions. Not a column */
};

/* the thread that woke it last, and its stacks */
struct sample_waker {
	int64_t tid, pid;
	const char *comm;
	int64_t ustack, kstack;
	const char *stack; /* see sample/waker_stack.h */
};

/* the oldest request to a block device that it has in flight */
struct sample_io {
	const char *dev, *op;
	int64_t bytes, us;
	const char *others; /* other processes with requests in flight on that device */
};

/* the thread that it waits for */
struct sample_blocker {
	int64_t tid, pid;
	const char *kind, *sure, *oncpu_comm, *oncpu_cgroup, *neighbour;
};

/* what a thread does at the end of a chain */
#define ROOT_CYCLE "cycle"	 /* value of why where a chain comes back to one of its threads */
#define ROOT_DEADLOCK "deadlock" /* certainly, and none of them can end that */

struct sample_root {
	int64_t tid, pid, state;
	const char *comm, *why, *waits_on, *syscall, *query;
};

/* the threads that this one leads to, and the last one; see waits/chain.h */
struct sample_chain {
	const char *text;
	int64_t depth; /* number of threads that the chain leads to */
	struct sample_root root;
};

/* path to the sample's thread, with --critical-path; and the first thread of it */
struct sample_path {
	const char *end, *text, *of;
	int64_t depth, of_tid;
};

/* exact values since the thread's previous sample; those after ivcsw are only of accounts
 * (sample/source.h), and not columns */
struct sample_sums {
	int64_t cpu_us, runq_us, dwait_us, sleep_us, vcsw, ivcsw;
	int64_t forks, execs, exits, dead_cpu_us, new_threads;
	int64_t hardirq_us, softirq_us, steal_us; /* of the account of a CPU */
};

/* processes that made most of an account's forks, and of its threads. No columns */
struct sample_makers {
	int64_t fork_pid, thread_pid;
};

#define SAMPLE_HELD_MAX 4 /* contexts between two probes */

/* what the thread has from one probe to another (--context 'NAME = probe ...') */
struct sample_held {
	union {
		int64_t number;
		const char *text;
	} values[SAMPLE_HELD_MAX];
};

struct sample {
	struct sample_scan scan;
	struct sample_thread thread;
	struct sample_namespace namespace;
	struct sample_process process;
	struct sample_cgroup cgroup;
	/* what follows changes with what the thread does */
	struct sample_now now;
	struct sample_call call;
	struct sample_event event;
	struct sample_fd file;
	struct sample_wait wait;
	struct sample_net net;
	struct sample_app app;
	struct sample_held held;
	struct sample_stack stack;
	struct sample_waker waker;
	struct sample_io io;
	struct sample_blocker blocker;
	struct sample_chain chain;
	struct sample_path path;
	struct sample_sums sums;
	struct sample_makers makers;
	/* owned by the source until its next scan; NULL: none. Columns lead into it, see
	 * proc_values.h */
	struct proc_values *proc_values;
};

/* Number of scans, or of threads in one, that a sample stands for. */
static inline int64_t sample_scans(const struct sample *sample)
{
	return 1 + sample->scan.repeats;
}

/* A sample with all fields absent. */
const struct sample *sample_absent(void);
struct column;
void sample_absent_add(const struct column *column); /* makes it absent there */

/* Fills the absent facts of a process. */
void sample_process_fill(struct sample_process *process, const struct sample_process *facts);

/* Adds exact values to others; what is absent adds nothing. */
void sample_sums_add(struct sample_sums *to, const struct sample_sums *more);

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
	/* The batch is an earlier sample again, for scans that skipped its thread: weight_us and
	 * repeats of the sample say for how much time, and for how many scans but one. Its exact
	 * times are absent. */
	bool again;
	struct sample *samples;
	size_t count;
	/* Samples of a recording that the filter refuses (keeps_refused of struct source): they
	 * have exact times of their threads since the samples before. Live, these times are in the
	 * thread's next sample or account. */
	struct sample *refused;
	size_t refused_count;
	size_t threads; /* threads seen in this scan, shown or not; 0 if not known (replay, or in a
			   batch) */
};

#endif
