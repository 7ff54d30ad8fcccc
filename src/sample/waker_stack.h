/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of two halves of a stack, as in the column stack: outermost frame first.
 *
 * A waker's stack as it is shown above that of the thread that it woke: the other way round, as in
 * bcc's offwaketime and the flame graphs made of it.
 */
#ifndef TSNAP_SAMPLE_WAKER_STACK_H
#define TSNAP_SAMPLE_WAKER_STACK_H

#include "base/names.h"

#define WAKER_MARK "_[w]"
#define WAKER_COLUMNS "waker_stack,waker_comm" /* columns that --off-wake adds */

/* The stack of both halves, as user;kernel; NULL: there is none. */
const char *stack_of_halves(const char *user, const char *kernel, name_callback *take);
/* The frames of the waker, innermost first, with ';' between, each with WAKER_MARK as its mark; or
 * NULL. */
const char *waker_stack_of(const char *user, const char *kernel, name_callback *take);

#endif
