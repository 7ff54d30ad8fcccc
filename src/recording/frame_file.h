/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a recorded file: a header line, then frames of whole rows (frame.h). Each frame is on the
 * disk when frame_file_put() returns, or nothing of it is in the file.
 */
#ifndef TSNAP_RECORDING_FRAME_FILE_H
#define TSNAP_RECORDING_FRAME_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/file_rights.h"
#include "base/text.h"
#include "recording/frame.h"

/* A zeroed file is closed. */
struct frame_file {
	int fd; /* 0: closed; else above 0 */
	enum record_kind kind;
	off_t end;	     /* bytes of whole frames */
	struct text scratch; /* a frame while it is made */
};

/* Opens the file of that name in a directory, or makes it, with these rights before any byte. The
 * frame that a kill or a power cut tore at the end of an existing file is cut off. header: a line.
 * No link is followed. 0; -EEXIST: the existing file has another header line or more rights, is
 * damaged or not ours, and was left alone; or -errno. */
int frame_file_open(struct frame_file *file, int directory, const char *name, enum record_kind kind,
		    const char *header, const struct file_rights *rights);
/* Makes a frame of rows (whole lines, at most FRAME_RAW_MAX bytes), which frame_file_put() writes;
 * the frame is in file->scratch. 0, or -errno. */
int frame_file_pack(struct frame_file *file, int64_t first_us, int64_t last_us,
		    const struct text *rows);
/* Writes the packed frame. 0: it is on the disk; or -errno: the file is as it was, and the frame is
 * kept. */
int frame_file_put(struct frame_file *file);
/* Appends what can be read of another file of the same kind, which may have no name any more,
 * without its header line. 0; or -errno: nothing was appended. */
int frame_file_copy(struct frame_file *to, const struct frame_file *from);
void frame_file_close(struct frame_file *file);

#endif
