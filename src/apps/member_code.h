/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a struct has a member, by the code of a function that does nothing but return it: x86-64,
 * as compilers of C write it. Each takes the first FILE_SYMBOL_BYTES of a function; false: it is no
 * such code. */
#ifndef TSNAP_APPS_MEMBER_CODE_H
#define TSNAP_APPS_MEMBER_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* The function returns a member of what its first argument points to, or the member's address. */
bool member_of_argument(const uint8_t *code, int64_t *at);
/* It then returns a member of what that one points to. */
bool member_behind(const uint8_t *code, int64_t *at);
/* It returns a thread-local variable, of the program itself: its distance from the thread's
 * pointer. */
bool member_of_thread(const uint8_t *code, int64_t *at);

#endif
