/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals: of a call that waits for any, and of a signalfd. */
#include "waits/wait_object.h"

static void signal_describe(struct wait *wait)
{
	text_add_string(wait->text, "signal");
}

const struct wait_object signal_object = {
	.kind = WAIT_SIGNAL,
	.calls =
		(const struct wait_call[]){
			{"pause", signal_describe, 0},
			{"sigsuspend", signal_describe, 0},
			{"rt_sigsuspend", signal_describe, 0},
			{"rt_sigtimedwait", signal_describe, 0},
			{"rt_sigtimedwait_time64", signal_describe, 0},
			{0},
		},
	.links = (const struct wait_link[]){{"anon_inode:[signalfd]", "signalfd"}, {0}},
	.describe = signal_describe,
	.is_own = wait_is_own,
};
