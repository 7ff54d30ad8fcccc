/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/memory_wait.h"
#include "proc/cgroup.h"
#include "proc/cgroup_mount.h"
#include "proc/proc.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES 8192
#define CGROUP_BYTES 8192
#define FUNCTION_SIZE 64
#define PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define NEARLY_PERCENT 90	    /* percent of its limit that a group which reclaims uses */

/* Waits by kernel functions, which are patterns of fnmatch(3) separated by spaces. The first row
 * with a function on the stack decides; functions nearer to the reason come first. mm/memcontrol.c,
 * mm/vmscan.c, mm/page-writeback.c, mm/memory.c, mm/filemap.c; folios are pages until 5.16. */
struct memory_row {
	const char *functions;
	const char *within; /* one of these must be on the stack, too; NULL: no such condition */
	const char *words;
	const char *limit; /* limit of cgroup v2 that the group has reached */
	bool fault;
};

/* Functions that __folio_lock() may be inlined into: then the stack begins with one of them. */
#define PAGE_LOCKERS "__filemap_get_folio* pagecache_get_page*"
#define PAGE_LOCK_WORDS "page lock"

/* clang-format off */
static const struct memory_row memory_rows[] = {
	/* functions					within	words			limit		fault */
	{"*mem_cgroup_handle_over_high reclaim_high",	NULL,	"reclaim",		"memory.high",	false},
	{"try_to_free_mem_cgroup_pages mem_cgroup_out_of_memory",
							NULL,	"reclaim",		"memory.max",	false},
	{"try_to_free_pages __alloc_pages_direct_reclaim",
							NULL,	"reclaim",		NULL,		false},
	{"try_to_compact_pages __alloc_pages_direct_compact",
							NULL,	"compaction",		NULL,		false},
	{"balance_dirty_pages*",			NULL,	"dirty pages",		NULL,		false},
	{"do_swap_page",				NULL,	"swap-in",		NULL,		false},
	{"rwsem_down_*",	"lock_mm_and_find_vma do_user_addr_fault __do_page_fault vm_mmap_pgoff __vm_munmap do_mprotect_pkey *_sys_brk",
								"memory map lock",	NULL,		false},
	{"handle_userfault",				NULL,	USERFAULT_WORDS,	NULL,		false},
	{"filemap_fault __do_fault handle_mm_fault",	NULL,	"page fault",		NULL,		true},
	{"__folio_lock __lock_page",			NULL,	PAGE_LOCK_WORDS,	NULL,		false},
};
/* clang-format on */

#define ROW_COUNT (sizeof(memory_rows) / sizeof(memory_rows[0]))

static bool name_listed(const char *patterns, const char *name)
{
	char pattern[FUNCTION_SIZE];

	while (patterns && *patterns) {
		size_t length = strcspn(patterns, " ");

		/* fnmatch() is slow */
		if (*patterns == *name || *patterns == '*') {
			snprintf(pattern, sizeof(pattern), "%.*s", (int)length, patterns);
			if (!fnmatch(pattern, name, 0))
				return true;
		}
		patterns += length + (patterns[length] == ' ');
	}
	return false;
}

/* The next function of "[<0>] name+0x12/0x34\n..."; false: there are no more. */
static bool function_next(const char **stack, char name[FUNCTION_SIZE])
{
	const char *at = strstr(*stack, "] ");
	size_t length;

	if (!at)
		return false;
	at += 2;
	length = strcspn(at, "+\n");
	snprintf(name, FUNCTION_SIZE, "%.*s", (int)length, at);
	*stack = at + length;
	return true;
}

static bool functions_there(const char *patterns, const char *stack)
{
	char name[FUNCTION_SIZE];

	while (function_next(&stack, name))
		if (name_listed(patterns, name))
			return true;
	return false;
}

/* A file system is frozen (FIFREEZE) while a writer waits for its semaphore of writers. Others take
 * such semaphores, too, so the function that takes it has to be one that begins to write
 * (include/linux/fs.h, sb_start_write() and others, which are inlined). */
#define WRITE_BEGINNERS                                                                      \
	"mnt_want_write* vfs_write vfs_writev vfs_iter_write vfs_iocb_iter_write do_iter_* " \
	"do_splice* vfs_copy_file_range vfs_fallocate __sb_start_write sb_start_* "          \
	"file_start_write* aio_write io_write *_page_mkwrite do_sendfile"
#define FREEZE_WORDS "frozen file system"

static bool is_frozen(const char *stack)
{
	char name[FUNCTION_SIZE];

	if (!function_next(&stack, name) || strcmp(name, "percpu_rwsem_wait") != 0)
		return false;
	while (function_next(&stack, name))
		if (!name_listed("__percpu_down_read percpu_down_read", name))
			return name_listed(WRITE_BEGINNERS, name);
	return false;
}

static bool innermost_is(const char *patterns, const char *stack)
{
	char name[FUNCTION_SIZE];

	return function_next(&stack, name) && name_listed(patterns, name);
}

const char *memory_wait_words(const char *stack, const char **limit, bool *fault)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct memory_row *row = &memory_rows[i];

		if (!functions_there(row->functions, stack) ||
		    (row->within && !functions_there(row->within, stack)))
			continue;
		*limit = row->limit;
		*fault = row->fault;
		return row->words;
	}
	*limit = NULL;
	*fault = false;
	if (is_frozen(stack))
		return FREEZE_WORDS;
	return innermost_is(PAGE_LOCKERS, stack) ? PAGE_LOCK_WORDS : NULL;
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
static void limit_describe(const char *proc_root, const struct cgroup_mount *memory, int64_t pid,
			   int64_t tid, const char *limit, struct text *to)
{
	char text[CGROUP_BYTES], group[PATH_MAX];
	const char *path = NULL;
	size_t length;

	text_add_format(to, " (%s", memory->v1 ? "memory.limit_in_bytes" : limit);
	if (memory->path && proc_file_read(proc_root, pid, tid, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_of_controller(text, "memory", &length);
	for (; path && length; length = cgroup_outer(path, length)) {
		snprintf(group, sizeof(group), "%.*s", (int)length, path);
		if (!group_is_full(memory, group, limit))
			continue;
		text_add_format(to, " of %s", group);
		break;
	}
	text_add_char(to, ')');
}

/* The address of the next instruction: "-1 0xSP 0xPC" of a thread outside of calls, proc(5). */
static bool instruction_find(const char *proc_root, int64_t pid, int64_t tid, uint64_t *address)
{
	struct proc_syscall call;

	if (proc_syscall_read(proc_root, pid, tid, &call) || call.running || call.nr != -1)
		return false;
	*address = (uint64_t)call.pc;
	return true;
}

/* True if the page at that address is not in memory. */
static bool page_is_absent(const char *proc_root, int64_t pid, int64_t tid, uint64_t address)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = proc_file_open(proc_root, pid, tid, "pagemap");
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
static void mapped_file_describe(const char *proc_root, int64_t pid, int64_t tid, uint64_t address,
				 struct text *to)
{
	int fd = proc_file_open(proc_root, pid, tid, "maps");
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[PATH_MAX + 128];
	unsigned long long start, end;
	int path;

	if (!maps && fd >= 0)
		close(fd);
	while (maps && fgets(line, sizeof(line), maps)) {
		path = 0;
		if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &path) < 2 ||
		    address < start || address >= end)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (path && line[path] == '/')
			text_add_format(to, " in %s", line + path);
		break;
	}
	if (maps)
		fclose(maps);
}

void memory_wait_describe(const char *proc_root, const struct cgroup_mount *memory, int64_t pid,
			  int64_t tid, struct text *to)
{
	const char *limit, *words;
	char stack[STACK_BYTES];
	uint64_t address;
	bool fault;

	if (proc_file_read(proc_root, pid, tid, "stack", stack, sizeof(stack)) <= 0)
		return;
	words = memory_wait_words(stack, &limit, &fault);
	if (!words)
		return;
	text_add_string(to, words);
	if (limit)
		limit_describe(proc_root, memory, pid, tid, limit, to);
	/* only a fault on code shows its address; no file of /proc has that of a fault on data */
	if (fault && instruction_find(proc_root, pid, tid, &address) &&
	    page_is_absent(proc_root, pid, tid, address))
		mapped_file_describe(proc_root, pid, tid, address, to);
}
