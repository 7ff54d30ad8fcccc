/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libbcc, loaded at run time into the compile child only: linked, it would keep 64 MB of the parent
 * resident, and 137 MB after a compile.
 */
#ifndef TSNAP_KERNEL_BCC_LIBRARY_H
#define TSNAP_KERNEL_BCC_LIBRARY_H

#include <bcc/bcc_common.h>

#include "base/error.h"

/* One row a call: its declaration in bcc_common.h gives the type. */
#define BCC_CALLS(call)                                                                         \
	call(bpf_module_create_c_from_string) call(bpf_module_destroy) call(bpf_function_start) \
		call(bpf_function_size) call(bpf_num_tables) call(bpf_table_fd_id)              \
			call(bpf_table_name)

struct bcc_library {
	void *handle;
#define BCC_MEMBER(name) __typeof__(&name) name;
	BCC_CALLS(BCC_MEMBER)
#undef BCC_MEMBER
};

/* Loads libbcc. 0, -ENOMEM, or -ENOENT with the package to install. */
int bcc_library_open(struct bcc_library *bcc, struct error *e);

/* Has the compiler leave the parts of a program in the order that they were written in, instead of
 * the likely ones first, and keep equal parts apart, instead of having one jump into the other:
 * then none jumps backwards. Changes nothing where libbcc has an LLVM inside, instead of using the
 * library. */
void bcc_library_keep_order(const struct bcc_library *bcc);

/* Finds the file that would be loaded, links resolved ("libbcc.so.0.26.0"), without loading it; ""
 * if none is found. */
void bcc_library_find(char *file, size_t size);
/* Finds its path, links resolved; "" if none is found. path: PATH_MAX bytes. */
void bcc_library_path(char *path);

#endif
