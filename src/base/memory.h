/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation that does not come back empty: out of memory ends the process with one line and exit
 * code 1, after the handler that a mode with a terminal has set was called.
 */
#ifndef TSNAP_BASE_MEMORY_H
#define TSNAP_BASE_MEMORY_H

#include <stddef.h>

void *memory_get(size_t bytes);				     /* zeroed; release with free() */
void *memory_resize(void *block, size_t count, size_t each); /* as realloc; new bytes undefined */
char *memory_text(const char *text, size_t length);	     /* a NUL-terminated copy; free() it */

/* Called once, before the process ends for want of memory; NULL to unset. */
void memory_on_failure(void (*restore)(void));

#endif
