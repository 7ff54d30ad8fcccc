/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read-write locks of glibc, as waiting threads leave them in memory. Pure.
 *
 * pthread_rwlock_t is the same on 64-bit hosts from glibc 2.25 to 2.41, and std::shared_mutex is
 * one of it: eight words. Bit 0 of the first tells that the lock is with writers, bit 1 that one
 * has it or waits for readers to go, and the bits above bit 2 count readers. Two words are waited
 * on, both with bit 1 for waiters: the third one (has the phase changed?) and the fourth (is the
 * writer gone?). The seventh has the thread id of the writer that holds the lock.
 */
#ifndef TSNAP_WAITS_RWLOCK_H
#define TSNAP_WAITS_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define RWLOCK_WORDS 8
#define RWLOCK_PHASE_WORD 2  /* waited on by readers, and by a writer for readers */
#define RWLOCK_WRITER_WORD 3 /* waited on by writers for another one */

/* True if these words are a lock that a thread may wait for at word `at`, whose value was
 * `expected` when the wait began. writer: the number of the thread that holds it; 0: `readers`
 * threads do. shared: the wait is one between processes. */
bool rwlock_parse(const uint32_t words[RWLOCK_WORDS], int at, uint32_t expected, bool shared,
		  uint32_t *writer, uint32_t *readers);

#endif
