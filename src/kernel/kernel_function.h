/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the running kernel's functions, as a kprobe wants them. */
#ifndef TSNAP_KERNEL_KERNEL_FUNCTION_H
#define TSNAP_KERNEL_KERNEL_FUNCTION_H

/* Looks for a function in /proc/kallsyms, which need not show addresses: name itself, or a variant
 * such as name.isra.0, but not name.cold. found gets the full name (size bytes). 0 or -ENOENT. */
int kernel_function_find(const char *name, char *found, unsigned int size);

#endif
