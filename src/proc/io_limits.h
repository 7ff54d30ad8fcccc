/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups with a limit of their input and output: io.max of cgroup v2, blkio.throttle.* of
 * v1; and what they have used of it (io.stat, blkio.throttle.io_service_bytes and io_serviced). See
 * admin-guide/cgroup-v2 and admin-guide/cgroup-v1/blkio-controller of the kernel's documentation.
 *
 * The kernel does not count how long it throttled a group: a group that used up its limit was
 * throttled.
 */
#ifndef TSNAP_PROC_IO_LIMITS_H
#define TSNAP_PROC_IO_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc/cgroup.h"

#define IO_LIMIT_GROUPS_MAX 256
#define IO_LIMITS_OF_GROUP 8 /* further limits are not reported */

enum io_limit_kind { IO_READ_BYTES, IO_WRITE_BYTES, IO_READS, IO_WRITES, IO_LIMIT_KINDS };

struct io_limit {
	uint32_t dev; /* major << 20 | minor */
	enum io_limit_kind kind;
	int64_t limit;	     /* bytes or requests a second */
	int64_t first, used; /* use as of the first read, and of the latest */
};

struct io_limit_group {
	char *path; /* path in the controller's hierarchy */
	struct io_limit limits[IO_LIMITS_OF_GROUP];
	size_t count;
};

/* All groups with a limit. Zeroed: the host has none. */
struct io_limits {
	struct cgroup_mount mount;
	struct io_limit_group *groups;
	size_t count, capacity;
	int64_t walked_ns; /* time of the last walk over all groups of the host; 0: never */
};

/* The word of io.max: rbps, wbps, riops, wiops. */
const char *io_limit_word(enum io_limit_kind kind);

/* Finds the hierarchy in PROC_ROOT/self/mountinfo. */
void io_limits_init(struct io_limits *limits, const char *proc_root);
void io_limits_done(struct io_limits *limits);
/* Reads limits and counts of all groups with a limit; now and then looks for new ones. */
void io_limits_read(struct io_limits *limits, int64_t now_ns);

#endif
