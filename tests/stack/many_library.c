/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Library that many_files.c opens many copies of. */

typedef void hop_function(void *const *next);

/* Calls the first of a list of functions with the rest of it. */
void hop(void *const *next)
{
	((hop_function *)*next)(next + 1);
	__asm__ volatile(""); /* no tail call */
}
