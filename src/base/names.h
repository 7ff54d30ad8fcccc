/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interned strings: equal strings have one address, so grouping compares pointers.
 *
 * Each thread has a table of its own: addresses are compared only within a thread. Permanent
 * strings last until names_clear(). Transient strings are those of which there is no end, such as
 * command lines, files and connections; they are dropped when no code holds any of them. Each kind
 * has a limit: past it every new string becomes the one string NAMES_FULL, and is counted.
 *
 * Names of threads are a third kind: a program may rename its threads many times a second, so there
 * is no end of these, either. They are dropped separately, and have a limit of their own.
 *
 * After an interval, or a scan of rows, no code holds any transient string or name of a thread: if
 * they have become too many, live_release() lets lookups begin anew, and for transient strings
 * stacks as well.
 */
#ifndef TSNAP_BASE_NAMES_H
#define TSNAP_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_FULL "[too many names]"
#define NAMES_COMM_SIZE 16
#define NAMES_LIMIT_BYTES (160u << 20)	  /* permanent strings, and all in a replay */
#define NAMES_TRANSIENT_BYTES (48u << 20) /* transient strings */
#define NAMES_COMMS_BYTES (24u << 20)	  /* names of threads */

/* The one copy of text (up to length bytes, or its NUL). Never NULL for non-NULL text. Bytes are
 * not changed: the renderers make text printable. */
const char *name_of(const char *text, size_t length);
const char *name_of_string(const char *text); /* NULL stays NULL */

/* The one copy of a thread's name, as the kernel has it, until names_comms_clear(). Every name of a
 * thread in a column must come from here. */
const char *name_of_comm(const char comm[NAMES_COMM_SIZE]);
size_t names_comms_bytes(void);
void names_comms_clear(void);

/* The one copy of text until names_transient_clear(), or the permanent copy if that was made first.
 * A column has either permanent or transient strings: a text that is both has two addresses. */
const char *name_transient(const char *text, size_t length);
const char *name_transient_string(const char *text);
size_t names_transient_bytes(void); /* memory of all transient strings */
void names_transient_clear(void);   /* all transient strings become invalid */
/* For what is known of names by their addresses: the place of one among 1 << bits; and true if
 * names were dropped since it was asked for last, so that all of it must go. count: of the caller,
 * zero at first. */
static inline size_t name_place(const char *name, int bits)
{
	return (size_t)((uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15ull >> (64 - bits));
}
bool names_dropped_since(uint64_t *count);
uint64_t names_dropped(void); /* how often strings of a kind became invalid */

typedef const char *name_callback(const char *text,
				  size_t length); /* name_of() or name_transient() */

uint64_t names_refused(void); /* strings that the full table did not take */
/* Gives transient strings the limit of permanent ones: nothing drops them in a replay. */
void names_keep_all(void);
void names_set_limit(size_t bytes); /* limit of each kind, if less than those above */
void names_clear(void);		    /* all strings become invalid */

#endif
