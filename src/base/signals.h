/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The signals that ask a program to end. SIGINT and SIGTERM always, SIGHUP unless it is ignored
 * (nohup): each ends a wait with EINTR and is kept; a second one, 0.2 s later or more, ends the
 * process at once.
 */
#ifndef TSNAP_BASE_SIGNALS_H
#define TSNAP_BASE_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

void signals_set(void);
bool signals_stop(void); /* true if one of them came */
/* When SIGTERM came, by the monotonic clock; 0: it has not. Who sends it does not look on, as who
 * types SIGINT does: the end must not wait for anybody. */
int64_t signals_terminated_ns(void);
/* Sets what a second signal calls before it ends the process: async-signal-safe; NULL: nothing. */
void signals_before_end(void (*function)(void));

#endif
