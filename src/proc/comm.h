/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and processes of threads other than the sampled one, from /proc/TID. */
#ifndef TSNAP_PROC_COMM_H
#define TSNAP_PROC_COMM_H

#include <stdint.h>

struct cache;

#define COMMS_MAX 65536

void comms_init(struct cache *comms);
/* The thread's name, interned, up to LOOKUP_RAN_NS old; NULL: there is no such thread. */
const char *comm_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);
/* The thread's process, up to LOOKUP_RAN_NS old; ABSENT: there is no such thread. */
int64_t comm_pid_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);

#endif
