/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the Python functions that a thread is in, and GILs, out of the memory of CPython, in a
 * parser. Everything in that memory may be a lie. The functions fill an answer as runtime_request.h
 * has it, and return its bytes.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_STACKS_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_STACKS_H

#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"

#define PYTHON_STACK_CALLS 2048 /* reads of memory, for one stack */
#define PYTHON_GIL_CALLS 512	/* reads of memory, for one answer */

size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory,
			   char *to);
size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
void python_stacks_clear(void);	       /* forgets all processes and names */
size_t python_stacks_name_count(void); /* returns how many names are kept */

#endif
