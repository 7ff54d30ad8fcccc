/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a worker does if its keeper is killed: nobody is left to restore the terminal and to tell
 * what was lost. So the worker ends in order, as after SIGTERM: it prints its report, writes what
 * it has recorded, and restores the terminal. If its main thread can't, because one of its calls
 * does not end, the process ends without it. Until this is called, the worker is killed with its
 * keeper. */
#ifndef TSNAP_KEEPER_KEEPER_LOSS_H
#define TSNAP_KEEPER_KEEPER_LOSS_H

#include <stdbool.h>

/* Starts the thread that waits for the keeper's end. Must be called after the sandbox was entered,
 * which bounds only the threads that begin later. Without a keeper, does nothing. */
void keeper_loss_watch(void);

/* True if the keeper was killed. */
bool keeper_is_lost(void);

#endif
