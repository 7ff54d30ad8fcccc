/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name of a thread, out of /proc/TID/comm. */
#ifndef TSNAP_LOOKUP_COMM_H
#define TSNAP_LOOKUP_COMM_H

#include <stdint.h>

/* Interned; NULL where there is no such thread. */
const char *comm_read(const char *root, int64_t tid);

#endif
