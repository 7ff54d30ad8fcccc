/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a probe of the user's own on a hot function or tracepoint is going to cost: said before it
 * is attached, as its first second is already paid when the budget takes it away.
 *
 * Of many the kernel has a counter, which is read twice. Of the others the rate is a round number
 * of what one busy CPU does of them: programs that allocate, lock or call the kernel in a loop.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_OWN_RATE_H
#define TSNAP_LIVE_SCAN_LIVE_OWN_RATE_H

#include "kernel/own_probe.h"

/* Writes a line to standard error for each probe that is in the table of hot ones. budget: tenths
 * of a percent of a CPU. */
void live_own_rates_tell(const struct own_probes *own, int64_t budget);

#endif
