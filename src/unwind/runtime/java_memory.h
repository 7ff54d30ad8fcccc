/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads code, monitors and other locks out of the memory of HotSpot, in a parser. Everything in
 * that memory may be a lie, or change meanwhile. */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_MEMORY_H
#define TSNAP_UNWIND_RUNTIME_JAVA_MEMORY_H

#include "base/index.h"
#include "unwind/runtime/java_locks.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"

#define JAVA_FRAME_WORDS_MAX (1u << 17)
#define JAVA_THREADS_MAX 4096 /* limit of the threads that are known of a process */

/* A JVM and its threads. */
struct java_threads {
	struct java_layout layout;
	struct java_locks locks;
	struct java_thread *threads;
	size_t count, capacity;
	/* Monitors to positions, plus one, of threads that have had them; JAVA_THREADS_MAX at
	 * most */
	struct index holders;
};

/* Fill answers to requests, and return their bytes. addresses: as many as the request says. */
size_t java_code_answer(const struct runtime_request *of, const char *addresses,
			struct thread_memory *memory, void *to);
size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory,
			   void *to);
void java_memory_clear(void); /* forgets all processes */

/* Lists the threads of a JVM. java: zeroed at first but for its layout;
 * java_threads_done() frees it. False: the list can't be read. */
bool java_threads_list(struct java_threads *java, struct thread_memory *memory);
void java_threads_done(struct java_threads *java);
/* Reads the monitor or lock that a thread waits for. Fills answer, which is zeroed. */
void java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t episode, struct java_monitor_answer *answer);

#endif
