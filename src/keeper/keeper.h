/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host in trouble has processes that block any thread that reads their files in /proc: one whose
 * memory map is locked for ever, an exec that does not end, a page or a file of a server that is
 * gone. The kernel does not release the reading thread, mostly not even for SIGKILL. What is read
 * of another process, and who protects tsnap then:
 *
 *   what is read                        by which thread      if it blocks
 *   files in /proc, descriptors         main (proc, waits)   avoid, keeper
 *   maps, pages in memory, kernel stack main (unwind)        avoid, keeper; present pages only
 *   ELF files: tables, names            parser               the parser is given up; opened by main
 *   names of frames                     names thread         it waits for its parser, nobody for it
 *   memory of Python and Java           parser               the parser is given up
 *   names of users                      main                 keeper, by users_ns
 *
 * - avoid (avoid.h), asked before each read: from 5.10 on the kernel tells whether a process is
 *   locked now. Such a sample has "-", is counted, and is tried again at the next scan.
 * - parser (parser/parser.h): a process without rights that costs one request if it hangs.
 * - keeper, for what neither has seen. tsnap is two processes: the worker samples and prints, the
 *   keeper waits for it, and opens no files of other processes, so that tsnap always ends in time
 *   and can always be stopped. If a thread of the worker sleeps in one call (blocked_call.h) for
 *   a second, the keeper has the worker's guard, a thread that does nothing else, save what was
 *   sampled and close all files. Then it kills the worker, and starts a new one that avoids that
 *   process or file; or all files of mounts that any user can make, the first time that one of
 *   them blocks. It restores the terminal after a worker of --top that could not
 *   (terminal_rescue.h).
 *
 * If the keeper is killed, the guard has the worker end in order.
 */
#ifndef TSNAP_KEEPER_KEEPER_H
#define TSNAP_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "keeper/blocked_call.h"
#include "keeper/terminal_rescue.h"

/* Progress of the workers, in memory that all of them share. */
struct keeper_progress {
	int64_t began_ns;  /* clock_monotonic_ns() when the first worker was ready to sample */
	int64_t reports;   /* printed reports; with --csv and --json, scans */
	bool output_begun; /* the first lines of the output are written */
	struct blocked_subject subject; /* what the present worker met */
	_Atomic int64_t
		guard;	    /* thread id of the worker's guard; 0: none, or it closed all files */
	_Atomic bool saved; /* the guard has saved what was sampled */
	_Atomic bool user_mounts; /* the worker has files of AVOID_USER_MOUNTS */
	_Atomic int exit_code; /* 1 + that of the worker, once it has done all but to end; or 0 */
	_Atomic int64_t delivered_ns; /* scan time up to which all is printed, or on the disk */
	_Atomic int64_t worker_pid;   /* pid of the present worker, as /proc shows it; 0: not yet */
	_Atomic int64_t
		users_ns; /* time when the lookup of a user's name began; 0: there is none */
	struct terminal_rescue terminal;
};

/* Starts the workers, and returns true in each of them. The keeper ends in this call, with the exit
 * code of the worker that ended by itself. explain: adds which limits may be why a worker was
 * killed. False: no second process can be created; the caller is to work itself. */
bool keeper_begin(void (*explain)(int err, struct text *to));

/* Starts the worker's guard. Must be called after the sandbox was entered, which bounds only the
 * threads that begin later. If the keeper is killed, nobody is left to restore the terminal and to
 * tell what was lost: from now on the worker ends in order then, as after SIGTERM, or without its
 * main thread if one of the calls of that does not end; until now it was killed with its keeper.
 * Without a keeper, does nothing. */
void keeper_guard_begin(void);

/* Has the guard call save(of) if this worker is to be given up because one of its threads waits in
 * a call that does not end: what was sampled until then is shown or recorded. The main thread,
 * which waits in that or another call, does not run meanwhile, nor after. save NULL: no more. */
void keeper_saves(void (*save)(void *of), void *of);

/* Progress of the workers; never NULL: without keeper_begin(), that of this process. */
struct keeper_progress *keeper_progress(void);

/* True if files of mounts of user namespaces, which this worker is about to open, must not be
 * opened: one has blocked a worker. The second: if the descriptor's file is one. */
bool keeper_avoids_user_mounts(void);
bool keeper_avoids_descriptor(int fd);

/* True if the keeper was killed. */
bool keeper_is_lost(void);

#endif
