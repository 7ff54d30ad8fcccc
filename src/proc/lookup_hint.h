/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lookups must know of a sampled thread beside its sample; how long an answer serves.
 */
#ifndef TSNAP_PROC_LOOKUP_HINT_H
#define TSNAP_PROC_LOOKUP_HINT_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKUP_RAN_NS (500 * 1000000ll)	    /* of a thread that ran since */
#define LOOKUP_STILL_NS (10 * 1000000000ll) /* of one that did not */

struct lookup_hint {
	bool compat;	   /* the system call was made through the 32-bit entry */
	uint64_t sequence; /* changes whenever the thread was switched; same sequence: same file */
};

#endif
