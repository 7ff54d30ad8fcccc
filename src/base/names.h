/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interned strings: equal strings have one address, so grouping compares pointers.
 *
 * Each thread has a table of its own: addresses are compared only within a thread. Strings are kept
 * until names_clear(), but for lent ones: what lookups tell (command lines, files, connections)
 * never ends, and goes when nobody holds any of it. Kept and lent ones are bounded, each by
 * themselves: past the limit every new string becomes the one string NAMES_FULL, and is counted.
 *
 * Names of threads are a third kind: a program may rename its threads many times a second, so that
 * they never end either. They go by themselves, and have a limit of their own.
 *
 * After a page, or a scan of rows, nobody holds any lent string or name of a thread: where they
 * have become too many live_release() lets lookups, and for lent ones stacks, begin anew.
 */
#ifndef TSNAP_BASE_NAMES_H
#define TSNAP_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_FULL "[too many names]"
#define NAMES_COMM_SIZE 16
#define NAMES_LIMIT_BYTES (160u << 20) /* memory of kept strings: a replay keeps all */
#define NAMES_LENT_BYTES (48u << 20)   /* and of lent ones, */
#define NAMES_COMMS_BYTES (24u << 20)  /* of names of threads */

/* The one copy of text (up to length bytes, or its NUL). Never NULL for non-NULL text. Bytes are
 * kept as they are: the renderers make text printable. */
const char *name_of(const char *text, size_t length);
const char *name_of_string(const char *text); /* NULL stays NULL */

/* The one copy of a thread's name, as the kernel keeps it, until names_comms_clear(). All that a
 * column tells of names of threads must come from here. */
const char *name_of_comm(const char comm[NAMES_COMM_SIZE]);
size_t names_comms_bytes(void);
void names_comms_clear(void);

/* The one copy of text until names_lent_clear(), or the kept one if that was there first. A column
 * lends all its strings or none: text that is lent and then kept has two addresses. */
const char *name_lent(const char *text, size_t length);
const char *name_lent_string(const char *text);
size_t names_lent_bytes(void); /* memory of all lent strings */
void names_lent_clear(void);   /* every pointer lent out becomes invalid */

typedef const char *name_callback(const char *text, size_t length); /* name_of() or name_lent() */

uint64_t names_refused(void);	    /* strings that the full table did not take */
void names_set_limit(size_t bytes); /* limit of each kind, where it is less than the above */
void names_clear(void);		    /* every pointer handed out becomes invalid */

#endif
