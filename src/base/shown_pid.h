/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pid of this process as /proc shows it: it differs from getpid(2) if /proc is that of another pid
 * namespace. */
#ifndef TSNAP_BASE_SHOWN_PID_H
#define TSNAP_BASE_SHOWN_PID_H

#include <sys/types.h>

/* The pid in /proc; 0: there is no /proc, or it does not show this process. */
pid_t shown_pid(void);

#endif
