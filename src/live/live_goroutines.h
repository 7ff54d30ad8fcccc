/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines: those of one process, as text. Without BPF programs, and with a parser and a
 * sandbox of its own. */
#ifndef TSNAP_LIVE_LIVE_GOROUTINES_H
#define TSNAP_LIVE_LIVE_GOROUTINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* all: also those of the runtime. free: no sandbox. 0, or -errno with e. */
int live_goroutines(int64_t pid, bool all, bool free, struct text *out, struct error *e);

#endif
