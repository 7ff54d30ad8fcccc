/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the holder of the GIL that a thread of CPython 3.11 to 3.14 waits for.
 *
 * take_gil() and drop_gil() of Python/ceval_gil.c wait on the two condition variables of struct
 * _gil_runtime_state (Include/internal/pycore_gil.h), so that the futex of such a wait lies in one
 * of them; nothing else waits there. `locked` and `last_holder` beside them have its state and its
 * holder. Both are written with `mutex` held, and switch_number counts each change of the holder:
 * if that mutex is free and a second look finds the same number, the holder is right.
 *
 * An interpreter is looked for among a process' files named python... or libpython..., by what they
 * export. A parser reads files and memory; everything in these may be a lie.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_GIL_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_GIL_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/runtime/runtime_request.h"

/* For runtime_finder_init(). */
extern const struct runtime_kind python_gils;

/* True if the thread, which waits for that futex, waits for a GIL. with_location: the holder's
 * location is wanted, too; gil is then as of the first call in this scan. */
bool python_gil_find(struct runtime_finder *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_location, struct python_gil *gil);

#endif
