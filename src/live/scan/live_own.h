/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's own probes (--probe): where their functions are, and their budget.
 *
 * A file is named by its path, or by what a running process executes or has mapped: "postgres",
 * "libc" for libc.so.6. A probe of a return changes the address that a function returns to while it
 * runs: what walks stacks then finds an address that is in no file. So it is refused where a
 * program itself does that: Go's runtime copies stacks, and exceptions of C++ and panics of Rust
 * unwind them.
 *
 * The cost of a probe is what the kernel needs to get to its program (measured at the start, on a
 * function of tsnap's own) and the program's own time, which the kernel counts.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_OWN_H
#define TSNAP_LIVE_SCAN_LIVE_OWN_H

#include "live/scan/live_state.h"

/* Finds the functions and tracepoints, and measures what a call costs. Before programs are
 * compiled. 0, or -errno with a line that says what is not there, and what is like it. */
int live_own_begin(struct live *live, struct error *e);
/* Detaches what has passed its budget in the last second. */
void live_own_check(struct live *live);
/* Tells what was detached. */
void live_own_describe(const struct live *live, struct source_status *status);
void live_own_end(struct live *live);

#endif
