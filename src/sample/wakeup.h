/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a wait, as the critical path uses it. Times are of the monotonic clock. */
#ifndef TSNAP_SAMPLE_WAKEUP_H
#define TSNAP_SAMPLE_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct wakeup {
	int64_t tid;
	int64_t waker_tid; /* for an interrupt: the thread that was interrupted; ABSENT: an idle
			      CPU, or a thread that is not known */
	int64_t slept_ns;  /* time when the thread left its CPU */
	int64_t wake_ns;
	bool interrupt;
};

#endif
