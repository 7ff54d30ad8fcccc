/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wake-ups that end a wait which a scan has seen (--critical-path): a ring for each CPU. gcc
 * includes this file; the BPF text gets the same bytes pasted in.
 *
 * A thread is reported once for each scan at most: a wait that began after the last scan time
 * belongs to no scan.
 */
#ifndef TSNAP_WAKES_H
#define TSNAP_WAKES_H

#define WAKE_ROWS_MAX 1024 /* unread wake-ups of a CPU, a power of two */

/* wake_row.flags */
#define WAKE_BY_IDLE 1u /* an idle CPU ran, so it was an interrupt */

/* begun is written first and done last: a row whose two are equal in a copy made from done to begun
 * is whole. Ids are those of /proc. */
struct wake_row {
	__u64 done;	   /* index of the row since the start, plus one */
	__u64 slept_ns;	   /* time when the thread left its CPU */
	__u64 wake_ns;	   /* time when the thread was woken */
	__u64 context;	   /* address on the stack that the waker's code ran on */
	__u64 waker_stack; /* kernel stack of the thread on that CPU; 0: not known. context is on
			      another stack in an interrupt of kernel code */
	__u64 entry;	   /* return address below that thread's saved registers, by its entry from
			      user mode; 0: not known */
	__u32 tid;
	__u32 waker_tid; /* thread on that CPU; 0: not known */
	__u32 flags;
	__u32 unused;
	__u64 begun;
};

struct wake_ring {
	__u64 before_ns; /* waits that began before this time are reported: the last scan time, or
			    one that is due */
	__u64 count;	 /* rows ever begun */
	struct wake_row rows[WAKE_ROWS_MAX];
};

_Static_assert(sizeof(struct wake_row) == 72, "wake_row has no holes");

#endif
