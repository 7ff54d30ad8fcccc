/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that threads hold from one probe to another (--context). Comes after probe.bpf.c. What a
 * thread held that has ended, or has executed another program since, is of another start or
 * program (struct probe_held), and nobody's.
 */

BPF_F_TABLE("array", __u32, struct probe_held, ts_held, THREADS_MAX, MAPPED_FLAG);

/* Keeps what the thread held at the scan time, if this is its first change since. */
static inline void probe_held_keep(struct probe_held *held)
{
	__u32 zero = 0;
	struct sampling *sampling = ts_sampling.lookup(&zero);
	__u64 scan_ns = sampling ? sampling->scan_time_ns : 0;

	if (!scan_ns || held->kept_scan_ns == scan_ns || bpf_ktime_get_ns() < scan_ns)
		return;
	held->kept_scan_ns = scan_ns;
	held->kept_holds = held->holds;
#pragma unroll
	for (int i = 0; i < PROBE_HELD_MAX; i++)
		held->kept_values[i] = held->values[i];
}

/* holds: 1 if the present thread has that value of the context from now on, 0 if it has none. */
static inline void probe_hold(__u32 context, __u64 value, __u32 holds)
{
	struct thread_state *thread = probe_thread();
	struct probe_held *held;
	__u32 key, program;
	__u64 sequence;

	if (!thread)
		return;
	key = thread->key;
	held = ts_held.lookup(&key);
	if (!held)
		return;
	program = thread->identity.known >> IDENTITY_PROGRAM_SHIFT;
	sequence = held->sequence_done + 1;
	held->sequence_begun = sequence;
	ORDERED();
	if (held->start_boot_ns != thread->identity.start_boot_ns || held->program != program) {
		held->start_boot_ns = thread->identity.start_boot_ns;
		held->program = program;
		held->holds = 0;
	}
	probe_held_keep(held);
	held->values[context] = value;
	held->holds = (held->holds & ~(1u << context)) | holds << context;
	ORDERED();
	held->sequence_done = sequence;
}
