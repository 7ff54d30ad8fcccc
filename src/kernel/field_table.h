/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The members of kernel structs that the BPF text reads, and where they lie on this kernel. A new
 * member is a row here and an inline in bpf_text/kernel_fields.h.
 */
#ifndef TSNAP_KERNEL_FIELD_TABLE_H
#define TSNAP_KERNEL_FIELD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define FIELD_NAMES_MAX 2

struct field_row {
	const char *of;			    /* struct */
	const char *names[FIELD_NAMES_MAX]; /* the member's names, newest first */
	const char *type;		    /* type declared in the generated header */
	const char *array;		    /* "[16]" or "" */
	unsigned int bytes;		    /* 0: an array or a struct of any length */
	/* Sets that the field is in: it is looked for when one of them is wanted, and may be
	 * lacking. 0: every kernel has it, and every plan needs it. */
	unsigned int sets;
};

#define FIELDS_BLOCK 1u	  /* fields that block.bpf.c reads */
#define FIELDS_QUOTA 2u	  /* fields that throttles.bpf.c reads */
#define FIELDS_SOCKET 4u  /* fields that connection.bpf.c reads */
#define FIELDS_END 8u	  /* fields that incident.bpf.c reads */
#define FIELDS_PACKET 16u /* fields that dns.bpf.c reads */
#define FIELDS_LOCK 32u	  /* fields that lock_search.c and task_find.c read */
#define FIELDS_ALL \
	(FIELDS_BLOCK | FIELDS_QUOTA | FIELDS_SOCKET | FIELDS_END | FIELDS_PACKET | FIELDS_LOCK)

#define FIELD_MAX 80
extern const struct field_row field_rows[];
extern const size_t field_count; /* at most FIELD_MAX */

/* Returns the row of a field of the table by its newest name. */
size_t field_index(const char *of, const char *name);

/* Layout of the table's fields, which a type source finds out. */
struct field_layout {
	unsigned char name[FIELD_MAX]; /* index of the row's name that this kernel has */
	uint32_t offset[FIELD_MAX];    /* bytes from the struct's start */
	unsigned int sets;	       /* sets wanted by the caller, FIELDS_x */
	bool lacking[FIELD_MAX];       /* wanted fields that this kernel lacks */
};

/* True if the layout has the field. */
bool field_there(const struct field_layout *layout, size_t field);
/* Returns the offset of a field by its newest name; -1: the layout does not have it. */
int field_offset_find(const struct field_layout *layout, const char *of, const char *name);
/* True if all that a plan's probes need of these sets is there. */
bool field_sets_there(const struct field_layout *layout, unsigned int sets);

/* Adds the header with just these members at their offsets, HAVE_struct_member for each, and an
 * assertion for each that the compiler put it there. Padding is char arrays: members after unnamed
 * bit-fields have got other offsets in libbcc's code than in offsetof (0.26, LLVM 14). */
void field_header_write(const struct field_layout *layout, struct text *to);

/* Checks that a kernel can have the layout: no field overlaps another or lies beyond
 * STRUCT_BYTES_MAX. 0, or -EINVAL with words that begin with what ("offsets file '/x'"). */
#define STRUCT_BYTES_MAX 65536
int field_layout_check(const struct field_layout *layout, const char *what, struct error *e);

/* Writes the layout as an offsets file for a host with the same kernel, and reads it back. Reading
 * checks release and machine; -EINVAL (with the line) for anything not understood, -ENOENT where
 * the file can't be read. */
void field_offsets_write(const struct field_layout *layout, const char *release,
			 const char *machine, struct text *to);
int field_offsets_read(const char *path, const char *release, const char *machine,
		       struct field_layout *layout, struct error *e);

#endif
