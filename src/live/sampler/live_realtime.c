/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/live_realtime.h"

#include <errno.h>

#define LEAN "real-time priority: on a busy host samples may lean towards threads that sleep ("

/* Reasons for normal priority, one a row, in the words of a report's footer. */
#define LACKS                                                                           \
	X(ASKED, "--no-realtime")                                                       \
	X(RIGHT, "needs CAP_SYS_NICE, or ulimit -r 1")                                  \
	X(GROUP, "refused by the control group, whose cpu.rt_runtime_us is 0, or by a " \
		 "filter of system calls")                                              \
	X(KERNEL, "the kernel refuses it")

#define X(name, words) LACK_##name,
enum lack { LACKS LACK_COUNT };
#undef X

#define X(name, words) words,
static const char *const reasons[] = {LACKS};
#undef X
#define X(name, words) LEAN words ")",
static const char *const lines[] = {LACKS};
#undef X

static enum lack lack_of(const struct realtime *realtime, const struct host *host)
{
	if (realtime->unwanted)
		return LACK_ASKED;
	if (!realtime->err)
		return LACK_COUNT;
	if (realtime->err != -EPERM)
		return LACK_KERNEL;
	return host->cap_nice ? LACK_GROUP : LACK_RIGHT;
}

const char *live_realtime_why(const struct realtime *realtime, const struct host *host)
{
	enum lack lack = lack_of(realtime, host);

	return lack == LACK_COUNT ? NULL : reasons[lack];
}

void live_realtime_describe(const struct realtime *realtime, const struct sampler_status *reported,
			    const struct host *host, struct source_status *status)
{
	enum lack lack = lack_of(realtime, host);
	struct source_missed *missed;

	if (lack != LACK_COUNT) {
		missed = source_status_miss(status, lines[lack], 1);
		missed->standing = true;
		missed->natural = lack == LACK_ASKED;
	}
	missed = source_status_miss_any(
		status, "scans that took more than 1 ms, and ended at normal priority",
		reported->over_count);
	if (missed)
		missed->natural = true;
	missed = source_status_miss_any(status,
					"scans made only when tsnap got a CPU, more than 100 ms "
					"or too many switches late",
					reported->moved_count);
	if (missed)
		missed->natural = true;
}
