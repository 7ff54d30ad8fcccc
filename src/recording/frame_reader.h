/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the rows of one kind and time from recorded files, as one stream of CSV. Damaged and
 * incomplete frames are skipped and counted, and those that were returned before: snapshots may
 * overlap. A file that is not compressed is passed through as it
 * is, and one that another program compressed with zstd is unpacked: both hold samples.
 */
#ifndef TSNAP_RECORDING_FRAME_READER_H
#define TSNAP_RECORDING_FRAME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "recording/record_kind.h"

/* Counts of frames that could not be read; they add up over all files, in several threads. */
struct frame_losses {
	_Atomic uint64_t damaged; /* frames, or stretches of bytes, that are damaged */
	_Atomic uint64_t newer;	  /* frames of a later format */
	_Atomic uint64_t cut; /* files that end within a frame: still being written, or cut off */
	_Atomic uint64_t headless; /* frames of rows in files whose header line is damaged */
	_Atomic uint64_t twice;	   /* frames that were returned before: no loss */
	_Atomic uint64_t frames;   /* frames of rows that were returned: no loss */
};

struct frame_reader;

/* Makes a reader that skips frames whose times are outside of from_us to until_us (exclusive;
 * ABSENT: no bound). */
struct frame_reader *frame_reader_new(enum record_kind kind, int64_t from_us, int64_t until_us,
				      struct frame_losses *losses);
/* Makes that file the one that is read; buffers of the one before are reused. fd: at the file's
 * beginning, may be a pipe. name: for errors. The caller owns both. */
void frame_reader_begin(struct frame_reader *reader, int fd, const char *name);
/* Reads the next bytes. Returns their number, 0 at the end, -EINTR (a signal came first: call
 * again), or -errno with e. Of a file that tsnap wrote, all bytes of a frame are returned, or
 * none. */
ssize_t frame_reader_read(struct frame_reader *reader, char *bytes, size_t size, struct error *e);
/* Makes frame_reader_read() return whole frames as they are in the file, with their heads, and
 * nothing that tsnap did not record. Call before the first read. */
void frame_reader_copy(struct frame_reader *reader);
/* True after a frame of zstd was met in the file, whichever program wrote it. */
bool frame_reader_packed(const struct frame_reader *reader);
void frame_reader_free(struct frame_reader *reader); /* NULL is fine */

#endif
