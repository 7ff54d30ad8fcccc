/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In a parser: the Python functions that a thread is in, and GILs, out of the memory of CPython,
 * in which everything may be a lie. An answer is what runtime_request.h says; its bytes are
 * returned.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_STACKS_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_STACKS_H

#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"

#define PYTHON_STACK_CALLS 2048 /* reads of memory, for one stack */
#define PYTHON_GIL_CALLS 512	/* for one answer */

size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory,
			   char *to);
size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, char *to);
void python_stacks_clear(void);	       /* all that is known */
size_t python_stacks_name_count(void); /* returns how many are kept */

#endif
