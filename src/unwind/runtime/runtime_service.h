/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers struct runtime_request in a parser, from the memory of the process that the present
 * request is about. */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H

#include "parser/parser_message.h"
#include "unwind/thread_memory.h"

/* Answers requests about files as well (file_request.h). */
parser_service runtime_service;
void runtime_service_clear(void); /* forgets all processes: for tests */

/* Returns the memory that the request's first descriptor refers to; where there is a second one
 * (pagemap), only pages that it shows as present. NULL: the request has none. Valid until the next
 * request. */
struct thread_memory *runtime_memory_begin(const struct parser_request *request,
					   unsigned int calls_left);

#endif
