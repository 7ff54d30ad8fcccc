/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time that has to pass: sleeps, polls of nothing, and timerfds. */
#include "waits/wait_object.h"

static void timer_describe(struct wait *wait)
{
	text_add_string(wait->text, "timer");
}

static void timer_edge(const struct wait_facts *facts, const struct sample *sample,
		       struct edge *edge)
{
	(void)facts, (void)sample;
	edge->firm = true;
}

const struct wait_object timer_object = {
	.kind = WAIT_TIMER,
	.calls =
		(const struct wait_call[]){
			{"nanosleep", timer_describe, 0},
			{"clock_nanosleep", timer_describe, 0},
			{"clock_nanosleep_time64", timer_describe, 0},
			{0},
		},
	.describe = timer_describe,
	.edge = timer_edge,
};

static void timerfd_describe(struct wait *wait)
{
	int64_t left_s = wait_fdinfo_number(wait, "it_value: (", 10);

	text_add_string(wait->text, "timerfd");
	if (left_s != ABSENT)
		text_add_format(wait->text, " %llds left", (long long)left_s);
}

const struct wait_object timerfd_object = {
	.kind = WAIT_TIMER,
	.links = (const struct wait_link[]){{"anon_inode:[timerfd]", "timerfd"}, {0}},
	.describe = timerfd_describe,
	.is_own = wait_is_own,
	.edge = timer_edge,
};
