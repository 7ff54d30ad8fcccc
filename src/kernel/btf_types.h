/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The structs of a BTF file, raw or in ELF. libbpf is not used, because it refuses all of a file
 * for one kind of type that is newer than itself (0.3 of Debian 11 knows no enum64, and the BTF of
 * 6.1 has them), and before 1.3 it trusts what it reads. Here nothing in the file is trusted: every
 * record, name and reference is checked before it is used.
 */
#ifndef TSNAP_KERNEL_BTF_TYPES_H
#define TSNAP_KERNEL_BTF_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct btf_types {
	void *file; /* mapped, or allocated where it can't be mapped */
	size_t file_bytes;
	int mapped;
	const unsigned char *types;
	const char *strings;	    /* the last byte is NUL */
	const unsigned char *kinds; /* the file's own table of kinds of types */
	uint32_t types_bytes, strings_bytes, kind_count;
	uint32_t *at; /* offset of each type in types; at[0] is not used */
	uint32_t count;
	uint32_t *structs; /* numbers of the structs */
	uint32_t struct_count;
};

/* Opens a BTF file. 0, or -errno with e filled and nothing held. */
int btf_types_open(struct btf_types *btf, const char *path, struct error *e);
void btf_types_close(struct btf_types *btf);

/* Returns the number of the first struct, or function, of that name, or 0. */
uint32_t btf_struct_find(const struct btf_types *btf, const char *name);
uint32_t btf_function_find(const struct btf_types *btf, const char *name);

/* Returns the bytes from the struct's start to a member of that many bytes that lies in it; unnamed
 * structs and unions are searched as well. -1: there is no such member that is no bit-field. */
int64_t btf_member_find(const struct btf_types *btf, uint32_t of, const char *name,
			unsigned int bytes);

/* Returns the bytes from the start of struct `of` to its member; -1: there is no such one. */
int64_t btf_offset_find(const struct btf_types *btf, const char *of, const char *member,
			unsigned int bytes);

/* Returns the size of a struct; 0: there is none of that name. */
uint32_t btf_struct_bytes(const struct btf_types *btf, const char *name);

#define KERNEL_BTF_PATH "/sys/kernel/btf/vmlinux"

/* Gets the running kernel's types, which are read at the first call: a start looks for many. A
 * child of fork(2) has what was read. 0, or -errno with e, unless that is NULL. */
int btf_kernel(const struct btf_types **btf, struct error *e);
/* Frees these types, which take some megabytes, until they are wanted again. */
void btf_kernel_forget(void);

/* Returns the number in the running kernel's types of a tracepoint's arguments, for a program that
 * wants them typed (5.5). -ENOENT: there is no such tracepoint; else -errno. */
int btf_tracepoint_id(const char *event);

/* Walks over the names of the tracepoints: *id is 0 at first. NULL: there are no more. */
const char *btf_tracepoint_next(const struct btf_types *btf, uint32_t *id);
/* Walks over the names of functions, as btf_tracepoint_next() does. */
const char *btf_function_next(const struct btf_types *btf, uint32_t *id);
/* Returns the name of a function's argument, from 1; NULL: it has no such argument, or the types do
 * not name it. */
const char *btf_function_argument(const struct btf_types *btf, const char *function,
				  unsigned int number);
/* Returns the name of a tracepoint's argument, from 1; NULL: it has no such argument, or the types
 * do not name it. */
const char *btf_tracepoint_argument(const struct btf_types *btf, const char *event,
				    unsigned int number);

#endif
