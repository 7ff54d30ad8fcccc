/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads code and monitors out of the memory of HotSpot, in a parser. Everything in that memory may
 * be a lie, or change meanwhile. The functions fill an answer as runtime_request.h has it, and
 * return its bytes.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_JAVA_SERVICE_H

#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"

#define JAVA_CODE_CALLS_MAX 16384 /* reads of memory, for one answer */
#define JAVA_FRAME_WORDS_MAX (1u << 17)

/* Fill answers to requests. addresses: as many as the request says. */
size_t java_code_answer(const struct runtime_request *of, const char *addresses,
			struct thread_memory *memory, char *to);
size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory,
			   char *to);
void java_service_clear(void); /* forgets all processes */

#endif
