/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/page_cache.h"
#include "base/clock.h"
#include "base/names.h"
#include "keeper/avoid.h"
#include "proc/mounts.h"
#include "sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 4096
#define FACTS_NS NS_PER_SECOND	     /* facts serve that long, */
#define NONE_NS (60 * NS_PER_SECOND) /* and that there are none, that long */
#define ASK_NS (20 * NS_PER_MS)	     /* the kernel walks the pages: 8 ms for a GB of small ones */
#define ASK_BYTES ((uint64_t)256 << 20) /* asked about in one call */

/* Numbers and structs of include/uapi/linux/mman.h (6.5) and of all architectures' call tables. */
#define CALL_PIDFD_OPEN 434
#define CALL_PIDFD_GETFD 438
#define CALL_CACHESTAT 451

struct cachestat_range {
	uint64_t offset, length;
};

struct cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
};

/* A file by its device and inode. */
struct page_cache_file {
	struct cache_entry entry;
	int64_t until_ns;
	struct page_cache_facts facts;
};

static const struct page_cache_facts unknown = {ABSENT, ABSENT, ABSENT, ABSENT};
static bool allowed, tried;

void page_cache_init(struct cache *files)
{
	*files = (struct cache){.entry_bytes = sizeof(struct page_cache_file),
				.entries_max = FILES_MAX};
}

void page_cache_allow(void)
{
	tried = true;
	allowed = syscall(CALL_CACHESTAT, -1, NULL, NULL, 0) && errno != ENOSYS && errno != EPERM;
}

const char *page_cache_lacks(void)
{
	if (allowed)
		return NULL;
	return tried ? "this kernel has no cachestat(2), which came with Linux 6.5"
		     : "its descriptors may be copied only if these columns are named at the start";
}

/* Copies the descriptor, if it is of that very file: a thread need not have those of its process.
 * -1: it can't be had. */
static int descriptor_copy(int64_t pid, int fd, const struct statx *file)
{
	int process = (int)syscall(CALL_PIDFD_OPEN, (pid_t)pid, 0), copy = -1;
	struct stat found;

	if (process < 0)
		return -1;
	copy = (int)syscall(CALL_PIDFD_GETFD, process, fd, 0);
	close(process);
	if (copy < 0)
		return -1;
	if (!fstat(copy, &found) && found.st_ino == file->stx_ino)
		return copy;
	close(copy);
	return -1;
}

static bool range_add(int fd, uint64_t from, int64_t page, struct page_cache_facts *facts)
{
	struct cachestat_range range = {from, ASK_BYTES};
	struct cachestat counts;

	if (syscall(CALL_CACHESTAT, fd, &range, &counts, 0))
		return false;
	facts->cached += (int64_t)counts.cached * page;
	facts->dirty += (int64_t)counts.dirty * page;
	facts->evicted += (int64_t)counts.recently_evicted * page;
	return true;
}

/* Asks about the whole file. False: it is too large, or the kernel does not tell. */
static bool file_ask(int fd, const struct statx *file, struct page_cache_facts *facts)
{
	int64_t until_ns = clock_monotonic_ns() + ASK_NS, page = sysconf(_SC_PAGESIZE);

	*facts = (struct page_cache_facts){.size = (int64_t)file->stx_size};
	for (uint64_t from = 0; from < file->stx_size; from += ASK_BYTES)
		if (!range_add(fd, from, page, facts) || clock_monotonic_ns() > until_ns)
			return false;
	return true;
}

/* True if no server and no user serves the file. */
static bool is_local(const char *root, int64_t pid, int64_t tid, int fd)
{
	struct mount_facts mount;

	return !avoid_is_user_mount(pid, fd) && mount_find(root, pid, tid, fd, NULL, &mount) &&
	       mount_is_local(&mount);
}

const struct page_cache_facts *page_cache_find(struct cache *files, const char *root, int64_t pid,
					       int64_t tid, int fd, int64_t now_ns)
{
	struct page_cache_file *known;
	char path[PATH_MAX];
	struct statx file;
	bool added, asked = false;
	int copy;

	snprintf(path, sizeof(path), "%s/%lld/task/%lld/fd/%d", root, (long long)pid,
		 (long long)tid, fd);
	if (!allowed || avoids_process(pid) ||
	    statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_SIZE, &file) ||
	    !S_ISREG(file.stx_mode))
		return &unknown;
	known = cache_get(files,
			  hash_u64(hash_u64(file.stx_ino) + ((uint64_t)file.stx_dev_major << 32) +
				   file.stx_dev_minor),
			  now_ns, &added);
	if (now_ns < known->until_ns)
		return &known->facts;
	copy = is_local(root, pid, tid, fd) ? descriptor_copy(pid, fd, &file) : -1;
	if (copy >= 0) {
		asked = file_ask(copy, &file, &known->facts);
		close(copy);
	}
	if (!asked)
		known->facts = unknown;
	known->until_ns = now_ns + (asked || copy < 0 ? FACTS_NS : NONE_NS);
	return &known->facts;
}
