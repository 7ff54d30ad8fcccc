/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folding of texts of the column waits_on, so that waits of one kind group together. */
#ifndef TSNAP_SAMPLE_WAITS_FOLD_H
#define TSNAP_SAMPLE_WAITS_FOLD_H

struct text;

/* Appends waits_on with * in place of what differs for waits of one kind: the holder of a lock and
 * the lock's address, ids of processes and threads, ports from 32768 on (those of clients, but not
 * one that is listened on), and values that change during the wait. "mutex 0x7f21c3a0 held by 123
 * worker" becomes "mutex * held by *", "tcp 10.0.0.9:5432 peer 77 postgres" becomes "tcp
 * 10.0.0.9:5432 peer * postgres". */
void waits_fold(struct text *to, const char *waits_on);

#endif
