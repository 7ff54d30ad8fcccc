/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about a sampled thread that lookups need beside its sample, and how long results of lookups
 * are valid. */
#ifndef TSNAP_PROC_LOOKUP_HINT_H
#define TSNAP_PROC_LOOKUP_HINT_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKUP_RAN_NS (500 * 1000000ll)	    /* validity if the thread has run since */
#define LOOKUP_STILL_NS (10 * 1000000000ll) /* validity if the thread has not run */

struct lookup_hint {
	bool compat;	   /* the system call was made through the 32-bit entry */
	bool no_call;	   /* what is known of the thread shows that it is in no system call */
	int64_t since_ns;  /* when the thread left its CPU (monotonic); 0: not known */
	uint64_t sequence; /* changes whenever the thread is switched; same sequence: same file */
};

#endif
