/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources of the offsets of kernel structs. Each source is a row; the first that works is taken.
 * Runs in the compile child, because a BTF takes several megabytes and libbcc far more.
 */
#ifndef TSNAP_KERNEL_TYPE_SOURCE_H
#define TSNAP_KERNEL_TYPE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/bcc_library.h"
#include "kernel/feature_table.h"
#include "kernel/field_table.h"
#include "kernel/host.h"
#include "kernel/work_dir.h"

#define TYPE_SOURCE_AUTO "auto" /* the first that works */

struct type_request {
	const char *choice;	  /* a row's name, or NULL or TYPE_SOURCE_AUTO */
	const char *btf_file;	  /* --btf, or NULL */
	const char *offsets_file; /* --offsets, or NULL */
	const struct host *host;
	const struct features *features;
	const struct bcc_library *bcc;
	const char *work_dir;
	const char *parent_name; /* parent_name of layout_validate() */
	unsigned int fields;	 /* sets, FIELDS_x, that are looked for beyond the fields of all */
	int output;		 /* descriptor that holds what libbcc and its compiler print */
};

struct type_source {
	const char *name;
	const char *help;
	const char *gives; /* right input of this kernel, such as "the BTF" */
	int wants;	   /* a feature that --without may take away, or -1 */
	/* True if the source is there at all, without reading it; where (size bytes) says where or
	 * why not. */
	bool (*there)(const struct type_request *request, char *where, size_t size);
	int (*read)(const struct type_request *request, struct field_layout *layout,
		    struct error *e);
};

extern const struct type_source type_sources[]; /* order of auto; ends with a NULL name */

/* Finds a source by its name. NULL: no source has that name. */
const struct type_source *type_source_of(const char *name);
/* Adds the words that --kernel-types takes: auto, and the names of the sources, in alphabetical
 * order. last: text before the last of them; between: text before the others. */
void type_source_names_add(struct text *text, const char *between, const char *last);

/* True if the source is there and was not taken away; a file that the user gave is always tried. */
bool type_source_there(const struct type_source *source, const struct type_request *request,
		       char *where, size_t size);

struct type_found {
	struct field_layout layout;
	const struct type_source *source;
};

/* Finds a layout and has it validated on the running kernel; one that is refuted is as good as
 * none. tried gets a line for each source that was tried. A source that the user named (by name or
 * by file) must work: its error is the error. 0 or -errno with e. */
int type_source_find(const struct type_request *request, struct type_found *found,
		     struct text *tried, struct error *e);

/* Writes the words that say how to get kernel types on this distribution: "apt install
 * linux-headers-6.1.0-56-amd64". */
void type_source_remedy(const struct host *host, char *words, size_t size);

/* Reads the layout from a BTF file, raw or ELF. */
int btf_layout_read(const char *path, struct field_layout *layout, struct error *e);
/* Reads the layout from kernel headers, by compiling. tree: their root, or NULL for the places
 * where distributions put those of the running kernel. */
int header_layout_read(const struct type_request *request, const char *tree,
		       struct field_layout *layout, struct error *e);

#endif
