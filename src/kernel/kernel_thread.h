/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads run nothing but the kernel's code. The registers that such a thread saved last are
 * no system call: those of a worker in a process are its creator's.
 */
#ifndef TSNAP_KERNEL_KERNEL_THREAD_H
#define TSNAP_KERNEL_KERNEL_THREAD_H

#include <stdint.h>

/* Returns the flags of which such a thread has at least one (PF_* of task_struct.flags, as
 * /proc/TID/stat shows them), in the kernel with that LINUX_VERSION_CODE. */
uint32_t kernel_thread_flags_of(uint32_t kernel_code);
/* Returns these of the running kernel. */
uint32_t kernel_thread_flags(void);

#endif
