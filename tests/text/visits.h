/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Number of instructions that an old verifier is likely to visit in a program: it follows every
 * path, and leaves one only where it was before in an equivalent state. It gives up at 98 304 in
 * Linux 4.9, at 131 072 from 4.14 to 5.1, which depends on the branches of a program more than on
 * its length.
 *
 * This is a rough model, for machines without such kernels: where available, they load the programs
 * themselves (tests/vm). It was compared with both, for all plans' programs with more than 3000
 * visits: 4.9.229 visits 2.0 to 3.9 times as many as are counted here, 4.14.67 0.6 to 1.02 times.
 */
#ifndef TSNAP_TESTS_VISITS_H
#define TSNAP_TESTS_VISITS_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#define VISITS_MOST 200000 /* the count ends there */

/* Counts visits. null_unknown: as before 4.14, a pointer that was found NULL is an unknown number
 * afterwards. */
size_t visits_count(const struct bpf_insn *insns, size_t count, bool null_unknown);

#endif
