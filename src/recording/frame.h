/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a compressed recording, format 1: their form, and how they are written and read.
 *
 * A file is a sequence of zstd frames, each with its checksum and with a head of 64 bytes before
 * it. The head is a skippable frame of zstd, so that `zstd -dc` and every other program that knows
 * zstd passes over it and reads one CSV. The first frame is the header line (names of columns)
 * alone; every other one holds whole rows. A head has the kind and times of its frame, so that a
 * reader skips frames of other times without reading them, and finds the next whole one after a
 * damaged one.
 *
 * Bytes of a head, all numbers little-endian:
 *   0 u32 0x184d2a5e  4 u32 56  8 "tsnaprec"  16 u32 format  20 u16 kind  22 u16 flags
 *   24 i64 first time  32 i64 last time (us, UTC)  40 u64 packed bytes  48 u64 raw bytes
 *   56 u64 FNV-1a of the 56 bytes before
 */
#ifndef TSNAP_RECORDING_FRAME_H
#define TSNAP_RECORDING_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/file_rights.h"
#include "base/text.h"

/* The kinds of rows in a recording. Each kind has files of its own, so that every file is one CSV
 * with a constant number of columns. Values are written into frames: never change one, add new ones
 * at the end. */
enum record_kind {
	RECORD_SAMPLES,	      /* a row per sampled thread and scan */
	RECORD_SCANS,	      /* a row per scan, including scans that saw no thread */
	RECORD_STACKS,	      /* the dictionary of stacks */
	RECORD_EVENTS,	      /* single events: --slower, --trace exec */
	RECORD_DISTRIBUTIONS, /* distributions of --trace, a row a minute and group */
	RECORD_HOST,	      /* the host and the options, a row per part */
	RECORD_ARCHIVE,	      /* the second tier: samples of a few of the scans, kept longer */
	RECORD_ARCHIVE_SCANS, /* a row per scan of the second tier */
	RECORD_FINDINGS,      /* findings of each minute */
	RECORD_KIND_COUNT,
};

/* Name of the kind in file names. NULL: there is no such kind. */
const char *record_kind_name(unsigned int kind);
/* Finds a kind by its name; RECORD_KIND_COUNT: there is none of that name. */
enum record_kind record_kind_find(const char *name);

#define FRAME_FORMAT 1
#define FRAME_HEAD_BYTES 64
#define FRAME_RAW_MAX (256u << 20) /* bytes; a reader holds one frame in memory */
#define FRAME_HEAD_MAGIC 0x184d2a5eu
#define FRAME_ZSTD_MAGIC 0xfd2fb528u
#define FRAME_SIGNATURE "tsnaprec" /* signature after magic and size */

struct frame_head {
	uint32_t format;
	unsigned int kind; /* enum record_kind, or one of a later version */
	bool header;
	int64_t first_us, last_us; /* times of the first and last row, UTC; 0 in a header line */
	uint64_t packed_bytes, raw_bytes;
};

/* Reads a head; false: not a head, or a damaged one. */
bool frame_head_read(const unsigned char bytes[FRAME_HEAD_BYTES], struct frame_head *head);

/* A file that is written: a header line, then frames of whole rows. Each frame is on the disk when
 * frame_file_put() returns, or nothing of it is in the file. A zeroed file is closed. */
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

/* Counts of frames that could not be read; they add up over all files, in several threads. */
struct frame_losses {
	_Atomic uint64_t damaged; /* frames, or stretches of bytes, that are damaged */
	_Atomic uint64_t newer;	  /* frames of a later format */
	_Atomic uint64_t cut; /* files that end within a frame: still being written, or cut off */
	_Atomic uint64_t headless; /* frames of rows in files whose header line is damaged */
	_Atomic uint64_t twice;	   /* frames that were returned before: no loss */
	_Atomic uint64_t frames;   /* frames of rows that were returned: no loss */
};

/* Reads the rows of one kind and time from recorded files, as one stream of CSV. Damaged and
 * incomplete frames are skipped and counted, and those that were returned before: snapshots may
 * overlap. A file that is not compressed is passed through as it is, and one that another program
 * compressed with zstd is unpacked: both hold samples. */
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
