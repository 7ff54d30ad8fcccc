/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where samples of this host come from: BPF programs write records of threads, or where none may be
 * loaded they are made from /proc (live/threads/proc_records.h). Everything else is the same. */
#ifndef TSNAP_LIVE_LIVE_PROC_H
#define TSNAP_LIVE_LIVE_PROC_H

#include "base/error.h"
#include "live/scan/live_state.h"
#include "maps/kernel.h"

/* Opens what --source names: without it BPF, else /proc, and a remark says why and what is missing.
 * 0 or -errno with e. */
int live_kernel_begin(struct live *live, const struct kernel_options *options, struct error *e);
/* Frees what it has for /proc, after the sampler has ended. */
void live_kernel_end(struct live *live);

#endif
