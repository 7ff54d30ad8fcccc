/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for memory, from stacks of kernels old and new, and the group whose limit is reached. */
#include "unit.h"
#include "fake_proc.h"
#include "fake_tree.h"
#include "waits/memory.h"
#include "waits/wait_object.h"
#include "proc/cgroup.h"

#define STACK(...) STACK_OF(__VA_ARGS__, NULL)

static const char *stack_of(const char *const *names)
{
	static char text[2048];

	*text = '\0';
	for (; *names; names++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "[<0>] %s+0x12/0x340\n",
			 *names);
	return text;
}

#define STACK_OF(...) stack_of((const char *const[]){__VA_ARGS__})

static void expect(const char *stack, const char *words, const char *limit, bool fault)
{
	const struct memory_row *row = memory_row_find(stack);

	if (!words) {
		assert_null(row);
		return;
	}
	if (!row)
		fail_msg("nothing, not %s:\n%s", words, stack);
	assert_string_equal(row->words, words);
	assert_int_equal(row->fault, fault);
	/* a runnable thread that was interrupted in a fault waits for a CPU */
	assert_int_equal(row->runs, !strcmp(words, "reclaim"));
	if (limit)
		assert_string_equal(row->limit, limit);
	else
		assert_null(row->limit);
}

static void stacks(void **state)
{
	expect(STACK("folio_wait_bit_common", "filemap_fault", "__do_fault", "do_fault",
		     "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"),
	       "page fault", NULL, true);
	expect(STACK("io_schedule", "__lock_page_or_retry", "filemap_fault", "ext4_filemap_fault",
		     "__do_fault", "handle_pte_fault", "__do_page_fault", "page_fault"),
	       "page fault", NULL, true);
	expect(STACK("folio_wait_bit_common", "do_swap_page", "handle_mm_fault", "exc_page_fault"),
	       "swap-in", NULL, false);
	expect(STACK("migration_entry_wait_on_locked", "migration_entry_wait", "do_swap_page",
		     "handle_mm_fault", "exc_page_fault"),
	       "page migration", NULL, false);
	expect(STACK("mem_cgroup_oom_synchronize", "pagefault_out_of_memory", "exc_page_fault"),
	       "out of memory", "memory.max", false);
	expect(STACK("shrink_lruvec", "try_to_free_mem_cgroup_pages", "try_charge_memcg",
		     "__mem_cgroup_charge", "do_anonymous_page", "handle_mm_fault"),
	       "reclaim", "memory.max", false);
	expect(STACK("schedule_timeout_killable", "__mem_cgroup_handle_over_high",
		     "exit_to_user_mode_loop"),
	       "reclaim", "memory.high", false);
	expect(STACK("try_to_free_mem_cgroup_pages", "reclaim_high", "mem_cgroup_handle_over_high"),
	       "reclaim", "memory.high", false);
	expect(STACK("shrink_node", "do_try_to_free_pages", "try_to_free_pages",
		     "__alloc_pages_slowpath"),
	       "reclaim", NULL, false);
	expect(STACK("io_schedule_timeout", "balance_dirty_pages_ratelimited_flags",
		     "generic_perform_write"),
	       "dirty pages", NULL, false);
	expect(STACK("rwsem_down_read_slowpath", "down_read", "do_user_addr_fault"),
	       "memory map lock", NULL, false);
	expect(STACK("folio_wait_bit_common", "__folio_lock", "truncate_inode_pages_range"),
	       "page lock", NULL, false);
	expect(STACK("__filemap_get_folio", "ext4_da_write_begin"), "page lock", NULL, false);
	expect(STACK("folio_wait_writeback", "__filemap_get_folio", "ext4_da_write_begin"), NULL,
	       NULL, false);
	/* locks of directories, and reads of files, are known by their calls */
	expect(STACK("rwsem_down_write_slowpath", "down_write", "do_unlinkat"), NULL, NULL, false);
	expect(STACK("folio_wait_bit_common", "filemap_get_pages", "filemap_read", "vfs_read"),
	       NULL, NULL, false);
	expect("", NULL, NULL, false);
	expect("[<0>] ", NULL, NULL, false);
	expect("filemap_fault\n[<0>] x", NULL, NULL, false);
}

static void frozen_file_systems(void **state)
{
	assert_true(frozen_fs_is_waited_for(
		STACK("percpu_rwsem_wait", "mnt_want_write", "path_openat", "do_filp_open")));
	assert_true(frozen_fs_is_waited_for(
		STACK("percpu_rwsem_wait", "__percpu_down_read", "vfs_write", "ksys_write")));
	assert_false(frozen_fs_is_waited_for(STACK("percpu_rwsem_wait", "percpu_down_write",
						   "cgroup_procs_write_start",
						   "kernfs_fop_write_iter", "vfs_write")));
}

/* The innermost group that has reached its limit is reported, not one below its limit. */
static void groups(void **state)
{
	static const char stack[] = "[<0>] try_to_free_mem_cgroup_pages+0x1/0x2\n";
	struct fake_proc proc;
	struct text words = {0};
	struct waits waits = {.memory_group_looked_for = true};
	struct wait wait = {.waits = &waits, .pid = 7, .tid = 7, .text = &words};

	fake_proc_init(&proc);
	waits.root = proc.root;
	fake_proc_put(&proc, 7, 7, "cgroup", "3:cpu:/no\n0::/pod/a/b\n");
	fake_tree_mounts("1 1 0:1 / %s/g rw - cgroup2 none rw\n");
	fake_tree_put("g/pod/memory.max", "1000000\n");
	fake_tree_put("g/pod/memory.current", "999000\n");
	fake_tree_put("g/pod/a/memory.max", "2000000\n");
	fake_tree_put("g/pod/a/memory.current", "999000\n");
	fake_tree_put("g/pod/a/b/memory.max", "max\n");
	fake_tree_put("g/pod/a/b/memory.current", "999000\n");
	cgroup_mount_find(&waits.memory_group, fake_tree, "memory");
	assert_true(memory_of_stack(&wait, stack, false));
	assert_string_equal(text_string(&words), "reclaim (memory.max of /pod)");
	fake_tree_put("g/pod/memory.max", "max\n");
	assert_true(memory_of_stack(&wait, stack, false));
	assert_string_equal(text_string(&words), "reclaim (memory.max)");
	assert_false(memory_of_stack(&wait, "[<0>] do_wait+0x1/0x2\n", false));
	cgroup_mount_done(&waits.memory_group);
	fake_proc_done(&proc);
	text_done(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks),
		cmocka_unit_test(frozen_file_systems),
		cmocka_unit_test_setup_teardown(groups, fake_tree_begin, fake_tree_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
