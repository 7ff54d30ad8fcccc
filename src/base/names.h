/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interned strings: equal strings have one address, so grouping compares pointers.
 *
 * One table for the process, used by one thread. Strings live until names_clear(). The table is
 * bounded: past its limit every new string becomes the one string NAMES_FULL, and is counted.
 */
#ifndef TSNAP_BASE_NAMES_H
#define TSNAP_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAMES_FULL "[too many names]"
#define NAMES_LIMIT_BYTES (64u << 20)

/* The one copy of text (up to length bytes, or its NUL). Never NULL for non-NULL text. Bytes are
 * kept as they are: the renderers make text printable. */
const char *name_of(const char *text, size_t length);
const char *name_of_string(const char *text); /* NULL stays NULL */

uint64_t names_refused(void); /* strings that the full table did not take */
void names_set_limit(size_t bytes);
void names_clear(void); /* every pointer handed out becomes invalid */

#endif
