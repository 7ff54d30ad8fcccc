/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In a parser: the memory of the process that the present request is about. */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_MEMORY_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_MEMORY_H

#include "parser/parser_service.h"
#include "unwind/thread_memory.h"

/* The memory behind the request's first descriptor; where there is a second one, only pages that it
 * tells to be there. NULL: the request has none. Valid until the next request. */
struct thread_memory *runtime_memory_begin(const struct parser_request *request,
					   unsigned int calls_left);
/* Forgets what was read of it before, and copies what lies from an address on. */
void runtime_memory_copy(struct thread_memory *memory, uint64_t address);
/* Forgets what was read of it before. */
void runtime_memory_again(struct thread_memory *memory);

#endif
