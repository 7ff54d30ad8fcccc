/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the wire format of Protocol Buffers: fields of a message, one after the other, in a text.
 * https://protobuf.dev/programming-guides/encoding
 */
#ifndef TSNAP_RENDER_PROTOBUF_H
#define TSNAP_RENDER_PROTOBUF_H

#include <stdint.h>

#include "base/text.h"

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_BYTES = 2 };

/* Adds a number, seven bits a byte, the lowest ones first; a negative int64 as its two's
 * complement. */
static inline void protobuf_varint(struct text *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		text_add_char(to, (char)(number | 0x80));
	text_add_char(to, (char)number);
}

/* Adds a field with a number; 0, which is what an absent field means, is left out. */
static inline void protobuf_number(struct text *to, uint32_t field, uint64_t number)
{
	if (!number)
		return;
	protobuf_varint(to, field << 3 | PROTOBUF_VARINT);
	protobuf_varint(to, number);
}

/* Adds a field with bytes: a string, a message, or packed numbers. */
static inline void protobuf_bytes(struct text *to, uint32_t field, const struct text *bytes)
{
	protobuf_varint(to, field << 3 | PROTOBUF_BYTES);
	protobuf_varint(to, bytes->length);
	text_add(to, text_string(bytes), bytes->length);
}

#endif
