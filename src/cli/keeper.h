/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two processes: the worker samples and prints, the keeper waits for it and does nothing else.
 *
 * A host in trouble has processes that block any thread that reads their files in /proc: one whose
 * memory map is locked for ever, an exec that does not end, a page of a server that is gone. The
 * kernel does not release the reading thread, mostly not even for SIGKILL. From 5.10 on the worker
 * sees a lock before it looks (base/avoid.h). If it is found in such a call nevertheless, the
 * keeper has a thread of it save what was sampled, ends it as far as possible, and starts a new
 * worker that avoids that process or file. Before 5.10 each such process costs a worker. The keeper
 * itself opens no files of other processes, so that tsnap always ends in time and can always be
 * stopped. It restores the terminal after a worker of --top that could not.
 *
 * If the keeper is killed, the worker ends in order (keeper_loss_watch()).
 */
#ifndef TSNAP_CLI_KEEPER_H
#define TSNAP_CLI_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/blocked_call.h"
#include "screen/terminal_rescue.h"

/* Progress of the workers, in memory that all of them share. */
struct keeper_progress {
	int64_t began_ns;  /* clock_monotonic_ns() when the first worker was ready to sample */
	int64_t reports;   /* printed reports; with --csv and --json, scans */
	bool output_begun; /* the first lines of the output are written */
	struct blocked_subject subject; /* what the present worker met; or */
	bool users;			/* the names of users */
	_Atomic bool saves, saved;	/* of the present worker: keeper_saves() */
	_Atomic int64_t delivered_ns;	/* scan time up to which all is printed, or on the disk */
	_Atomic int64_t worker_pid; /* pid of the present worker, as /proc shows it; 0: not yet */
	_Atomic uint64_t users_requested; /* base/avoid.h */
	_Atomic int64_t busy;		  /* base/thread.h, of the present worker */
	struct terminal_rescue terminal;
};

/* Starts the workers, and returns true in each of them. The keeper ends in this call, with the exit
 * code of the worker that ended by itself. False: no second process can be created; the caller is
 * to work itself. */
bool keeper_begin(void);

/* Has a thread call save(of) if this worker is to be given up because one of its threads waits in a
 * call that does not end: what was sampled until then is shown or recorded. The main thread, which
 * waits in that or another call, does not run meanwhile, nor after. save NULL: no more. */
void keeper_saves(void (*save)(void *of), void *of);

/* Progress of the workers; never NULL: without keeper_begin(), that of this process. */
struct keeper_progress *keeper_progress(void);

#endif
