/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of this process, by name: which of them may be why a call failed. */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_LIMITS_H
#define TSNAP_LIVE_CONTEXT_LIVE_LIMITS_H

#include "base/text.h"

/* Notes whether a filter of system calls is in force. Must be called before the sandbox, which
 * loads one of its own. */
void live_limits_begin(void);

/* Adds which limits may be why a call failed, and what to do: open files (EMFILE), memory (ENOMEM),
 * processes and threads (EAGAIN), a filter of system calls (EPERM, ENOSYS). err: a positive errno.
 * Adds nothing where no such limit is in force. */
void live_limits_explain(int err, struct text *to);

/* Returns "WHAT (CALL: words of the errno, limits)", a permanent name (base/names.h). */
const char *live_limits_words(const char *what, const char *call, int err);

#endif
