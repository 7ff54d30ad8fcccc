/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/frame.h"
#include "base/memory.h"
#include "base/index.h"
#include "base/text.h"
#include "sample/sample.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define FLAG_HEADER 1
#define PAYLOAD_BYTES (FRAME_HEAD_BYTES - 8)

static const char *const kind_names[RECORD_KIND_COUNT] = {
	[RECORD_SAMPLES] = "samples",
	[RECORD_SCANS] = "scans",
	[RECORD_STACKS] = "stacks",
	[RECORD_EVENTS] = "events",
	[RECORD_DISTRIBUTIONS] = "distributions",
	[RECORD_HOST] = "host",
	[RECORD_ARCHIVE] = "archive",
	[RECORD_ARCHIVE_SCANS] = "archivescans",
	[RECORD_FINDINGS] = "findings",
};

const char *record_kind_name(unsigned int kind)
{
	return kind < RECORD_KIND_COUNT ? kind_names[kind] : NULL;
}

enum record_kind record_kind_find(const char *name)
{
	unsigned int kind = 0;

	while (kind < RECORD_KIND_COUNT && strcmp(kind_names[kind], name))
		kind++;
	return (enum record_kind)kind;
}

/* Bytes of a head on the disk. */
struct raw_head {
	uint32_t magic, size;
	char signature[8];
	uint32_t format;
	uint16_t kind, flags;
	uint64_t first_us, last_us, packed_bytes, raw_bytes, check;
};

_Static_assert(sizeof(struct raw_head) == FRAME_HEAD_BYTES, "no holes");

/* Checksum of a head, FNV-1a: it is part of the format, so base's hash is not used. */
static uint64_t head_check(const struct raw_head *raw)
{
	const unsigned char *bytes = (const unsigned char *)raw;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < offsetof(struct raw_head, check); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

static void frame_head_write(const struct frame_head *head, unsigned char bytes[FRAME_HEAD_BYTES])
{
	struct raw_head raw = {
		.magic = htole32(FRAME_HEAD_MAGIC),
		.size = htole32(PAYLOAD_BYTES),
		.format = htole32(head->format),
		.kind = htole16((uint16_t)head->kind),
		.flags = htole16(head->header ? FLAG_HEADER : 0),
		.first_us = htole64((uint64_t)head->first_us),
		.last_us = htole64((uint64_t)head->last_us),
		.packed_bytes = htole64(head->packed_bytes),
		.raw_bytes = htole64(head->raw_bytes),
	};

	memcpy(raw.signature, FRAME_SIGNATURE, sizeof(raw.signature));
	raw.check = htole64(head_check(&raw));
	memcpy(bytes, &raw, sizeof(raw));
}

bool frame_head_read(const unsigned char bytes[FRAME_HEAD_BYTES], struct frame_head *head)
{
	struct raw_head raw;

	memcpy(&raw, bytes, sizeof(raw));
	if (raw.magic != htole32(FRAME_HEAD_MAGIC) || raw.size != htole32(PAYLOAD_BYTES) ||
	    memcmp(raw.signature, FRAME_SIGNATURE, sizeof(raw.signature)) ||
	    raw.check != htole64(head_check(&raw)))
		return false;
	*head = (struct frame_head){
		.format = le32toh(raw.format),
		.kind = le16toh(raw.kind),
		.header = le16toh(raw.flags) & FLAG_HEADER,
		.first_us = (int64_t)le64toh(raw.first_us),
		.last_us = (int64_t)le64toh(raw.last_us),
		.packed_bytes = le64toh(raw.packed_bytes),
		.raw_bytes = le64toh(raw.raw_bytes),
	};
	return true;
}

/* Levels of zstd. The high one makes files a seventh smaller, in 11 ms a MB instead of 1. */
#define LEVEL_HIGH 9
#define LEVEL_LOW 3
#define HIGH_BYTES (1u << 20)
#define SEARCH_BYTES (1 << 20)

/* Makes a frame of rows in file->scratch: head and packed bytes. 0 or -errno. */
static int frame_make(struct frame_file *file, struct frame_head *head, const struct text *rows)
{
	size_t bound = ZSTD_compressBound(rows->length), packed;
	ZSTD_CCtx *context = ZSTD_createCCtx();
	char *at;

	text_clear(&file->scratch);
	at = text_reserve(&file->scratch, FRAME_HEAD_BYTES + bound);
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel,
			       rows->length < HIGH_BYTES ? LEVEL_HIGH : LEVEL_LOW);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	packed = ZSTD_compress2(context, at + FRAME_HEAD_BYTES, bound, rows->bytes, rows->length);
	ZSTD_freeCCtx(context);
	if (ZSTD_isError(packed))
		return -ENOMEM;
	head->format = FRAME_FORMAT;
	head->kind = file->kind;
	head->packed_bytes = packed;
	head->raw_bytes = rows->length;
	frame_head_write(head, (unsigned char *)at);
	text_end(&file->scratch, at + FRAME_HEAD_BYTES + packed);
	return 0;
}

int frame_file_put(struct frame_file *file)
{
	size_t done = 0;
	int err = 0;

	while (!err && done < file->scratch.length) {
		ssize_t wrote = pwrite(file->fd, file->scratch.bytes + done,
				       file->scratch.length - done, file->end + (off_t)done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote == 0)
			err = -ENOSPC;
		else if (errno != EINTR)
			err = -errno;
	}
	if (!err && fdatasync(file->fd))
		err = -errno;
	if (!err) {
		file->end += (off_t)done;
		text_clear(&file->scratch);
		return 0;
	}
	/* if this fails, too, the next frame overwrites the rest of this one, or a start cuts it
	 * off */
	if (ftruncate(file->fd, file->end))
		errno = 0;
	return err;
}

/* Reads the frame at an offset whole. Returns its rows, malloced and NUL-terminated, or NULL: there
 * is no whole one. */
static char *frame_read(const struct frame_file *file, off_t at, const struct frame_head *head)
{
	char *packed, *rows;
	size_t got;

	if (head->packed_bytes > ZSTD_compressBound(FRAME_RAW_MAX) ||
	    head->raw_bytes > FRAME_RAW_MAX)
		return NULL;
	packed = memory_get(head->packed_bytes + 1);
	rows = memory_get(head->raw_bytes + 1);
	got = pread(file->fd, packed, head->packed_bytes, at + FRAME_HEAD_BYTES) ==
			      (ssize_t)head->packed_bytes
		      ? ZSTD_decompress(rows, head->raw_bytes, packed, head->packed_bytes)
		      : 0;
	free(packed);
	if (got && got == head->raw_bytes)
		return rows;
	free(rows);
	return NULL;
}

static bool head_at(const struct frame_file *file, off_t at, struct frame_head *head)
{
	unsigned char bytes[FRAME_HEAD_BYTES];

	return pread(file->fd, bytes, sizeof(bytes), at) == sizeof(bytes) &&
	       frame_head_read(bytes, head) && head->format == FRAME_FORMAT &&
	       head->kind == (unsigned int)file->kind;
}

static off_t behind(off_t at, const struct frame_head *head)
{
	return at + FRAME_HEAD_BYTES + (off_t)head->packed_bytes;
}

/* True if a valid head of any frame begins in these bytes, or they can't be read. */
static bool has_head(const struct frame_file *file, off_t at, off_t size)
{
	unsigned char *bytes = memory_get(SEARCH_BYTES);
	struct frame_head head;
	bool found = false;

	for (; !found && at + FRAME_HEAD_BYTES <= size; at += SEARCH_BYTES - FRAME_HEAD_BYTES + 1) {
		ssize_t got = pread(file->fd, bytes, SEARCH_BYTES, at);

		found = got < 0;
		for (ssize_t i = 0; !found && i + FRAME_HEAD_BYTES <= got; i++)
			found = frame_head_read(bytes + i, &head);
	}
	free(bytes);
	return found;
}

/* True if a kill or a power cut left the file's bytes from there on: a frame that ends early, or
 * that has its length and not its bytes. The last bytes of a whole frame are its checksum. */
static bool is_torn(const struct frame_file *file, off_t at, off_t size)
{
	static const char zeros[8];
	char last[sizeof(zeros)];
	struct frame_head head;

	return (size - at < FRAME_HEAD_BYTES ||
		(head_at(file, at, &head) && behind(at, &head) > size) ||
		(pread(file->fd, last, sizeof(last), size - (off_t)sizeof(last)) == sizeof(last) &&
		 !memcmp(last, zeros, sizeof(last)))) &&
	       !has_head(file, at + 1, size);
}

/* Finds the end of the last whole frame, behind which a torn one is to be cut off. 0; -EEXIST: the
 * file has another header line, or is damaged, so that nothing may be cut off. */
static int end_find(struct frame_file *file, const char *header, off_t size)
{
	struct frame_head head;
	off_t last = 0, next;
	char *rows = head_at(file, 0, &head) && head.header && behind(0, &head) <= size
			     ? frame_read(file, 0, &head)
			     : NULL;
	bool same = rows && !strcmp(rows, header);

	free(rows);
	if (!same)
		return -EEXIST;
	next = behind(0, &head);
	for (off_t at = next; head_at(file, at, &head) && behind(at, &head) <= size; at = next) {
		last = at;
		next = behind(at, &head);
	}
	rows = head_at(file, last, &head) ? frame_read(file, last, &head) : NULL;
	file->end = rows ? next : last;
	free(rows);
	return file->end == size || is_torn(file, file->end, size) ? 0 : -EEXIST;
}

static int file_begin(struct frame_file *file, const char *header)
{
	struct text line = {0};
	int err;

	text_add_string(&line, header);
	err = frame_make(file, &(struct frame_head){.header = true}, &line);
	if (!err)
		err = frame_file_put(file);
	text_done(&line);
	return err;
}

/* Opens a file that this user made, or makes one. A descriptor, with its size; -EEXIST: what is
 * there is not ours, or others may read it; or -errno. */
static int own_open(int directory, const char *name, const struct file_rights *rights, off_t *size)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(directory, name, flags | O_CREAT | O_EXCL, 0600), err = 0;
	struct stat there;

	*size = 0;
	if (fd >= 0) {
		err = file_rights_set(fd, rights);
	} else {
		fd = errno == EEXIST ? openat(directory, name, flags) : -1;
		if (fd < 0)
			return errno == ELOOP ? -EEXIST : -errno;
		if (fstat(fd, &there))
			err = -errno;
		else if (!S_ISREG(there.st_mode) || there.st_nlink != 1 ||
			 there.st_uid != geteuid() || !file_rights_are(fd, rights))
			err = -EEXIST;
		*size = there.st_size;
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

int frame_file_open(struct frame_file *file, int directory, const char *name, enum record_kind kind,
		    const char *header, const struct file_rights *rights)
{
	off_t size;
	int fd = own_open(directory, name, rights, &size), err = 0;

	if (fd < 0)
		return fd;
	*file = (struct frame_file){.fd = fd, .kind = kind};
	if (size)
		err = end_find(file, header, size);
	if (!err && size > file->end && ftruncate(fd, file->end))
		err = -errno;
	if (!err && !file->end)
		err = file_begin(file, header);
	if (err)
		frame_file_close(file);
	return err;
}

int frame_file_pack(struct frame_file *file, int64_t first_us, int64_t last_us,
		    const struct text *rows)
{
	return frame_make(file, &(struct frame_head){.first_us = first_us, .last_us = last_us},
			  rows);
}

int frame_file_copy(struct frame_file *to, const struct frame_file *from)
{
	struct frame_head head;
	off_t at = head_at(from, 0, &head) ? behind(0, &head) : from->end, begin = to->end;
	int err = 0;

	text_clear(&to->scratch);
	while (!err && at < from->end) {
		size_t left = (size_t)(from->end - at);
		size_t bytes = left < SEARCH_BYTES ? left : SEARCH_BYTES;
		char *copied = text_reserve(&to->scratch, bytes);
		ssize_t got = pread(from->fd, copied, bytes, at);

		if (got <= 0)
			break;
		text_end(&to->scratch, copied + got);
		at += got;
		err = frame_file_put(to);
	}
	if (err && !ftruncate(to->fd, begin))
		to->end = begin;
	return err;
}

void frame_file_close(struct frame_file *file)
{
	if (file->fd > 0)
		close(file->fd);
	text_done(&file->scratch);
	*file = (struct frame_file){0};
}

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
	/* a packed file whose beginning is no frame is damaged, and no CSV */
	if (!SKIPPABLE(magic) && !reader->file.begun && !text_ends(reader->file.name, ".zst"))
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
