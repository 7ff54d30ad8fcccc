/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel counts of each block device in /proc/diskstats, as iostat shows it; see
 * admin-guide/iostats of the kernel's documentation. Discards and flushes are left out: nobody
 * reads or writes by them.
 */
#ifndef TSNAP_PROC_DISK_STATS_H
#define TSNAP_PROC_DISK_STATS_H

#include <stddef.h>
#include <stdint.h>

#define DISK_STATS_MAX 64 /* further devices are not read */

struct disk_stats {
	const char *device; /* interned */
	/* since the device was made; of requests that have ended */
	int64_t requests;  /* reads and writes */
	int64_t taken_ms;  /* time that these took, added up */
	int64_t in_flight; /* requests that have not ended, now */
};

/* Reads those of devices that have had a request. path: /proc/diskstats. Returns their number. */
size_t disk_stats_read(const char *path, struct disk_stats stats[DISK_STATS_MAX]);

#endif
