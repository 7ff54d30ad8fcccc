/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/frame_file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL 3
#define SEARCH_BYTES (1 << 20)

/* Makes a frame of rows in file->scratch: head and packed bytes. 0 or -errno. */
static int frame_make(struct frame_file *file, struct frame_head *head, const struct text *rows)
{
	size_t bound = ZSTD_compressBound(rows->length), packed;
	ZSTD_CCtx *context = ZSTD_createCCtx();
	char *at;

	text_clear(&file->scratch);
	at = text_reserve(&file->scratch, FRAME_HEAD_BYTES + bound);
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
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
