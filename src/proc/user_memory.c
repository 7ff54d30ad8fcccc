/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/user_memory.h"
#include "keeper/avoid.h"
#include "base/present_pages.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Opens pagemap and mem of the process. 0 or -errno. */
static int files_open(struct user_memory_files *files, const char *root, int64_t pid, int64_t tid)
{
	int err;

	files->pagemap = proc_file_open(root, pid, tid, "pagemap");
	if (files->pagemap < 0)
		return files->pagemap;
	files->mem = proc_file_open(root, pid, tid, "mem");
	if (files->mem >= 0)
		return 0;
	err = files->mem;
	close(files->pagemap);
	return err;
}

static void files_close(struct user_memory_files *files)
{
	close(files->pagemap);
	close(files->mem);
}

static ssize_t files_read(const struct user_memory_files *files, uint64_t address, void *bytes,
			  size_t size)
{
	ssize_t length;

	if (address > INT64_MAX - size)
		return -EFAULT;
	size = present_bytes(files->pagemap, address, size);
	if (!size)
		return -EFAULT;
	length = pread(files->mem, bytes, size, (off_t)address);
	if (length <= 0)
		return length ? -errno : -EFAULT;
	return length;
}

ssize_t user_memory_read(const char *root, int64_t pid, int64_t tid, uint64_t address, void *bytes,
			 size_t size)
{
	struct user_memory_files files;
	int err = files_open(&files, root, pid, tid);
	ssize_t length;

	if (err)
		return err;
	length = files_read(&files, address, bytes, size);
	files_close(&files);
	return length;
}

static void kept_close(struct user_memory_files *kept)
{
	if (kept->scan_ns)
		files_close(kept);
	*kept = (struct user_memory_files){0};
}

static struct user_memory_files *kept_find(struct user_memory *open, int64_t pid, int64_t scan_ns)
{
	for (int i = 0; i < USER_MEMORY_FILES; i++)
		if (open->files[i].pid == pid && open->files[i].scan_ns == scan_ns)
			return &open->files[i];
	return NULL;
}

ssize_t user_memory_read_again(struct user_memory *open, const char *root, int64_t pid, int64_t tid,
			       int64_t scan_ns, uint64_t address, void *bytes, size_t size)
{
	struct user_memory_files *kept;
	int err;

	if (avoids_memory(pid ? pid : tid))
		return -ETIMEDOUT;
	kept = kept_find(open, pid, scan_ns);
	if (!kept) {
		kept = &open->files[open->next++ % USER_MEMORY_FILES];
		kept_close(kept);
		err = files_open(kept, root, pid, tid);
		if (err) {
			*kept = (struct user_memory_files){0};
			return err;
		}
		kept->pid = pid;
		kept->scan_ns = scan_ns;
	}
	return files_read(kept, address, bytes, size);
}

void user_memory_sweep(struct user_memory *open, int64_t scan_ns)
{
	for (int i = 0; i < USER_MEMORY_FILES; i++)
		if (open->files[i].scan_ns != scan_ns)
			kept_close(&open->files[i]);
}

ssize_t user_text_read(const char *root, int64_t pid, int64_t tid, uint64_t address, char *bytes,
		       size_t size)
{
	ssize_t length = user_memory_read(root, pid, tid, address, bytes, size);

	if (length < 0)
		return length;
	/* without a NUL, the text's end is in a page that is not in memory, or beyond size */
	return memchr(bytes, '\0', (size_t)length) ? (ssize_t)strlen(bytes) : -EFAULT;
}
