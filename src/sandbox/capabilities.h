/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities of this thread, bits 1 << CAP_x. */
#ifndef TSNAP_SANDBOX_CAPABILITIES_H
#define TSNAP_SANDBOX_CAPABILITIES_H

#include <stdint.h>

#include "base/text.h"
#include "sandbox/sandbox_use.h"

/* Reads the permitted capabilities. 0, or -errno. */
int capabilities_held(uint64_t *held);
/* Gives up all capabilities but kept, and those that an exec could bring. 0, or -errno: all are
 * still there. */
int capabilities_keep(uint64_t kept);

/* Returns SANDBOX_OLD_KERNEL if the kernel has no CAP_BPF, or 0. */
unsigned int sandbox_kernel_use(void);

/* Returns the capabilities of held that these uses need, bits 1 << CAP_x. A wider one is among them
 * where a narrower one is not held. */
uint64_t sandbox_capabilities(unsigned int uses, uint64_t held);
/* Adds the names of capabilities, "CAP_BPF, CAP_PERFMON". */
void sandbox_capabilities_add(struct text *text, uint64_t capabilities);

#endif
