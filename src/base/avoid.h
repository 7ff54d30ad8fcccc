/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and files that must not be looked at: a look at them did not end, as the kernel waits
 * there for a lock, a memory page or a server that does not come (cli/keeper.h finds them).
 *
 * Each process has one set, which its children inherit by fork(2). Code that opens a file of a
 * process, or a file whose name comes from outside, checks here first, and takes an avoided one for
 * unreadable (-ETIMEDOUT). Not thread safe: filled before other threads begin.
 */
#ifndef TSNAP_BASE_AVOID_H
#define TSNAP_BASE_AVOID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AVOID_FILES_MAX 16

/* Adds the process of that thread or process, with all its threads as far as /proc lists them. why:
 * static words, "its memory map is locked". False: it is avoided already. */
bool avoid_process(int64_t id, const char *why);
/* Adds all files below directory; the last of AVOID_FILES_MAX entries has the files of all
 * directories. False: the directory is avoided already. */
bool avoid_files(const char *directory, const char *why);
/* Stops lookups of user names: the name service does not answer. */
void avoid_users(void);

/* Marks the begin or the end of a lookup of a user's name, in *count of avoid_users_count(): the
 * count is odd during the lookup. */
void avoid_users_requested(bool begins);
void avoid_users_count(_Atomic uint64_t *count);

/* True if the process or thread, the file, or the names of users must not be looked at. */
bool avoids_process(int64_t id);
bool avoids_file(const char *path);
bool avoids_users(void);

/* Returns the avoided processes or files, and why, in words for a footer, "4711 (mmap lock held)";
 * NULL: none is avoided. Valid until the next process or file is added. */
const char *avoid_processes_text(size_t *count);
const char *avoid_files_text(size_t *count);

#endif
