/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/frame.h"

#include <endian.h>
#include <string.h>

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

void frame_head_write(const struct frame_head *head, unsigned char bytes[FRAME_HEAD_BYTES])
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
