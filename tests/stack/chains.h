/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that sleep in known chains of calls, for the tests of stack walks.
 *
 * `NAME CHAIN` prints one line, "ready TID function ...", innermost first, and sleeps in that chain
 * until standard input ends. Functions further out or further in (of the C library) are not
 * printed. `NAME CHAIN spin`, of programs made from chains.c, spins there instead of sleeping.
 * `NAME` alone prints the names of the chains.
 */
#ifndef CHAINS_H
#define CHAINS_H

/* Attribute of a call that the compiler must not leave out, join with another, or make a jump. */
#define LINK __attribute__((noinline, noclone))
#define LINK_END() __asm__ volatile("" ::: "memory")
#if defined(__clang__)
#undef LINK
#define LINK __attribute__((noinline))
#endif

/* Sleeps until the end; the innermost function that is printed. */
void sleep_here(void);

#endif
