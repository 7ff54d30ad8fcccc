/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SELDOM marks functions that read what is mostly known already: known facts serve most samples,
 * and code that reads must not slow that down by being inlined. */
#ifndef TSNAP_BASE_SELDOM_H
#define TSNAP_BASE_SELDOM_H

#define SELDOM __attribute__((noinline))

#endif
