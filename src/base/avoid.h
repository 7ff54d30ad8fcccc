/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and files that must not be looked at: a look at them did not end, as the kernel waits
 * there for a lock, a page or a server that does not come (cli/keeper.h finds them).
 *
 * One set in a process, which a forked one inherits. Whoever opens what belongs to a process, or a
 * file of a name from outside, asks here first, and takes yes for "can't be read" (-ETIMEDOUT).
 * Not thread safe: filled before other threads begin.
 */
#ifndef TSNAP_BASE_AVOID_H
#define TSNAP_BASE_AVOID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AVOID_FILES_MAX 16

/* Adds the process of that thread or process, with all its threads as far as /proc lists them. why:
 * static words, "its memory map is locked". False: it was there already. */
bool avoid_process(int64_t id, const char *why);
/* Adds all files below directory, as the last of AVOID_FILES_MAX those of all directories. False:
 * it was there already. */
bool avoid_files(const char *directory, const char *why);
/* User names are not asked for any more: the name service does not answer. */
void avoid_users(void);

/* Told around each question for a user's name, which is counted in *count of avoid_users_count():
 * an odd number for as long as the answer takes. */
void avoid_users_requested(bool begins);
void avoid_users_count(_Atomic uint64_t *count);

/* True if the process or thread, the file, or the names of users must not be looked at. */
bool avoids_process(int64_t id);
bool avoids_file(const char *path);
bool avoids_users(void);

/* Returns the avoided processes or files, and why, in words for a footer, "4711 (mmap lock held)";
 * NULL: none is avoided. Valid until the next one is added. */
const char *avoid_processes_text(size_t *count);
const char *avoid_files_text(size_t *count);

#endif
