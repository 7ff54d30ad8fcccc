/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts that probes of the user's own read, and the values that threads hold between two of them.
 * gcc includes this file; the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_PROBE_H
#define TSNAP_PROBE_H

#define PROBE_TEXT_WORDS 32
#define PROBE_TEXT_BYTES (8ul * PROBE_TEXT_WORDS)
#define PROBE_TEXTS_MAX 16384

/* Value of ts_probe_texts, by its hash: a text that is ended by a NUL, and cut if that is its last
 * byte. */
struct probe_text {
	__u64 words[PROBE_TEXT_WORDS];
};

#define PROBE_HELD_MAX 4 /* OWN_PROBES_MAX */

/* Value of ts_held, by thread_state.key: what a thread has from one probe to another (--context),
 * one value for each context that may have one. Only the thread itself writes it.
 *
 * A scan shows what threads held at the scan time: the first change after that keeps what there was
 * before. sequence_begun is written first and sequence_done last, and they are read in the opposite
 * order, as those of struct thread_sched. */
struct probe_held {
	__u64 sequence_done;
	__u64 start_boot_ns; /* of the thread, as thread_identity has it */
	__u32 program;	     /* its thread_identity.known >> IDENTITY_PROGRAM_SHIFT */
	__u32 holds;	     /* bits of the contexts that have a value */
	__u64 values[PROBE_HELD_MAX];
	/* what there was before the first change after a scan time, and that scan time; 0: never */
	__u64 kept_scan_ns;
	__u64 kept_values[PROBE_HELD_MAX];
	__u32 kept_holds;
	__u32 unused;
	__u64 sequence_begun;
};

_Static_assert(sizeof(struct probe_held) == 48 + 16 * PROBE_HELD_MAX, "probe_held has no holes");

#endif
