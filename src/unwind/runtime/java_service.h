/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In a parser: code and monitors out of the memory of HotSpot, in which everything may be a lie, or
 * change meanwhile. An answer is what runtime_request.h says; its bytes are returned.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_JAVA_SERVICE_H

#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"

#define JAVA_CODE_CALLS_MAX 16384 /* reads of memory, for one answer */
#define JAVA_FRAME_WORDS_MAX (1u << 17)

/* addresses: as many as the request says. */
size_t java_code_answer(const struct runtime_request *of, const char *addresses,
			struct thread_memory *memory, char *to);
size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory,
			   char *to);
void java_service_clear(void); /* all that is known */

#endif
