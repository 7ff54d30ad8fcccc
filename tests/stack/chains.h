/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that sleep in known chains of calls, for the tests of stack walks.
 *
 * `NAME CHAIN` prints one line, "ready TID function ...", innermost first, and sleeps in that chain
 * until standard input ends. What comes further out or further in (the C library) is not told.
 * `NAME CHAIN spin`, of programs made from chains.c, spins there instead of sleeping.
 * `NAME` alone prints the names of the chains.
 */
#ifndef CHAINS_H
#define CHAINS_H

/* A call that is none of the compiler's to leave out, to join with another, or to jump to. */
#define LINK __attribute__((noinline, noclone))
#define LINK_END() __asm__ volatile("" ::: "memory")
#if defined(__clang__)
#undef LINK
#define LINK __attribute__((noinline))
#endif

/* Sleeps until the end; the innermost function that is told. */
void sleep_here(void);

#endif
