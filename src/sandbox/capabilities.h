/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities of this thread, bits 1 << CAP_x. */
#ifndef TSNAP_SANDBOX_CAPABILITIES_H
#define TSNAP_SANDBOX_CAPABILITIES_H

#include <stdint.h>

#include "base/text.h"
#include "sandbox/sandbox_use.h"

/* The permitted ones. 0, or -errno. */
int capabilities_held(uint64_t *held);
/* Gives up all others, those that an exec could bring as well. 0, or -errno: they are all there. */
int capabilities_keep(uint64_t kept);

/* Whether the kernel has no CAP_BPF: SANDBOX_OLD_KERNEL, or 0. */
unsigned int sandbox_kernel_use(void);

/* The capabilities that these uses need, bits 1 << CAP_x; held: those that there are. A wider one
 * is among them where a narrower one is not held. */
uint64_t sandbox_capabilities(unsigned int uses, uint64_t held);
/* Their names, "CAP_BPF, CAP_PERFMON". */
void sandbox_capabilities_add(struct text *text, uint64_t capabilities);

#endif
