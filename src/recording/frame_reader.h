/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the rows of one kind and time out of a recorded file, as one stream of CSV. Whatever is not
 * whole is passed over and counted. A file that is not compressed is passed through as it is, and
 * one that another program compressed with zstd is unpacked: both hold samples.
 */
#ifndef TSNAP_RECORDING_FRAME_READER_H
#define TSNAP_RECORDING_FRAME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "recording/record_kind.h"

/* Frames that could not be read; counts go up over all files that it is given to, in several
 * threads. */
struct frame_losses {
	_Atomic uint64_t damaged; /* frames, or stretches of bytes, that are not what was written */
	_Atomic uint64_t newer;	  /* frames of a later format */
	_Atomic uint64_t cut; /* files that end within a frame: still being written, or cut off */
	_Atomic uint64_t headless; /* frames of rows in files whose header line is damaged */
	_Atomic uint64_t frames;   /* frames of rows that were given: no loss */
};

struct frame_reader;

/* Frames whose times lie outside of from_us to until_us (exclusive; ABSENT: no bound) are passed
 * over. */
struct frame_reader *frame_reader_new(enum record_kind kind, int64_t from_us, int64_t until_us,
				      struct frame_losses *losses);
/* Reads that file from here on, with the memory that it has for the one before. fd: the caller's,
 * at the file's beginning; it may be a pipe. name: for errors, the caller's. */
void frame_reader_begin(struct frame_reader *reader, int fd, const char *name);
/* The next bytes: how many, 0 at the end, -EINTR (a signal came first: call again), or -errno with
 * e. Never half a frame of a file that tsnap wrote, in all. */
ssize_t frame_reader_read(struct frame_reader *reader, char *bytes, size_t size, struct error *e);
/* Has frame_reader_read() give whole frames as they are in the file, with their heads, and nothing
 * that tsnap did not record. Before the first read. */
void frame_reader_copy(struct frame_reader *reader);
/* True once a frame of zstd was met in the file, whoever wrote it. */
bool frame_reader_packed(const struct frame_reader *reader);
void frame_reader_free(struct frame_reader *reader); /* also of NULL */

#endif
