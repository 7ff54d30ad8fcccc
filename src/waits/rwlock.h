/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read-write locks of glibc, as waiting threads leave them in memory. Pure.
 *
 * pthread_rwlock_t is the same on 64-bit hosts from glibc 2.25 to 2.41: eight words.
 * std::shared_mutex contains one. Bit 0 of the first word says that the lock is in a write phase,
 * bit 1 that a writer has it or waits for readers to leave, and the bits above bit 2 count readers.
 * Threads wait on two words, both with bit 1 for waiters: the third (a change of the phase) and the
 * fourth (the end of a writer). The seventh has the thread id of the writer that holds the lock.
 */
#ifndef TSNAP_WAITS_RWLOCK_H
#define TSNAP_WAITS_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define RWLOCK_WORDS 8
#define RWLOCK_PHASE_WORD 2  /* waited on by readers, and by a writer for readers */
#define RWLOCK_WRITER_WORD 3 /* waited on by writers for another writer */

/* True if the words are a lock that a thread may wait for at word `at`, whose value was `expected`
 * when the wait began. writer: id of the thread that holds the lock; 0: `readers` threads do.
 * shared: the futex is shared between processes. */
bool rwlock_parse(const uint32_t words[RWLOCK_WORDS], int at, uint32_t expected, bool shared,
		  uint32_t *writer, uint32_t *readers);

#endif
