/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records that may be wrong: the state is read from /proc, or a system call shows whether the
 * thread is there. */
#include "live/live_state.h"
#include "proc/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define GONE_LOOKS_FEW 25    /* looks for threads that are gone, in one housekeeping */
#define GONE_LOOKS 100	     /* looks where there are more records than threads */
#define GONE_LOOKS_MORE 1000 /* looks where there are over GONE_FEW more */
#define GONE_FEW 16

static void record_forget(struct live *live, const struct thread_state *record)
{
	if (!record->sched.tid) { /* the record has no key of the map */
		live_seed_remove(&live->context.seed, record->identity.tid);
		return;
	}
	thread_table_remove(&live->context.kernel.table, record);
	episodes_end(&live->episodes, record->key);
}

enum thread_state_kind live_ambiguous_resolve(struct live *live, const struct thread_state *record,
					      enum thread_state_kind state)
{
	uint64_t sequence = record->sched.sequence_done << 8, *known;
	struct proc_stat stat;
	int64_t reported;

	known = index_put(&live->walk.ambiguous, record->identity.tid, NULL);
	if (*known >> 8 << 8 == sequence && *known & 0xff)
		return (enum thread_state_kind)((*known & 0xff) - 1);
	*known = 0;
	if (proc_stat_read(PROC, record->identity.tgid, record->identity.tid, &stat)) {
		if (!live->context.view.proc_whole)
			return state;
		/* gone: that was its last switch */
		record_forget(live, record);
		return STATE_COUNT;
	}
	reported = state_of_proc_letter(stat.state);
	if (reported == ABSENT)
		return state;
	/* a CPU that comes online unparks its threads, and no program sees them go to sleep */
	if (reported != STATE_RQ && reported != STATE_PARKED)
		*known = sequence | (uint64_t)(reported + 1);
	return (enum thread_state_kind)reported;
}

uint32_t live_gone_looks(const struct live *live)
{
	if (live->walk.unfit_threads >= 0)
		return GONE_LOOKS_FEW;
	return live->walk.unfit_threads < -GONE_FEW ? GONE_LOOKS_MORE : GONE_LOOKS;
}

/* True if the thread is there. kill(2) with signal 0 costs a tenth of a look at /proc; it is used
 * if both mean the same ids. */
static bool thread_is_there(const struct live *live, uint32_t tid)
{
	char path[32];

	if (live->context.kernel.host.pid_depth == 1)
		return !kill((pid_t)tid, 0) || errno != ESRCH;
	snprintf(path, sizeof(path), PROC "/%u", tid);
	return !access(path, F_OK) || errno != ENOENT;
}

bool live_record_gone(struct live *live, const struct thread_state *record,
		      enum thread_state_kind state)
{
	if (!live->context.now.housekeeping || !live->context.view.proc_whole ||
	    (state != STATE_ZOMBIE && !live_gone_turn(live, record)))
		return false;
	live->walk.gone_looks_left -= state != STATE_ZOMBIE;
	if (thread_is_there(live, record->identity.tid))
		return false;
	record_forget(live, record);
	return true;
}
