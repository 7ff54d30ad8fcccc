/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/kernel_thread.h"
#include "kernel/version_code.h"

#include <sys/utsname.h>

/* Bits of include/linux/sched.h */
#define PF_KTHREAD_BIT 0x200000u   /* since 2.6.27 */
#define PF_IO_WORKER_BIT 0x10u	   /* io_uring's; before 5.12 they had PF_KTHREAD, too */
#define PF_USER_WORKER_BIT 0x4000u /* vhost's, too; until 5.17 a mark of asynchronous work */

uint32_t kernel_thread_flags_of(uint32_t kernel_code)
{
	return PF_KTHREAD_BIT | (kernel_code >= KERNEL_CODE(5, 12) ? PF_IO_WORKER_BIT : 0) |
	       (kernel_code >= KERNEL_CODE(6, 4) ? PF_USER_WORKER_BIT : 0);
}

uint32_t kernel_thread_flags(void)
{
	static uint32_t kept; /* found once, by any thread */
	uint32_t flags = __atomic_load_n(&kept, __ATOMIC_RELAXED);
	struct utsname name;

	if (flags)
		return flags;
	flags = kernel_thread_flags_of(uname(&name) ? 0 : version_code_read(name.release));
	__atomic_store_n(&kept, flags, __ATOMIC_RELAXED);
	return flags;
}
