/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variable that threads of context.c publish by, for a library or the program itself.
 *
 * BARE: the library has no code that uses it, and so no relocation. LARGE: the block has more than
 * dynamic linkers keep free beside the program's, so that each thread gets one of its own when it
 * uses the variable. */
#include <stddef.h>

struct record;

#ifdef LARGE
__thread char context_room[1 << 20];
#endif
__attribute__((visibility("default"))) __thread struct record *volatile otel_thread_ctx_v1;

#ifndef BARE
struct record *volatile *context_variable(void)
{
#ifdef LARGE
	context_room[0] = 1;
#endif
	return &otel_thread_ctx_v1;
}
#endif
