/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of a kernel stack as /proc/TID/stack shows it: "[<0>] name+0x12/0x34\n...". Pure. */
#ifndef TSNAP_WAITS_KERNEL_STACK_H
#define TSNAP_WAITS_KERNEL_STACK_H

#include <stdbool.h>

#define FUNCTION_SIZE 64

/* The next function from *stack on, the innermost first; false: there are no more. */
bool function_next(const char **stack, char name[FUNCTION_SIZE]);
/* True if one of the patterns of fnmatch(3), separated by spaces, is the function's. */
bool function_listed(const char *patterns, const char *name);
/* True if such a function is on the stack. */
bool stack_has(const char *stack, const char *patterns);

#endif
