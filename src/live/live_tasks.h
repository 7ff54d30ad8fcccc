/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --tasks: the asyncio tasks of one process, as text or rows. It loads no BPF programs, and has a
 * parser and a sandbox of its own. */
#ifndef TSNAP_LIVE_LIVE_TASKS_H
#define TSNAP_LIVE_LIVE_TASKS_H

#include "live/live_goroutines.h"

/* Reads the tasks of a process. free, take, out and the result: as for live_goroutines(). */
int live_tasks(int64_t pid, bool free, routine_callback *take, void *to, struct text *out,
	       struct error *e);

#endif
