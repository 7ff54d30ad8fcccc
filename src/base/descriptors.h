/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many descriptors may be open: one limit, shared by those that keep many. */
#ifndef TSNAP_BASE_DESCRIPTORS_H
#define TSNAP_BASE_DESCRIPTORS_H

#define DESCRIPTORS_WANTED 16384

/* How many of the wanted ones the caller may keep open, at most one part_of-th of all there may be.
 * Raises the soft limit (RLIMIT_NOFILE), which is there for users of select(2), to
 * DESCRIPTORS_WANTED or the hard one. */
unsigned int descriptors_share(unsigned int wanted, unsigned int part_of);

#endif
