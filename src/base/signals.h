/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals that request the program to end: SIGINT and SIGTERM always, SIGHUP unless it is ignored
 * (nohup). Each ends a wait with EINTR and is noted; a second one, 0.2 s later or more, ends the
 * process at once.
 */
#ifndef TSNAP_BASE_SIGNALS_H
#define TSNAP_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

void signals_stop_set(sigset_t *set); /* the signals that request the end */
void signals_set(void);
bool signals_stop(void); /* true if one of them came */
/* Monotonic time when SIGTERM came; 0: it has not. Its sender does not watch, as a user who types
 * Ctrl-C (SIGINT) does: the end must not wait for anybody. */
int64_t signals_terminated_ns(void);
/* Sets the function that a second signal calls before it ends the process: async-signal-safe; NULL:
 * none. */
void signals_before_end(void (*function)(void));

#endif
