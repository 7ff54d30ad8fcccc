/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that tsnap waits by, or learns by that a process has ended. A filter of system calls
 * (seccomp) may have one of them fail at once: then a loop that waits would spin, or never end. So
 * they are tried before there is anything to wait for. Children inherit the filter. */
#ifndef TSNAP_BASE_REQUIRED_CALLS_H
#define TSNAP_BASE_REQUIRED_CALLS_H

#include "base/error.h"

/* 0, or -errno with the name of the call that is refused. */
int required_calls_try(struct error *e);

#endif
