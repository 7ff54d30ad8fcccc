/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/memory.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "sample/waits_on.h"
#include "waits/kernel_stack.h"
#include "waits/wait_object.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_BYTES 8192
#define PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define NEARLY_PERCENT 90	    /* percent of its limit that a group which reclaims uses */

/* Functions that __folio_lock() may be inlined into: then the stack begins with one of them. */
#define PAGE_LOCKERS "__filemap_get_folio* pagecache_get_page*"

/* The first row with a function on the stack decides; functions nearer to the reason come first.
 * mm/memcontrol.c, mm/vmscan.c, mm/page-writeback.c, mm/memory.c, mm/filemap.c; folios are pages
 * until 5.16. */
/* clang-format off */
static const struct memory_row memory_rows[] = {
	/* functions					within	words			limit		fault	runs */
	{"*mem_cgroup_handle_over_high reclaim_high",	NULL,	WAITS_ON_RECLAIM,		"memory.high",	false,	true},
	{"mem_cgroup_oom_synchronize mem_cgroup_handle_oom",
							NULL,	WAITS_ON_NO_MEMORY,		"memory.max",	false,	false},
	{"try_to_free_mem_cgroup_pages mem_cgroup_out_of_memory",
							NULL,	WAITS_ON_RECLAIM,		"memory.max",	false,	true},
	{"try_to_free_pages __alloc_pages_direct_reclaim",
							NULL,	WAITS_ON_RECLAIM,		NULL,		false,	true},
	{"try_to_compact_pages __alloc_pages_direct_compact",
							NULL,	WAITS_ON_COMPACTION,		NULL,		false,	false},
	{"balance_dirty_pages*",			NULL,	WAITS_ON_DIRTY,			NULL,		false,	false},
	/* do_swap_page() has these faults, too */
	{"migration_entry_wait* pmd_migration_entry_wait*",
							NULL,	"page migration",		NULL,		false,	false},
	{"do_swap_page",				NULL,	WAITS_ON_SWAP,			NULL,		false,	false},
	{"rwsem_down_*",	"lock_mm_and_find_vma do_user_addr_fault __do_page_fault vm_mmap_pgoff __vm_munmap do_mprotect_pkey *_sys_brk",
								"memory map lock",	NULL,		false,	false},
	{"filemap_fault __do_fault handle_mm_fault",	NULL,	"page fault",		NULL,		true,	false},
	{"__folio_lock __lock_page",			NULL,	"page lock",		NULL,		false,	false},
};
/* clang-format on */

static const struct memory_row page_lock_row = {.words = "page lock"};

static bool innermost_is(const char *patterns, const char *stack)
{
	char name[FUNCTION_SIZE];

	return function_next(&stack, name) && function_listed(patterns, name);
}

const struct memory_row *memory_row_find(const char *stack)
{
	for (size_t i = 0; i < sizeof(memory_rows) / sizeof(*memory_rows); i++)
		if (stack_has(stack, memory_rows[i].functions) &&
		    (!memory_rows[i].within || stack_has(stack, memory_rows[i].within)))
			return &memory_rows[i];
	return innermost_is(PAGE_LOCKERS, stack) ? &page_lock_row : NULL;
}

/* True if the group has a limit, and has nearly reached it. */
static bool group_is_full(const struct cgroup_mount *memory, const char *group, const char *limit)
{
	int64_t most, used;

	most = cgroup_mount_number(memory, group, memory->v1 ? "memory.limit_in_bytes" : limit);
	used = cgroup_mount_number(memory, group,
				   memory->v1 ? "memory.usage_in_bytes" : "memory.current");
	return most >= 0 && used >= most / 100 * NEARLY_PERCENT;
}

/* Adds " (memory.max of /x)": the innermost group that has nearly reached its limit. */
static void limit_describe(const struct wait *wait, const char *limit)
{
	struct cgroup_mount *memory = &wait->waits->memory_group;
	char text[CGROUP_BYTES], group[PATH_MAX];
	const char *path = NULL;
	size_t length;

	if (!wait->waits->memory_group_looked_for)
		cgroup_mount_find(memory, wait->waits->root, "memory");
	wait->waits->memory_group_looked_for = true;
	text_add_format(wait->text, " (%s", memory->v1 ? "memory.limit_in_bytes" : limit);
	if (memory->path && proc_file_read(wait->waits->root, wait->pid, wait->tid, "cgroup", text,
					   sizeof(text)) > 0)
		path = cgroup_of_controller(text, "memory", &length);
	for (; path && length; length = cgroup_outer(path, length)) {
		snprintf(group, sizeof(group), "%.*s", (int)length, path);
		if (!group_is_full(memory, group, limit))
			continue;
		text_add_format(wait->text, " of %s", group);
		break;
	}
	text_add_char(wait->text, ')');
}

/* The address of the next instruction: "-1 0xSP 0xPC" of a thread outside of calls, proc(5). */
static bool instruction_find(const struct wait *wait, uint64_t *address)
{
	struct proc_syscall call;

	if (proc_syscall_read(wait->waits->root, wait->pid, wait->tid, &call) || call.running ||
	    call.nr != -1)
		return false;
	*address = (uint64_t)call.pc;
	return true;
}

/* True if the page at that address is not in memory. */
static bool page_is_absent(const struct wait *wait, uint64_t address)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = proc_file_open(wait->waits->root, wait->pid, wait->tid, "pagemap");
	uint64_t entry;
	bool absent;

	if (fd < 0)
		return false;
	absent = pread(fd, &entry, sizeof(entry), (off_t)(address / (uint64_t)page * 8)) ==
			 (ssize_t)sizeof(entry) &&
		 !(entry & PRESENT);
	close(fd);
	return absent;
}

/* Adds " in FILE": the file that is mapped at the address. */
static void mapped_file_describe(const struct wait *wait, uint64_t address)
{
	FILE *maps = proc_file_stream(wait->waits->root, wait->pid, wait->tid, "maps");
	char line[PATH_MAX + 128];
	unsigned long long start, end;
	int path;

	while (maps && fgets(line, sizeof(line), maps)) {
		path = 0;
		if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &path) < 2 ||
		    address < start || address >= end)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (path && line[path] == '/')
			text_add_format(wait->text, " in %s", line + path);
		break;
	}
	if (maps)
		fclose(maps);
}

bool memory_of_stack(struct wait *wait, const char *stack, bool runs)
{
	const struct memory_row *row = memory_row_find(stack);
	uint64_t address;

	if (!row || (runs && !row->runs))
		return false;
	wait->facts = wait_facts_absent;
	wait->facts.stored = true;
	text_clear(wait->text);
	text_add_string(wait->text, row->words);
	if (row->limit)
		limit_describe(wait, row->limit);
	/* only a fault on code shows its address; no file of /proc has that of a fault on data */
	if (row->fault && instruction_find(wait, &address) && page_is_absent(wait, address))
		mapped_file_describe(wait, address);
	return true;
}

const struct wait_object memory_object = {
	.kind = WAIT_FILE,
	.of_stack = memory_of_stack,
	.edge = disk_edge,
};
