/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Library of which many_files.c opens many copies. */

typedef void hop_function(void *const *next);

/* Calls the first of a list of functions with the rest of the list. */
void hop(void *const *next)
{
	((hop_function *)*next)(next + 1);
	__asm__ volatile(""); /* prevents a tail call */
}
