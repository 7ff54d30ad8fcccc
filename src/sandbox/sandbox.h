/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of a process that reads what others have written: a few capabilities, no new ones, and the
 * system calls that sampling takes. A fault in a parser then gives no shell, no loaded module and
 * no mount, and can't trace other processes.
 *
 * From include/uapi/linux/capability.h, prctl(2) and seccomp(2).
 */
#ifndef TSNAP_SANDBOX_SANDBOX_H
#define TSNAP_SANDBOX_SANDBOX_H

#include "base/text.h"
#include "sandbox/capabilities.h"

/* Takes all that uses (enum sandbox_use) do not need from this process for ever, and from all that
 * it forks. Must be called before other threads begin: each has capabilities of its own. The second
 * call does nothing. reported, or NULL, gets a line on what was done and what could not be. A call
 * that is refused is named on standard error, once, and fails with ENOSYS. 0, or -errno: not all of
 * it is in force. */
int sandbox_enter(unsigned int uses, struct text *reported);

/* Leaves a process that only computes on what it is given no capability and no call that opens a
 * file, or starts or finds another process. 0, or -errno: not all of it is in force. */
int sandbox_parse(void);

#endif
