/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/module_identity.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"
#include "unwind/name_clean.h"

#include <sys/vfs.h>

#define FUSE_MAGIC 0x65735546

uint64_t module_file_key(const struct stat *file)
{
	const uint64_t words[] = {file->st_dev, file->st_ino, (uint64_t)file->st_mtim.tv_sec,
				  (uint64_t)file->st_mtim.tv_nsec, (uint64_t)file->st_size};

	return hash_bytes(words, sizeof(words));
}

/* A file system in any user's program (FUSE) reports whatever owner it likes. */
int64_t module_file_owner(int fd, const struct stat *file)
{
	struct statfs system;

	return fstatfs(fd, &system) || (uint32_t)system.f_type == FUSE_MAGIC
		       ? OWNER_UNKNOWN
		       : (int64_t)file->st_uid;
}

/* A build-id is what the file claims: a file of another owner may have it, too, or a stripped one,
 * and must not give its names to the stacks of others. */
uint64_t module_identity(const struct elf_file *elf, int64_t owner)
{
	const uint64_t words[] = {hash_bytes(elf->build_id, elf->build_id_bytes), elf->bytes,
				  (uint64_t)owner};

	return hash_bytes(words, sizeof(words));
}

char *module_location_text(const char *path, const struct elf_file *elf)
{
	struct text location = {0};
	char *text;

	text_add_string(&location, *path ? path : "?");
	function_name_clean(location.bytes);
	text_add_char(&location, '@');
	for (uint32_t i = 0; i < elf->build_id_bytes; i++)
		text_add_format(&location, "%02x", elf->build_id[i]);
	text = memory_text(text_string(&location), location.length);
	text_done(&location);
	return text;
}
