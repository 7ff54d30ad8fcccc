/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of threads other than the sampled one, and their processes, out of /proc/TID. */
#ifndef TSNAP_PROC_COMM_H
#define TSNAP_PROC_COMM_H

#include <stdint.h>

struct cache;

#define COMMS_MAX 65536

void comms_init(struct cache *comms);
/* Interned, and up to LOOKUP_RAN_NS old; NULL where there is no such thread. */
const char *comm_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);
/* The thread's process, as old; ABSENT where there is no such thread. */
int64_t comm_pid_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);

#endif
