/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf_text/thread_state.h for user code: the kernel's fixed-width types come first. */
#ifndef TSNAP_KERNEL_RECORD_H
#define TSNAP_KERNEL_RECORD_H

#include <linux/types.h>

#include "thread_state.h"
#include "latency.h"
#include "block.h"
#include "irq.h"
#include "events.h"
#include "probe.h"
#include "wakes.h"
#include "work.h"

#endif
