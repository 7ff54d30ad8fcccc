/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounts at the end of an interval: exact times of all threads, sampled or not, and the processes
 * that forked, executed and exited. For src/live only.
 *
 * An account is a struct sample without a state and with no weight: what a thread did since its
 * last sample. When a thread ends, the switch adds its totals to ts_processes, by name and user
 * (bpf_text/processes.bpf.c), next to forks and execs; the part that samples have reported already
 * is taken off when the thread is found to be gone (threads/live_dead.h). The map and that code are
 * there only where a report or a share wants them. Next to an account, proc/cpu_busy reads how long
 * CPUs were not idle: all threads' time on CPUs must be the same.
 */
#ifndef TSNAP_LIVE_LIVE_ACCOUNT_H
#define TSNAP_LIVE_LIVE_ACCOUNT_H

#include "live/context/live_context.h"
#include "live/threads/live_dead.h"
#include "proc/cpu_busy.h"
#include "sample/source.h"

/* Zeroed is empty. */
struct live_accounts {
	struct live_context *context;
	struct dead_table dead;
	int64_t attached_ns;	     /* monotonic time from which totals count */
	struct cpu_busy first, busy; /* CPU times at the first totals, and the last account */
	struct source_cpu taken[SOURCE_CPUS_MAX]; /* at the last account of CPUs */
	size_t taken_count;
	int64_t error_us; /* one CPU's difference of busy and totals, all accounts */
	int64_t late_us;  /* error_us at the last account, where the next one's time begins */
};

/* Begins accounts: what threads did until now is not reported. */
void live_accounts_begin(struct live_accounts *accounts, struct live_context *context);
void live_accounts_done(struct live_accounts *accounts);
/* Hands over accounts, as account of struct source. */
void live_accounts_report(struct live_accounts *accounts, account_callback *take, void *to);
/* Moves accounts to the larger maps, in which the kernel counts from now on. */
void live_accounts_move(struct live_accounts *accounts, const struct kernel *bigger);
/* Adds to the status what could not be reported since the beginning. */
void live_accounts_missed(const struct live_accounts *accounts, struct source_status *status);

/* Fills busy_us and busy_error_us. */
void live_accounts_busy(const struct live_accounts *accounts, struct source_status *status);

#endif
