/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks, execs and exits of processes, and the totals of threads that ended: no sample shows those
 * that live for less than the time between two scans. The probes that see these events call the
 * functions, which are empty without the knob PROCESS_TOTALS.
 */

#ifdef PROCESS_TOTALS
BPF_TABLE("hash", struct process_key, struct process_totals, ts_processes, PROCESS_KEYS_MAX);

#define VOTE (1ull << 32) /* one more, of process_totals.forker */

/* A comm may hold garbage after its NUL, in the kernel too: it is zeroed, so that equal names hash
 * equally. For a word with a zero byte in it `zeros` has the high bit of the first such byte, and
 * perhaps of later ones (both kinds of CPU are little-endian). */
static inline void comm_end(__u64 *comm)
{
	__u64 zeros = (comm[0] - 0x0101010101010101ull) & ~comm[0] & 0x8080808080808080ull;

	if (zeros) {
		comm[0] &= ((zeros & -zeros) >> 7) - 1;
		comm[1] = 0;
	} else {
		zeros = (comm[1] - 0x0101010101010101ull) & ~comm[1] & 0x8080808080808080ull;
		comm[1] &= ((zeros & -zeros) >> 7) - 1;
	}
}

/* Returns the row of a name and user or, when all rows are taken, the row that the sampler made for
 * all others. NULL: not even that row is there.
 *
 * Here and below an address that was found to be NULL is never tested again: the verifiers of 4.9
 * to 4.13 have forgotten by then that it is 0, and follow both ways. */
static inline struct process_totals *process_totals_of(struct process_key *key)
{
	struct process_totals none = {}, *totals;

	comm_end(key->comm);
	totals = ts_processes.lookup(key);
	if (totals)
		return totals;
	ts_processes.insert(key, &none);
	totals = ts_processes.lookup(key);
	if (totals)
		return totals;
	__builtin_memset(key, 0, sizeof(*key));
	key->uid = PROCESS_OTHERS_UID;
	return ts_processes.lookup(key);
}

static inline struct process_totals *process_totals_of_task(struct task_struct *task)
{
	struct process_key key = {};

	task_comm(task, (char *)key.comm);
	key.uid = task_uid(task);
	return process_totals_of(&key);
}

/* Returns the row of the record's name and user, because samplers know the thread by these. */
static inline struct process_totals *process_totals_of_thread(struct thread_state *thread,
							      struct task_struct *task)
{
	struct process_key key = {};

	if (thread->identity.known & IDENTITY_FULL) {
		__builtin_memcpy(key.comm, thread->identity.comm, sizeof(key.comm));
		key.uid = thread->identity.uid;
	} else {
		task_comm(task, (char *)key.comm);
		key.uid = task_uid(task);
	}
	return process_totals_of(&key);
}

static inline void totals_add(struct process_totals *totals, struct thread_state *thread,
			      __u64 now_ns)
{
	__u64 cpu_ns = thread->sched.cpu_ns;

	if (thread->sched.on_cpu)
		cpu_ns += now_ns - thread->sched.in_ns;
	__sync_fetch_and_add(&totals->cpu_ns, cpu_ns);
	__sync_fetch_and_add(&totals->runq_ns, thread->sched.runq_ns);
	__sync_fetch_and_add(&totals->disk_ns, thread->sched.disk_ns);
	__sync_fetch_and_add(&totals->sleep_ns, thread->sched.sleep_ns);
	__sync_fetch_and_add(&totals->voluntary_count, thread->sched.voluntary_count + 1);
	__sync_fetch_and_add(&totals->involuntary_count, thread->sched.involuntary_count);
}

static inline void exit_count(struct process_totals *totals, struct task_struct *task, __u32 tid)
{
	if (task_tgid(task) == tid)
		__sync_fetch_and_add(&totals->exits, 1);
}

/* Counts a thread at its last switch. Its parent may have waited for it by then: the record, if it
 * is complete, says whether users saw it. */
static inline void thread_ended(struct thread_state *thread, struct task_struct *task, __u32 tid,
				__u64 now_ns)
{
	struct process_totals *totals;

	if (thread->identity.known & IDENTITY_FULL ? !thread->identity.tid : !task_was_shown(task))
		return;
	totals = process_totals_of_thread(thread, task);
	if (!totals)
		return;
	exit_count(totals, task, tid);
	totals_add(totals, thread, now_ns);
}

/* Counts the end of a thread that has no record. */
static inline void unrecorded_ended(struct task_struct *task, __u32 tid)
{
	struct process_totals *totals;

	if (!task_was_shown(task))
		return;
	totals = process_totals_of_task(task);
	if (!totals)
		return;
	exit_count(totals, task, tid);
	__sync_fetch_and_add(&totals->unknown, 1);
}

static inline void thread_counted(struct thread_state *thread, struct task_struct *task,
				  __u64 now_ns)
{
	struct process_totals *totals = process_totals_of_thread(thread, task);

	if (totals)
		totals_add(totals, thread, now_ns);
}

/* Counts both threads when one that executes a program goes on under the tid of its process's first
 * thread, with a record that begins anew. The first thread has become a zombie, but its last switch
 * may be yet to come. */
static inline void thread_moved(__u32 old_tid, __u32 tid, struct task_struct *task, __u64 now_ns)
{
	struct thread_state *thread = thread_find(old_tid);

	if (thread)
		thread_counted(thread, task, now_ns);
	thread = thread_find(tid);
	if (thread && !thread->sched.exit_state)
		thread_counted(thread, task, now_ns);
}

static inline __u64 maker_vote(__u64 maker, __u32 pid)
{
	if ((__u32)maker == pid)
		return maker + VOTE;
	return maker < VOTE ? VOTE + pid : maker - VOTE;
}

/* Counts a fork, or a new thread of a process. */
static inline void thread_began(int process)
{
	struct task_struct *parent = (struct task_struct *)bpf_get_current_task();
	__u32 pid = task_shown_tgid(parent);
	struct process_totals *totals;

	if (!pid)
		return;
	totals = process_totals_of_task(parent);
	if (!totals)
		return;
	if (process) {
		__sync_fetch_and_add(&totals->forks, 1);
		totals->forker = maker_vote(totals->forker, pid);
	} else {
		__sync_fetch_and_add(&totals->threads, 1);
		totals->thread_maker = maker_vote(totals->thread_maker, pid);
	}
}

static inline void process_executed(struct task_struct *task)
{
	struct process_totals *totals;

	if (!task_shown_tid(task, 1))
		return;
	totals = process_totals_of_task(task);
	if (totals)
		__sync_fetch_and_add(&totals->execs, 1);
}
#else
#define thread_moved(old_tid, tid, task, now_ns)
#define thread_began(process)
#define process_executed(task)
#endif
