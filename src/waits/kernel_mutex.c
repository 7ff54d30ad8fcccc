/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes of the kernel that a whole host shares, by their names: while one is held, nobody can
 * change network interfaces, or control groups. Who holds it is found from 5.10 on (edges to
 * kernel locks). */
#include "sample/waits_on.h"
#include "waits/kernel_stack.h"
#include "waits/wait_object.h"

/* Functions that sleep themselves only for that mutex: /proc/TID/stack leaves out those of the
 * mutex, and where rtnl_lock() is a jump to mutex_lock(), it as well. */
/* clang-format off */
static const struct {
	const char *functions, *name;
} mutexes[] = {
	{"rtnl_lock* rtnl_net_lock* rtnetlink_rcv_msg rtnl_newlink rtnl_dumpit dev_ioctl devinet_ioctl "
	 "register_netdev unregister_netdev register_nexthop_notifier __tun_chr_ioctl tun_chr_close",
	 "rtnl" WAITS_ON_MUTEX},
	{"cgroup_lock cgroup_kn_lock_live proc_cgroup_show proc_cgroupstats_show cgroupstats_build",
	 "cgroup" WAITS_ON_MUTEX},
};
/* clang-format on */

static bool kernel_mutex_of_stack(struct wait *wait, const char *stack, bool runs)
{
	char function[FUNCTION_SIZE];

	if (runs || !function_next(&stack, function))
		return false;
	for (size_t i = 0; i < sizeof(mutexes) / sizeof(*mutexes); i++) {
		if (!function_listed(mutexes[i].functions, function))
			continue;
		wait->facts = wait_facts_absent;
		text_clear(wait->text);
		text_add_string(wait->text, mutexes[i].name);
		return true;
	}
	return false;
}

const struct wait_object kernel_mutex_object = {.of_stack = kernel_mutex_of_stack};
