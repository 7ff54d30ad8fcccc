/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/frame_reader.h"
#include "base/index.h"
#include "base/memory.h"
#include "recording/frame.h"
#include "sample/sample.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define READ_BYTES (128u << 10)
#define LOOK_BYTES 512u /* bytes read after a skipped frame, as more skipped ones may follow */
/* A larger frame is unpacked twice, to check it and then piece by piece: a few bytes of a file may
 * unpack to 256 MB, in each of several streams. Frames of tsnap have a window of 2 MB. */
#define WHOLE_BYTES (16u << 20)
#define WINDOW_LOG_MAX 24
#define FOREIGN_WINDOW_LOG_MAX 27 /* zstd's own limit */
#define SKIPPABLE(magic) (((magic) & ~0xfu) == ZSTD_MAGIC_SKIPPABLE_START)

struct frame_reader {
	enum record_kind kind;
	int64_t from_us, until_us;
	struct frame_losses *losses;
	struct index known; /* hashes of the frames of rows that were met, of all files */
	ZSTD_DCtx *context;
	/* buffers for the file that is read */
	unsigned char *in;
	char *out;
	size_t in_capacity, out_capacity;

	/* state of the file that is read */
	struct frame_file_read {
		int fd;
		const char *name;
		size_t start, end; /* bytes of `in` that are not used yet */
		bool ended;
		uint64_t skip_bytes;	   /* bytes to be skipped, from start on */
		bool skips;		   /* the last frame was skipped */
		size_t out_start, out_end; /* bytes of `out` that were not returned yet */
		bool begun;
		bool plain;	 /* the file is not compressed */
		bool packed;	 /* a frame of zstd was met */
		bool foreign;	 /* within a frame that is not tsnap's */
		bool has_header; /* the header line was returned */
		bool searched;	 /* within a damaged stretch, which has been counted */
		bool large;	 /* within a frame that is returned piece by piece */
		ZSTD_inBuffer large_in;
	} file;
	bool copied; /* frames are returned as they are in the file */
};

struct frame_reader *frame_reader_new(enum record_kind kind, int64_t from_us, int64_t until_us,
				      struct frame_losses *losses)
{
	struct frame_reader *reader = memory_get(sizeof(*reader));

	reader->kind = kind;
	reader->from_us = from_us;
	reader->until_us = until_us;
	reader->losses = losses;
	reader->context = ZSTD_createDCtx();
	return reader;
}

void frame_reader_begin(struct frame_reader *reader, int fd, const char *name)
{
	reader->file = (struct frame_file_read){.fd = fd, .name = name};
	ZSTD_DCtx_reset(reader->context, ZSTD_reset_session_only);
}

void frame_reader_free(struct frame_reader *reader)
{
	if (!reader)
		return;
	index_clear(&reader->known);
	ZSTD_freeDCtx(reader->context);
	free(reader->in);
	free(reader->out);
	free(reader);
}

void frame_reader_copy(struct frame_reader *reader)
{
	reader->copied = true;
}

bool frame_reader_packed(const struct frame_reader *reader)
{
	return reader->file.packed;
}

/* Reads until `bytes` bytes are in memory. 1, 0: the file ends before that, or -errno. */
static int in_fill(struct frame_reader *reader, size_t bytes, struct error *e)
{
	while (reader->file.end - reader->file.start < bytes && !reader->file.ended) {
		size_t least = reader->file.skips ? LOOK_BYTES : READ_BYTES;
		size_t wanted = bytes > least ? bytes : least;
		ssize_t got;

		if (reader->file.start) {
			memmove(reader->in, reader->in + reader->file.start,
				reader->file.end - reader->file.start);
			reader->file.end -= reader->file.start;
			reader->file.start = 0;
		}
		reader->in = memory_grow(reader->in, &reader->in_capacity, wanted, 1);
		/* no more than wanted: frames that are skipped need not be read */
		got = read(reader->file.fd, reader->in + reader->file.end,
			   wanted - reader->file.end);
		if (got < 0 && errno == EINTR)
			return -EINTR;
		if (got < 0)
			return error_set(e, errno, EXIT_FAILED, "%s: %s", reader->file.name,
					 strerror(errno));
		reader->file.end += (size_t)got;
		reader->file.ended = !got;
	}
	return reader->file.end - reader->file.start >= bytes;
}

/* Skips skip_bytes, without reading them if the file can be sought in. 1, 0: the file ends before
 * that, or -errno. */
static int skip_take(struct frame_reader *reader, struct error *e)
{
	while (reader->file.skip_bytes) {
		size_t there = reader->file.end - reader->file.start;
		off_t at = -1, end = -1;
		int more;

		if (reader->file.skip_bytes <= there) {
			reader->file.start += reader->file.skip_bytes;
			reader->file.skip_bytes = 0;
			break;
		}
		reader->file.skip_bytes -= there;
		reader->file.start = reader->file.end = 0;
		if (!reader->file.ended)
			at = lseek(reader->file.fd, 0, SEEK_CUR);
		if (at >= 0)
			end = lseek(reader->file.fd, 0, SEEK_END);
		if (end >= 0 && (uint64_t)(end - at) >= reader->file.skip_bytes) {
			lseek(reader->file.fd, at + (off_t)reader->file.skip_bytes, SEEK_SET);
			reader->file.skip_bytes = 0;
			break;
		}
		more = in_fill(reader,
			       reader->file.skip_bytes < READ_BYTES ? reader->file.skip_bytes
								    : READ_BYTES,
			       e);
		if (more < 0)
			return more;
		if (!more) {
			reader->file.start = reader->file.end;
			reader->file.skip_bytes = 0;
			reader->losses->cut++;
			return 0;
		}
	}
	return 1;
}

static uint32_t in_word(const struct frame_reader *reader, size_t at)
{
	uint32_t word;

	memcpy(&word, reader->in + reader->file.start + at, sizeof(word));
	return le32toh(word);
}

/* Finds the next head after a damaged stretch. 1: goes on there, 0: the file ended, or -errno. */
static int in_search(struct frame_reader *reader, struct error *e)
{
	if (!reader->file.searched)
		reader->losses->damaged++;
	reader->file.searched = true;
	reader->file.skips = false;
	for (;;) {
		int more = in_fill(reader, FRAME_HEAD_BYTES + 1, e);
		unsigned char *from, *found;

		if (more < 0)
			return more;
		if (!more) {
			reader->file.start = reader->file.end;
			return 0;
		}
		from = reader->in + reader->file.start + 1;
		found = memmem(from, reader->file.end - reader->file.start - 1, FRAME_SIGNATURE,
			       strlen(FRAME_SIGNATURE));
		if (found && found - from >= 8) {
			reader->file.start = (size_t)(found - 8 - reader->in);
			return 1;
		}
		/* a signature may begin in the last bytes, 8 bytes after its magic */
		reader->file.start = found ? (size_t)(found - reader->in) : reader->file.end - 16;
	}
}

static bool head_wanted(const struct frame_reader *reader, const struct frame_head *head)
{
	if (head->kind != (unsigned int)reader->kind)
		return false;
	if (head->header || reader->kind == RECORD_STACKS || reader->kind == RECORD_HOST)
		return true;
	return (reader->from_us == ABSENT || head->last_us >= reader->from_us) &&
	       (reader->until_us == ABSENT || head->first_us < reader->until_us);
}

static char *out_capacity(struct frame_reader *reader, size_t bytes)
{
	reader->out = memory_grow(reader->out, &reader->out_capacity, bytes, 1);
	reader->file.out_start = reader->file.out_end = 0;
	return reader->out;
}

/* Unpacks a frame. Returns its bytes; 0: it is damaged. */
static uint64_t whole_unpack(struct frame_reader *reader, const ZSTD_inBuffer *in, size_t raw_bytes)
{
	char *out = out_capacity(reader, raw_bytes);
	size_t got = ZSTD_decompressDCtx(reader->context, out, raw_bytes, in->src, in->size);

	if (ZSTD_isError(got) || !got || out[got - 1] != '\n')
		return 0;
	reader->file.out_end = got;
	return got;
}

static void large_begin(struct frame_reader *reader, const ZSTD_inBuffer *in)
{
	ZSTD_DCtx_reset(reader->context, ZSTD_reset_session_only);
	ZSTD_DCtx_setParameter(reader->context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	reader->file.large_in = *in;
}

/* Unpacks the next piece of a large frame. Returns its bytes; 0: the end, or damage. */
static size_t large_unpack(struct frame_reader *reader)
{
	ZSTD_outBuffer out = {out_capacity(reader, READ_BYTES), READ_BYTES, 0};
	size_t left = ZSTD_decompressStream(reader->context, &out, &reader->file.large_in);

	return reader->file.out_end = ZSTD_isError(left) ? 0 : out.pos;
}

/* Unpacks a large frame and keeps nothing of it. Returns its bytes; 0: it is damaged. */
static uint64_t large_check(struct frame_reader *reader, const ZSTD_inBuffer *in)
{
	uint64_t bytes = 0;
	char last = 0;

	large_begin(reader, in);
	for (size_t got; (got = large_unpack(reader)); bytes += got)
		last = reader->out[got - 1];
	large_begin(reader, in);
	return last == '\n' ? bytes : 0;
}

/* Takes a piece of a large frame, which was checked. 1: go on. */
static int large_take(struct frame_reader *reader)
{
	reader->file.large = large_unpack(reader);
	if (!reader->file.large)
		reader->file.start += FRAME_HEAD_BYTES + reader->file.large_in.size;
	return 1;
}

/* Unpacks the frame of a head, or a large one's beginning; both are in memory. False: it is
 * damaged. */
static bool frame_unpack(struct frame_reader *reader, const struct frame_head *head)
{
	const ZSTD_inBuffer in = {reader->in + reader->file.start + FRAME_HEAD_BYTES,
				  head->packed_bytes, 0};

	/* do not allocate more memory than the frame itself says */
	if (ZSTD_getFrameContentSize(in.src, in.size) != head->raw_bytes)
		return false;
	reader->file.large = head->raw_bytes > WHOLE_BYTES;
	return (reader->file.large ? large_check(reader, &in)
				   : whole_unpack(reader, &in, head->raw_bytes)) == head->raw_bytes;
}

/* True if the frame, which is in memory with its head, was met before. */
static bool frame_known(struct frame_reader *reader, uint64_t length)
{
	uint64_t hash = hash_bytes(reader->in + reader->file.start, length);
	bool added;

	index_put(&reader->known, hash, &added);
	return !added;
}

/* Takes a frame with tsnap's head, whose 64 bytes are there. 1: go on, 0: the end, or -errno. */
static int frame_take(struct frame_reader *reader, const struct frame_head *head, struct error *e)
{
	uint64_t length = FRAME_HEAD_BYTES + head->packed_bytes;
	bool whole;
	int more;

	if (head->packed_bytes > ZSTD_compressBound(FRAME_RAW_MAX) ||
	    head->raw_bytes > FRAME_RAW_MAX)
		return in_search(reader, e);
	reader->file.packed = true;
	reader->file.searched = false;
	if (head->format > FRAME_FORMAT)
		reader->losses->newer++;
	reader->file.skips = head->format > FRAME_FORMAT || !head_wanted(reader, head);
	if (reader->file.skips) {
		reader->file.skip_bytes = length;
		return 1;
	}
	more = in_fill(reader, length, e);
	if (more <= 0) {
		reader->losses->cut += !more;
		return more;
	}
	if (!head->header && frame_known(reader, length)) {
		reader->losses->twice++;
		reader->file.start += length;
		return 1;
	}
	whole = frame_unpack(reader, head);
	reader->losses->damaged += !whole;
	if (whole && !head->header && !reader->file.has_header) {
		reader->losses->headless++;
		whole = false;
	}
	reader->losses->frames += whole && !head->header;
	reader->file.has_header |= whole && head->header;
	if (whole && reader->copied) {
		memcpy(out_capacity(reader, length), reader->in + reader->file.start, length);
		reader->file.out_end = length;
	}
	reader->file.large &= whole && !reader->copied;
	if (!whole)
		reader->file.out_start = reader->file.out_end = 0;
	if (!reader->file.large)
		reader->file.start += length;
	return 1;
}

/* True if files and frames that tsnap -o did not write are wanted: they hold samples. */
static bool foreign_wanted(const struct frame_reader *reader)
{
	return reader->kind == RECORD_SAMPLES && !reader->copied;
}

/* Takes a part of a frame that another program wrote. 1: go on, 0: the end, or -errno. */
static int foreign_take(struct frame_reader *reader, struct error *e)
{
	int more = in_fill(reader, 1, e);
	ZSTD_inBuffer in = {reader->in + reader->file.start, reader->file.end - reader->file.start,
			    0};
	ZSTD_outBuffer out = {out_capacity(reader, READ_BYTES), READ_BYTES, 0};
	size_t left;

	if (more < 0)
		return more;
	if (!more) {
		reader->losses->cut++;
		return 0;
	}
	left = ZSTD_decompressStream(reader->context, &out, &in);
	if (ZSTD_isError(left)) {
		reader->file.foreign = false;
		return in_search(reader, e);
	}
	reader->file.start += in.pos;
	/* a frame that is not wanted is unpacked only to find its end */
	reader->file.out_end = foreign_wanted(reader) ? out.pos : 0;
	reader->file.foreign = left > 0;
	return 1;
}

static int plain_take(struct frame_reader *reader, struct error *e)
{
	int more = in_fill(reader, 1, e);
	size_t bytes = reader->file.end - reader->file.start;

	if (more <= 0 || !foreign_wanted(reader))
		return more < 0 ? more : 0;
	memcpy(out_capacity(reader, bytes), reader->in + reader->file.start, bytes);
	reader->file.out_end = bytes;
	reader->file.start = reader->file.end;
	return 1;
}

/* Takes the next frame, or a part of one. 1: go on, 0: the end, or -errno. */
static int next_take(struct frame_reader *reader, struct error *e)
{
	struct frame_head head;
	uint32_t magic;
	int more;

	if (reader->file.skip_bytes)
		return skip_take(reader, e);
	if (reader->file.plain)
		return plain_take(reader, e);
	if (reader->file.foreign)
		return foreign_take(reader, e);
	if (reader->file.large)
		return large_take(reader);
	more = in_fill(reader, sizeof(magic), e);
	if (more < 0)
		return more;
	if (!more && !reader->file.begun)
		return reader->file.plain = true;
	if (!more) {
		reader->losses->cut += reader->file.end > reader->file.start;
		return 0;
	}
	magic = in_word(reader, 0);
	if (magic == ZSTD_MAGICNUMBER && !reader->file.begun && !foreign_wanted(reader))
		return 0;
	if (magic == ZSTD_MAGICNUMBER) {
		reader->file.begun = reader->file.packed = reader->file.foreign = true;
		reader->file.searched = reader->file.skips = false;
		ZSTD_DCtx_reset(reader->context, ZSTD_reset_session_only);
		ZSTD_DCtx_setParameter(reader->context, ZSTD_d_windowLogMax,
				       FOREIGN_WINDOW_LOG_MAX);
		return 1;
	}
	if (!SKIPPABLE(magic) && !reader->file.begun)
		return reader->file.begun = reader->file.plain = true;
	reader->file.begun = true;
	if (!SKIPPABLE(magic))
		return in_search(reader, e);
	more = in_fill(reader, magic == FRAME_HEAD_MAGIC ? FRAME_HEAD_BYTES : 8, e);
	if (more <= 0) {
		reader->losses->cut += !more;
		return more;
	}
	if (magic == FRAME_HEAD_MAGIC && frame_head_read(reader->in + reader->file.start, &head))
		return frame_take(reader, &head, e);
	if (magic == FRAME_HEAD_MAGIC)
		return in_search(reader, e);
	reader->file.skip_bytes = 8ull + in_word(reader, 4);
	return 1;
}

ssize_t frame_reader_read(struct frame_reader *reader, char *bytes, size_t size, struct error *e)
{
	size_t count;

	while (reader->file.out_start == reader->file.out_end) {
		int more = next_take(reader, e);

		if (more <= 0)
			return more;
	}
	count = reader->file.out_end - reader->file.out_start;
	count = count < size ? count : size;
	memcpy(bytes, reader->out + reader->file.out_start, count);
	reader->file.out_start += count;
	return (ssize_t)count;
}
