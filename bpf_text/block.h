/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to block devices that are in flight, kept by the probes of block.bpf.c. gcc includes
 * this file; the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_BLOCK_H
#define TSNAP_BLOCK_H

#define BLOCK_MAX 8192 /* requests in flight */

/* Key of a request in flight. */
struct block_key {
	/* Address of the struct request, or its first sector where probes do not get the address. 0
	 * with a device: no request, but the thread that last requested a flush of the device. */
	__u64 request;
	__u64 dev; /* device if request is a sector or 0; else 0 */
};

/* block_request.op: REQ_OP_x of include/linux/blk_types.h, since 4.10 */
#define BLOCK_READ 0
#define BLOCK_WRITE 1
#define BLOCK_FLUSH 2
#define BLOCK_DISCARD 3
#define BLOCK_ERASE 5
#define BLOCK_ZEROES 9
#define BLOCK_COMMAND_FROM 32 /* SCSI and driver commands: to 35 */
#define BLOCK_COMMAND_TO 35
#define BLOCK_OTHER 255

struct block_request {
	__u64 queue_ns; /* 0: not seen */
	__u64 issue_ns; /* 0: not yet */
	__u32 dev;	/* the whole disk: major << 20 | minor */
	__u32 op;
	__u32 bytes;
	/* thread that queued the request, as in latency_key: */
	__u32 tid;
	__u32 shown_tid; /* 0: outside of the pid namespace that users see */
	__u32 tgid;
	__u32 uid;
	__u32 unused;
	char comm[THREAD_COMM_SIZE];
};

/* Reads and writes of a disk that have ended since the programs were attached, by the time from
 * when they were made, or where that was not seen, issued: buckets as in latency.h. By
 * block_request.dev. */
#define DISKS_MAX 64
struct disk_times {
	__u32 buckets[LATENCY_BUCKETS];
};

_Static_assert(sizeof(struct block_request) == 64, "block_request has no holes");

#endif
