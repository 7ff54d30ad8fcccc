/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The form of a compressed recording, format 1.
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
#include <stdint.h>

#include "recording/record_kind.h"

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

void frame_head_write(const struct frame_head *head, unsigned char bytes[FRAME_HEAD_BYTES]);
/* Reads a head; false: not a head, or a damaged one. */
bool frame_head_read(const unsigned char bytes[FRAME_HEAD_BYTES], struct frame_head *head);

#endif
