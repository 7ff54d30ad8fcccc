/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record that the probes keep per thread, and that the sampler copies. gcc includes this file;
 * the BPF text gets the same bytes pasted in.
 *
 * Only fixed-width integers and char arrays; groups are small structs, each written by one probe: a
 * waker runs on another CPU than the thread, and two probes that shared a word would lose updates.
 * Zero never means absent: `known` words say what was ever written. Times are ns of the monotonic
 * clock unless a comment says otherwise.
 */
#ifndef TSNAP_THREAD_STATE_H
#define TSNAP_THREAD_STATE_H

#define THREAD_COMM_SIZE 16 /* TASK_COMM_LEN, the same on every kernel */
/* Bytes of the list node before a task's struct pid, task_struct.pids[PIDTYPE_PID].pid, until
 * 4.18. */
#define PIDS_LINK_BYTES 16

/* Registers that the kernel saved when the thread last entered it, as far as they describe a system
 * call: pieces of its struct pt_regs, decoded by kernel/registers. READ(to, from, count): that many
 * words of it, from word `from` on, are the words from `to` on here. */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
/* x1 to x5; pstate, orig_x0, syscallno. All 36 words would not fit a BPF program's stack. */
#define THREAD_REGISTER_COUNT 8
#define THREAD_REGISTER_PIECES(READ) READ(0, 1, 5) READ(5, 33, 3)
#define THREAD_REGISTER_SMALL_PIECES THREAD_REGISTER_PIECES
/* words that describe the call: pstate, orig_x0, syscallno; PSR_MODE32_BIT is compat */
#define THREAD_CALL_FROM 33
#define THREAD_CALL_COUNT 3
#define THREAD_STACK_WORD 31	 /* the user's sp */
#define THREAD_FIRST_ARGUMENT 34 /* of a system call: orig_x0 */
#define THREAD_SECOND_ARGUMENT 1
#define THREAD_CALL_NUMBER(words) ((words)[2])
#define THREAD_CALL_COMPAT(words) (((words)[0] & 0x10) != 0)
#define THREAD_CALL_EXECUTED(words) 0
/* words that a walk of the thread's user stack begins with: x19 to x30, sp, pc */
#define STACK_REGISTER_COUNT 14
#define STACK_REGISTER_PIECES(READ) READ(0, 19, 14)
#define THREAD_CALL_COMPAT_PIECES(READ) READ(0, u64)
#elif defined(__x86_64__) || defined(__TARGET_ARCH_x86)
/* bp to cs */
#define THREAD_REGISTER_COUNT 14
#define THREAD_REGISTER_PIECES(READ) READ(0, 4, 14)
/* pieces that fit a program's stack of 512 bytes */
#define THREAD_REGISTER_SMALL_PIECES(READ) READ(0, 4, 7) READ(7, 11, 7)
/* words that describe the call: cx to cs; compat: __USER32_CS, or no mark of a native call */
#define THREAD_CALL_FROM 11
#define THREAD_CALL_COUNT 7
#define THREAD_STACK_WORD 19	 /* the user's sp */
#define THREAD_FIRST_ARGUMENT 14 /* of a system call: di */
#define THREAD_SECOND_ARGUMENT 13
#define THREAD_CALL_NUMBER(words) ((words)[4])
/* words that THREAD_CALL_COMPAT() looks at; cs is of 16 bits from 6.9 on */
#define THREAD_CALL_COMPAT_PIECES(READ) READ(0, u64) READ(5, u64) READ(6, u16)
#ifdef REGISTERS_MARKED
#define THREAD_CALL_COMPAT(words) \
	(((words)[6] & 0xffff) == 0x23 || ((__s64)(words)[4] >= 0 && (words)[0] != (words)[5]))
#else
#define THREAD_CALL_COMPAT(words) (((words)[6] & 0xffff) == 0x23)
#endif
/* True for a program that has not begun: exec took the mark with all other registers. */
#define THREAD_CALL_EXECUTED(words)                 \
	(((words)[4] == 59 || (words)[4] == 322) && \
	 !((words)[0] | (words)[1] | (words)[2] | (words)[3])) /* execve, execveat */
/* r15 to sp: a return address may be in a register that belongs to nobody (vfork) */
#define STACK_REGISTER_COUNT 20
#define STACK_REGISTER_PIECES(READ) READ(0, 0, 20)
#else
#error "unknown CPU: its registers are told here"
#endif

/* thread_identity.known */
#define IDENTITY_NAME 1u /* tid, comm */
#define IDENTITY_FULL 2u /* everything */
/* Upper bits: a coarse stamp of the thread's exec, where only a difference means something; 0: no
 * exec since the record was made. */
#define IDENTITY_PROGRAM_SHIFT 8

/* Written when the thread appears, renames itself or executes a program. */
struct thread_identity {
	__u64 start_boot_ns; /* boot time clock; 0 before IDENTITY_FULL */
	/* Ids are those that /proc shows. Where that is not the first pid namespace's, they are the
	 * kernel's before IDENTITY_FULL, and 0 for threads that are not in it. */
	__u32 tid;
	__u32 tgid;
	__u32 parent_tgid; /* tgid of its parent when the thread appeared */
	__u32 uid;	   /* effective, when the thread appeared or executed a program */
	__u32 task_flags;  /* PF_* */
	__u32 known;
	char comm[THREAD_COMM_SIZE];
};

/* thread_sched.known */
#define SCHED_SWITCHED_OUT 1u /* seen switching out */
#define SCHED_SEEDED 2u	      /* made from /proc at start, no switch seen since */

/* Written by the scheduler switch, on the thread's own CPU.
 *
 * sequence_begun is written first and sequence_done last, while a copy goes upwards from
 * sequence_done to sequence_begun: if the two are equal in a copy, no write overlapped it (on x86:
 * programs have no barriers, and arm64 may show stores in another order). The number grows by one
 * with every switch out and every switch in. */
struct thread_sched {
	__u64 sequence_done;
	__u64 out_ns;	/* last switch out, or when the thread appeared */
	__u64 in_ns;	/* last switch in */
	__u64 cpu_ns;	/* time on a CPU; all totals are since the record was made */
	__u64 runq_ns;	/* time runnable and waiting for a CPU */
	__u64 disk_ns;	/* time in uninterruptible sleep (D) */
	__u64 sleep_ns; /* time in any other sleep */
	__u64 voluntary_count;
	__u64 involuntary_count;
	__u64 kernel_voluntary; /* task->nvcsw at the last switch, where the probe itself does not
				   show a preemption */
	__u32 state;		/* task state bits at the switch out; 0: runnable */
	__u32 exit_state;
	__u32 cpu;
	__u32 on_cpu; /* 1: running since in_ns */
	__u32 known;
	__u32 tid; /* the kernel's own tid, of the first pid namespace; 0: a free record */
	/* Registers saved at the switch out with number registers_sequence; stale unless that is
	 * the thread's last */
	__u64 registers_sequence;
	__u64 registers[THREAD_REGISTER_COUNT];
	__u64 sequence_begun;
};

/* Written by the waker. */
struct thread_wake {
	__u64 wake_ns; /* 0: never */
	__u32 waker_tid;
	__u32 listed_scan; /* the scan for which it was put on a changed list */
};

/* A thread's record. Its first 128 bytes, two lines of the cache, are what switches and wake-ups
 * write most of the time, and what a walk looks at. */
struct thread_state {
	struct thread_wake wake;
	struct thread_sched sched;
	struct thread_identity identity;
	__u64 kernel_stack; /* task->stack; 0 before IDENTITY_FULL */
	/* The system call, where entries are traced (syscall_enter.bpf.c): */
	__u64 call_ns; /* time when the thread entered the last one; 0: not seen, or over and
			  counted */
	__u32 call;    /* number of the system call, and CALL_COMPAT_BIT */
	__u32 key; /* key in the thread state array: its slot, or the tid where that is a hash */
};

/* The scheduler takes a thread from its run queue at most so long before the switch, unless it
 * looks for work on many other CPUs in between. */
#define ON_ITS_WAY_OUT_NS 100000

/* Returns when a thread's sleep turned into waiting for a CPU: now_ns if no wake-up was seen
 * before. One that came between the thread's last switch in and its switch out ended this very
 * sleep if the thread was on its way out then; earlier it met a thread that ran. */
static inline __u64 sleep_end_ns(const struct thread_state *thread, __u64 now_ns)
{
	__u64 out_ns = thread->sched.out_ns, wake_ns = thread->wake.wake_ns;

	if (wake_ns > out_ns && wake_ns < now_ns)
		return wake_ns;
	if (wake_ns >= thread->sched.in_ns && out_ns - wake_ns < ON_ITS_WAY_OUT_NS)
		return out_ns;
	return now_ns;
}

/* Forks, execs and exits by name and user, where they are wanted (processes.bpf.c). */
#define PROCESS_KEYS_MAX 4096
#define PROCESS_OTHERS_UID 0xffffffffu /* uid of the row for all without one; it has no name */

struct process_key {
	__u64 comm[THREAD_COMM_SIZE / 8]; /* zero after the name's end */
	__u32 uid;			  /* effective, as in thread_identity */
	__u32 unused;
};

struct process_totals {
	__u64 forks; /* processes, by the name and user of their parent */
	__u64 execs; /* execs, by the name and user after the exec */
	__u64 exits; /* first threads of processes that ended */
	/* Totals of threads that ended, as in thread_sched */
	__u64 cpu_ns, runq_ns, disk_ns, sleep_ns;
	__u64 voluntary_count, involuntary_count;
	__u64 unknown; /* threads that ended without a record: the map was full */
	__u64 threads; /* made by processes of that name and user */
	/* The process that may have made most of the forks, of the threads: its pid in the lower
	 * half; in the upper half how many more it made than all others, from the time that it had
	 * made more (Boyer and Moore's vote). Updates may be lost. */
	__u64 forker, thread_maker;
};
#define CALL_COMPAT_BIT 0x80000000u /* made through the 32-bit entry */

/* Written by samplers for the probes. */
struct sampling {
	__u64 registers_until_ns; /* switches keep registers until then */
	__u64 registers_from_ns;  /* switches keep registers from then on for REGISTERS_OPEN_NS; 0:
				     never */
	__u64 scan_time_ns;	  /* next scan time of the probes' owner; 0: none */
	__u32 scan;
	__u32 unused;
};

/* A scan shows what threads did at the scan time, and its sampler needs a CPU to copy their
 * records, which takes some time. So the first switch of a thread after the scan time, for at most
 * this long, keeps what the record has: a switch in keeps the record as it was, a switch out as it
 * is then. There is a ring for each CPU; the sampler empties them before the scan time. */
#define SCAN_TIME_OPEN_NS 100000000
#define SCAN_TIME_ROWS_MAX 128

/* The longest capture window, plus SCAN_TIME_OPEN_NS. */
#define REGISTERS_OPEN_NS 110000000

struct scan_time_row {
	struct thread_wake wake; /* copy of thread_state.wake */
	struct thread_sched sched;
	__u64 call_ns;
	__u32 call;
	__u32 key;
};

struct scan_time_ring {
	__u64 count; /* rows ever offered; those above SCAN_TIME_ROWS_MAX did not fit */
	struct scan_time_row rows[SCAN_TIME_ROWS_MAX];
};

/* The capture window of the sampler that owns the probes: in it a switch out hands over the leaving
 * thread's stacks (KEEP_STACKS). */
struct capture_window {
	__u64 from_ns, until_ns;
};

/* Names the thread and the switch out whose stacks a perf sample has. */
struct kept_stack_id {
	__u64 sequence; /* number of the switch out, as in thread_sched */
	__u32 tid;	/* the kernel's own, as in thread_sched */
	__u32 unused;
};

/* Changed list: threads that began, or were woken, or switched in with no wake-up seen (the kernel
 * may run no program), so that a scan need not walk over all sleepers: a thread that is not listed
 * since the last scan and was not awake in it has slept through. There is a ring for each CPU.
 * Every sampler keeps its own position in them, and when it has read them counts sampling.scan up,
 * before it reads records: a thread is listed once only for each number. */
#define CHANGED_MAX 1024

struct changed_ring {
	__u64 count;		 /* threads ever listed; the last CHANGED_MAX are there */
	__u32 keys[CHANGED_MAX]; /* thread_state.key of the threads */
};

/* Request of a sampler to registers.bpf.c, with the answer. One for each of the samplers. */
#define REQUESTS_MAX 64
#define REQUESTERS_MAX 16

struct registers_request {
	__u32 requester; /* process id of the sampler; 0: free */
	__u32 count;
	__u32 keys[REQUESTS_MAX];      /* thread_state.key of the requested threads */
	__u64 sequences[REQUESTS_MAX]; /* sequence_done of each before its registers were read */
	__u64 registers[REQUESTS_MAX][THREAD_REGISTER_COUNT];
};

/* Request to user_stack.bpf.c, of the sampler with the registers_request of that index. */
struct stack_request {
	__u32 unused, count;
	__u32 keys[REQUESTS_MAX];
	__u64 sequences[REQUESTS_MAX];
	__u64 registers[REQUESTS_MAX][STACK_REGISTER_COUNT];
};

/* Last look of on_cpu.bpf.c, one per CPU. */
struct cpu_tick {
	__u64 tick_ns; /* 0: never */
	__u32 tid;     /* id that /proc shows, as in thread_identity */
	__u32 unused;
	__u64 registers[THREAD_REGISTER_COUNT];
};

#define LOOKS_AT_MAX 4096 /* in whose memory a look reads */
#define LOOK_HEAD 28	  /* bytes before those whose number is the last 2 of them */
#define LOOK_MORE 1024	  /* these are fewer; a power of 2 */

/* What that look read in the memory of the thread, one per CPU: the record that a pointer of the
 * thread leads to, as OpenTelemetry lays it out (src/apps/otel.c). */
struct memory_look {
	__u64 tick_ns; /* of the look */
	__u32 tid;
	__u32 bytes;			      /* 0: none were read */
	__u8 data[LOOK_HEAD + LOOK_MORE + 4]; /* padded to 8 */
};

/* One per CPU: what the probes could not do. */
struct probe_counters {
	__u64 map_full;	    /* a thread did not fit the map */
	__u64 latency_full; /* an event of --trace had no histogram: the map was full */
	__u64 block_full;   /* a request in flight did not fit the map */
	__u64 block_unseen; /* a request was completed, and no program was run */
	__u64 probe_unread; /* an argument of a probe was in memory that was not there */
	__u64 probe_stacks; /* a stack had the place of another one in ts_probe_stacks */
};

_Static_assert(sizeof(struct thread_identity) == 48, "thread_identity has no holes");
_Static_assert(sizeof(struct thread_wake) == 16, "thread_wake has no holes");
_Static_assert(sizeof(struct process_key) == 24, "process_key has no holes");
_Static_assert(sizeof(struct process_totals) == 104, "process_totals has no holes");
_Static_assert(sizeof(struct thread_sched) == 120 + 8 * THREAD_REGISTER_COUNT,
	       "thread_sched has no holes");
_Static_assert(sizeof(struct thread_state) == 208 + 8 * THREAD_REGISTER_COUNT,
	       "thread_state has no holes");

#endif
