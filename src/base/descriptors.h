/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limit of open descriptors, shared by all modules that keep many open. */
#ifndef TSNAP_BASE_DESCRIPTORS_H
#define TSNAP_BASE_DESCRIPTORS_H

#define DESCRIPTORS_WANTED 16384
#define DESCRIPTORS_LEAST 128 /* maps and programs are a third of it, and one for each CPU */

/* Returns how many of the wanted descriptors the caller may keep open, at most 1/part_of of the
 * limit. Raises the soft limit (RLIMIT_NOFILE), which exists for users of select(2), to
 * DESCRIPTORS_WANTED or the hard limit. */
unsigned int descriptors_share(unsigned int wanted, unsigned int part_of);

#endif
