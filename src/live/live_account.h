/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At the end of a page: exact times of all threads, sampled or not, and births and deaths. For
 * src/live/live*.c only.
 *
 * Accounts are of each thread what it did since its last sample, without a state, as struct
 * sample with a weight of none. When a thread ends the switch adds its totals to ts_processes,
 * by name and user (bpf_text/processes.bpf.c), next to forks and execs; what samples have told
 * of it already is taken off when it is found to be gone (threads/live_dead.h). The map and that
 * code are there only where a report or a share wants them. Next to an account proc/cpu_busy
 * reads how long CPUs were not idle, which is what all threads' time on CPUs must be.
 */
#ifndef TSNAP_LIVE_LIVE_ACCOUNT_H
#define TSNAP_LIVE_LIVE_ACCOUNT_H

#include "live/live_state.h"

void live_account_begin(struct live *live); /* what came until now is not told */
void live_account_done(struct live *live);
/* struct source's */
void live_account(struct source *source, account_taker *take, void *to);
/* The kernel counts in another table from now on. */
void live_account_move(struct live *live, const struct kernel *bigger);
/* What could not be told, since the beginning. */
void live_account_missed(const struct live *live, struct source_facts *facts);

/* Fills busy_us and busy_error_us. */
void live_account_busy(const struct live *live, struct source_facts *facts);

#endif
