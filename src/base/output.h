/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes to descriptors, which may be a pipe, a terminal or on a full disk, and writes files. */
#ifndef TSNAP_BASE_OUTPUT_H
#define TSNAP_BASE_OUTPUT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define OUTPUT_UNREAD ETIME /* the reader did not take all in time after SIGTERM */

/* Writes whole lines. 0 if all was written, else -errno (EPIPE: the reader has gone); a file then
 * ends with its last whole line. Signals don't end it, but after SIGTERM the reader has one second
 * for each report, and five seconds in all; then -OUTPUT_UNREAD is returned. */
int output_write(int fd, const char *bytes, size_t length);

/* True if so many bytes can be written at once; false: the write may have to wait for the
 * reader. */
bool output_is_ready(int fd, size_t length);

/* Prints each line of words on standard error, after "tsnap: ", and made printable, as it may quote
 * foreign text. */
void output_complain(const char *words);

/* Writes files: whole or not at all, or piece by piece. A link that another user has made, anywhere
 * on the way, is not followed, and a device, FIFO or file of another user is not written to, unless
 * it is in a directory that only root and this user may write to. openat2(2) could refuse only all
 * links. */

#define OUTPUT_PLANTED EKEYREJECTED /* the file was planted by another user */
#define OUTPUT_FOREIGN EKEYREVOKED  /* the directory is another user's */

/* Replaces the file at path at once: no reader ever sees half of it, and the old file stays if this
 * fails. A link stays a link; a file that is not regular (a device, a pipe) is written to. 0, or
 * -errno. */
int output_replace(const char *path, const char *bytes, size_t length);
/* Checks, before there is anything to write, whether output_replace() may work. 0, or -errno. */
int output_replace_check(const char *path);

/* Begins a file that is written piece by piece and then replaces path, as output_replace() does.
 * mode: permissions of a new file, less the umask; without a right to read for all, neither the
 * group nor an ACL of the directory gives one. NULL with -errno in *err. */
struct output_file;
struct output_file *output_begin(const char *path, mode_t mode, int *err);
int output_descriptor(const struct output_file *file);
/* Puts the file in its place, or removes it if err says that something failed. Frees file. Returns
 * err, or -errno. */
int output_end(struct output_file *file, int err);

/* Opens a file that grows, and empties it. Returns a descriptor, or -errno. */
int output_create(const char *path);
/* Appends to a file, and makes it if it does not exist. 0, or -errno. */
int output_append(const char *path, const char *bytes, size_t length);

/* Opens a directory in which files are written, and makes it if it does not exist, with that mode
 * less the umask and no ACL. It must belong to root or this user. Returns a descriptor, or -errno.
 */
int output_directory(const char *path, mode_t mode);

/* Words for an -errno of these functions. */
const char *output_error(int err);

#endif
