/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number of this process as /proc shows it: where /proc is that of another pid namespace it
 * differs from getpid(2). */
#ifndef TSNAP_BASE_SHOWN_PID_H
#define TSNAP_BASE_SHOWN_PID_H

#include <sys/types.h>

/* 0: there is no /proc, or it does not show this process. */
pid_t shown_pid(void);

#endif
