/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identity of a file with code: to open it once, and to count equal stacks as one. */
#ifndef TSNAP_UNWIND_MODULE_IDENTITY_H
#define TSNAP_UNWIND_MODULE_IDENTITY_H

#include <stdint.h>
#include <sys/stat.h>

#include "unwind/elf/elf_file.h"

#define OWNER_UNKNOWN (-1)

/* Hash of the file's device, inode, time and size, from fstat(2). */
uint64_t module_file_key(const struct stat *file);
/* Owner of the file of an open descriptor, or OWNER_UNKNOWN. file: from fstat(2) of it. */
int64_t module_file_owner(int fd, const struct stat *file);
/* Hash that copies of a file by the same owner have in every run; elf has a build-id. */
uint64_t module_identity(const struct elf_file *elf, int64_t owner);
/* Returns PATH@BUILD-ID, without bytes that a terminal obeys. The caller frees it. */
char *module_location_text(const char *path, const struct elf_file *elf);

#endif
