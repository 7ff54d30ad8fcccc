/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A BTF file, raw or as the section .BTF of an ELF file: the structs of a kernel and their members.
 *
 * Read here and not by libbpf, which refuses a whole file for one kind of type that is newer than
 * itself: that of Debian 11 reads no kernel from 5.16 on. It also would tie the program to a libbpf
 * with one soname. Nothing in a file is believed before it was checked. The format:
 * Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux.
 */
#ifndef TSNAP_KERNEL_BTF_FILE_H
#define TSNAP_KERNEL_BTF_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct btf_file {
	uint32_t *words; /* the whole of it */
	const char *strings;
	uint32_t strings_bytes; /* the last one is 0 */
	uint32_t *types; /* of each type, the index of its first word; [0] (void) is unused */
	uint32_t type_count;
};

/* 0, then btf_file_done; else one error with the path, why it can't be used and what to give
 * (-EINVAL), or why it can't be read, and nothing to release. */
int btf_file_read(const char *path, struct btf_file *btf, struct error *e);
void btf_file_done(struct btf_file *btf);

/* The first struct of that name and its size; 0 if there is none. */
uint32_t btf_struct_find(const struct btf_file *btf, const char *name, uint32_t *bytes);

/* Bytes from the start of a struct or union to its member of that name, anonymous members searched
 * as well; -1 if there is none, or if it is a bit-field. */
int64_t btf_member_find(const struct btf_file *btf, uint32_t type, const char *name);

#endif
