/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock of a process's memory map, mmap_lock (mmap_sem until 5.7): page faults read what the map
 * has, and mmap(2) and the like change it. Who holds it is found as of any kernel lock. */
#include "sample/waits_on.h"
#include "waits/wait_object.h"

/* Functions that sleep themselves for this lock alone, which is their own process's: wchan leaves
 * out those of the rwsem. Linux 4.9 to 7.0: mm/mmap.c, mm/memory.c, mm/madvise.c, mm/mprotect.c,
 * mm/mremap.c, mm/mlock.c, mm/util.c, kernel/exit.c, arch/x86/mm/fault.c. */
/* clang-format off */
static const char *const functions[] = {
	"lock_mm_and_find_vma", "do_user_addr_fault", "__do_page_fault", "do_page_fault",
	"vm_mmap_pgoff", "vm_munmap", "__vm_munmap", "__do_sys_munmap",
	"__do_sys_brk", "__x64_sys_brk", "__se_sys_brk", "SyS_brk", "vm_brk_flags",
	"do_mprotect_pkey", "do_madvise", "madvise_lock", "__do_sys_mremap", "__se_sys_mremap", "SyS_mremap",
	"do_mlock", "__mm_populate", "exit_mm", "exit_mmap", "do_shmat", "dup_mmap", NULL,
};
/* clang-format on */

static void memory_map_describe(struct wait *wait)
{
	wait_add_thread(wait, WAITS_ON_MAP " of ", wait->pid);
}

const struct wait_object memory_map_object = {.functions = functions,
					      .describe = memory_map_describe};
