/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that ended as they should not have, for --trace incidents: by a signal, or with an exit
 * status other than 0 though init is their parent, as it is of what a service manager starts.
 *
 * A process that ends does not know who sent its signal: its threads are killed by a SIGKILL of the
 * kernel's own (complete_signal() of kernel/signal.c). So the senders of signals are noted as they
 * are sent, where a handler or nothing may come of them, and are looked up at the end.
 *
 * Included where LATENCY_INCIDENTS is among LATENCY_KINDS.
 */

#define INCIDENTS_SEEN 1
#define SIGNALS_NOTED 1024

/* The last signal to a process; one entry for all processes whose ids are equal in their low bits.
 * Senders on two CPUs may write one at the same time: then a name may be of both. */
struct signal_note {
	__u32 tgid; /* the kernel's own, of the target */
	__u32 signal;
	__s32 code;			 /* si_code */
	__u32 sender_tgid, sender_shown; /* shown: as /proc shows it */
	char sender_comm[THREAD_COMM_SIZE];
};
BPF_TABLE("array", __u32, struct signal_note, ts_signals, SIGNALS_NOTED);

#define SIGNAL_DELIVERED 0 /* results of TRACE_SIGNAL_x: include/trace/events/signal.h */
#define SIGNAL_LOSES_INFO 4
#define SIGNAL_NUMBER(status) ((status)&0x7f) /* of a status as wait(2) has it */
/* SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG and SIGWINCH end no process; 17 to
 * 23 and 28, also on ARM. */
#define SIGNALS_HARMLESS 0x10fe0000u

static inline void signal_note(__u32 tgid, __u32 signal, __s32 code, __u32 result)
{
	struct task_struct *sender = (struct task_struct *)bpf_get_current_task();
	struct signal_note fresh = {.tgid = tgid, .signal = signal, .code = code}, *note;
	__u32 at = tgid % SIGNALS_NOTED;

	if ((result != SIGNAL_DELIVERED && result != SIGNAL_LOSES_INFO) ||
	    (signal < 32 && SIGNALS_HARMLESS >> signal & 1))
		return;
	note = ts_signals.lookup(&at);
	if (!note)
		return;
	fresh.sender_tgid = bpf_get_current_pid_tgid() >> 32;
	/* a handler that has cleaned up ends its process by the same signal */
	if (fresh.sender_tgid == tgid && note->tgid == tgid && note->signal == signal && code <= 0)
		return;
	fresh.sender_shown = task_shown_tgid(sender);
	bpf_get_current_comm(fresh.sender_comm, sizeof(fresh.sender_comm));
	*note = fresh;
}

#ifdef HAVE_task_struct_exit_code
static inline __u32 task_exit_code(struct task_struct *task)
{
	__u32 code = 0;

	bpf_probe_read_kernel(&code, sizeof(code), &task->exit_code);
	return code;
}

#if defined(HAVE_signal_struct_oom_mm) || defined(HAVE_signal_struct_live)
static inline struct signal_struct *task_process(struct task_struct *task)
{
	struct signal_struct *process = 0;

	bpf_probe_read_kernel(&process, sizeof(process), &task->signal);
	return process;
}
#endif

/* True if the OOM killer chose the process: mark_oom_victim() of mm/oom_kill.c (4.9). */
static inline __u32 task_is_oom_victim(struct task_struct *task)
{
	__u64 memory = 0;
#ifdef HAVE_signal_struct_oom_mm
	bpf_probe_read_kernel(&memory, sizeof(memory), &task_process(task)->oom_mm);
#endif
	return memory != 0;
}

/* True if no thread of the process is left. */
static inline int task_is_last(struct task_struct *task)
{
	__u32 live = 1;
#ifdef HAVE_signal_struct_live
	bpf_probe_read_kernel(&live, sizeof(live), &task_process(task)->live);
#endif
	return !live;
}

/* The status of the process if it ends with this thread; 0: it does not, or all is well. That is
 * its first thread's; but if that one had ended before the others, the last one's. */
static inline __u32 process_status(struct task_struct *task, __u32 tgid)
{
	struct task_struct *first = 0;
	__u32 status = task_exit_code(task);

	if (!status || task_tid(task) == tgid)
		return status;
	bpf_probe_read_kernel(&first, sizeof(first), &task->group_leader);
	return task_exit_state(first) && !task_exit_code(first) && task_is_last(task) ? status : 0;
}

/* The present thread ends. */
static inline void process_ends(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, status, at = tgid % SIGNALS_NOTED;
	struct incident incident = {};
	struct latency_key key = {};
	struct thread_state *thread;
	struct signal_note *note;

	status = process_status(task, tgid);
	if (!status)
		return;
	thread = thread_find(tgid);
	if (!thread)
		return;
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, task, tgid);
	if (!SIGNAL_NUMBER(status) && task_parent_tgid(task) != 1)
		return;
	if (!latency_key_fill(&key, thread, LATENCY_INCIDENTS))
		return;
	incident.status = status;
	incident.oom = task_is_oom_victim(task);
	note = ts_signals.lookup(&at);
	if (note && note->tgid == tgid && note->signal == SIGNAL_NUMBER(status)) {
		incident.noted = 1;
		incident.code = note->code;
		incident.sender_pid = note->sender_shown;
		__builtin_memcpy(incident.sender_comm, note->sender_comm,
				 sizeof(incident.sender_comm));
	}
	event_report(&key, bpf_ktime_get_ns(), 0, &incident);
}
#else
#define process_ends()
#endif
