/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++ and Rust names as people write them, through libiberty. */
#ifndef TSNAP_UNWIND_ELF_DEMANGLE_H
#define TSNAP_UNWIND_ELF_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Fills text, cut at size - 1, without parameters. False where the name is not a mangled one, or
 * libiberty is missing: it is to be shown as it is. */
bool name_demangle(const char *name, char *text, size_t size);

#endif
