/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A raised priority for a short piece of work that others wait for: nice -20, no real-time.
 */
#ifndef TSNAP_BASE_PRIORITY_H
#define TSNAP_BASE_PRIORITY_H

#include <stdbool.h>

/* The nice value to go back to. */
struct priority {
	bool raised;
	int nice;
};

/* Raises the calling thread, and what it forks from then on. Does nothing where that is refused, or
 * where the user has lowered it (nice above 0). */
void priority_raise(struct priority *before);
/* To be called by the same thread. */
void priority_restore(const struct priority *before);

#endif
