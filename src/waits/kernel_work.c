/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits within the kernel that its functions name: for what the kernel itself has to finish, which
 * no thread holds (an RCU grace period, a work item, a helper program), and for two mutexes that a
 * whole host shares: while one is held, nobody can change network interfaces, or control groups.
 * Who holds these is found by edges to kernel locks. */
#include "sample/waits_on.h"
#include "waits/kernel_stack.h"
#include "waits/wait_object.h"

/* Functions that sleep only for that; /proc/TID/stack leaves out those of completions, wait queues
 * and mutexes and, where rtnl_lock() is a jump to mutex_lock(), it as well.
 * kernel/rcu, kernel/workqueue.c, kernel/kthread.c, kernel/umh.c, kernel/stop_machine.c,
 * security/keys/request_key.c, kernel/audit.c, fs/dcache.c, fs/inode.c, block/blk-mq.c,
 * block/blk-core.c of Linux 4.9 to 6.18. */
/* clang-format off */
static const struct {
	const char *functions, *words;
} rows[] = {
	{"synchronize_rcu* synchronize_sched* synchronize_srcu* __synchronize_srcu *wait_rcu_gp* rcu_barrier* "
	 "_rcu_barrier* srcu_barrier _synchronize_rcu_expedited* synchronize_sched_expedited* exp_funnel_lock",
	 "RCU grace period"},
	{"flush_work __flush_work* *flush_workqueue drain_workqueue flush_delayed_work *cancel_work_timer "
	 "*cancel_work_sync cancel_delayed_work_sync",
	 "work item of a kernel work queue"},
	{"*kthread_create_on_node kthread_create_on_cpu kthread_stop kthread_park",
	 "kernel thread that starts or stops"},
	{"call_usermodehelper_exec", "helper program of the kernel (modprobe, for instance)"},
	{"wait_for_key_construction", "key that another process has to provide"},
	{"audit_log_start wait_for_auditd", "room in the queue of audit records"},
	{"stop_one_cpu stop_two_cpus *stop_cpus *stop_machine*", "stop of other CPUs"},
	{"d_alloc_parallel d_wait_lookup", "lookup of the same file name by another thread"},
	{"wait_on_inode __wait_on_freeing_inode iget_locked iget5_locked ilookup ilookup5",
	 "inode that another thread reads or frees"},
	{"rtnl_lock* rtnl_net_lock* rtnetlink_rcv_msg rtnl_newlink rtnl_dumpit dev_ioctl devinet_ioctl "
	 "register_netdev unregister_netdev register_nexthop_notifier __tun_chr_ioctl tun_chr_close",
	 "rtnl" WAITS_ON_MUTEX},
	{"cgroup_lock cgroup_kn_lock_live proc_cgroup_show proc_cgroupstats_show cgroupstats_build",
	 "cgroup" WAITS_ON_MUTEX},
	{"blk_mq_freeze_queue_wait* blk_queue_enter *bio_queue_enter", "frozen queue of a block device"},
};
/* clang-format on */

static bool kernel_work_of_stack(struct wait *wait, const char *stack, bool runs)
{
	char function[FUNCTION_SIZE];

	if (runs || !function_next(&stack, function))
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!function_listed(rows[i].functions, function))
			continue;
		wait->facts = wait_facts_absent;
		text_clear(wait->text);
		text_add_string(wait->text, rows[i].words);
		return true;
	}
	return false;
}

const struct wait_object kernel_work_object = {.of_stack = kernel_work_of_stack};
