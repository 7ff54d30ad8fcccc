/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/rwlock.h"

#define WORD_READERS 0
#define WORD_WRITER_ID 6
#define WORD_SHARED 7

/* Bits of the first word: PTHREAD_RWLOCK_... in nptl/pthread_rwlock_common.c of glibc. */
#define WRITE_PHASE 1u
#define WRITE_LOCKED 2u
#define READER_SHIFT 3
#define FUTEX_USED 2u
#define READERS_MAX 16384 /* a larger value is no count, but part of something else */

bool rwlock_parse(const uint32_t words[RWLOCK_WORDS], int at, uint32_t expected, bool shared,
		  uint32_t *writer, uint32_t *readers)
{
	uint32_t state = words[WORD_READERS], held;

	held = state & WRITE_PHASE ? 1 : 0;
	/* a writer waits for a write phase, all other threads for the end of a writer */
	if (words[at] != expected ||
	    expected != (FUTEX_USED | (at == RWLOCK_PHASE_WORD ? held : 1)) ||
	    !(state & WRITE_LOCKED) || !(words[RWLOCK_WRITER_WORD] & 1) ||
	    (words[WORD_SHARED] != 0) != shared)
		return false;
	*writer = held ? words[WORD_WRITER_ID] : 0;
	*readers = held ? 0 : state >> READER_SHIFT;
	return held ? *writer != 0 : *readers && *readers <= READERS_MAX && !words[WORD_WRITER_ID];
}
