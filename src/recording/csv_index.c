/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_index.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Positions of a character in 64 bytes, a bit each, the first byte's lowest. */
struct block_bits {
	uint64_t quotes, commas, line_ends, nuls;
};

#ifdef __SSE2__
static inline uint64_t bits_equal(const __m128i bytes[4], char to)
{
	const __m128i all = _mm_set1_epi8(to);
	uint64_t bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes[i], all))
			<< (16 * i);
	return bits;
}

static inline struct block_bits block_read(const char *block)
{
	__m128i bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = _mm_loadu_si128((const __m128i *)(const void *)block + i);
	return (struct block_bits){
		.quotes = bits_equal(bytes, '"'),
		.commas = bits_equal(bytes, ','),
		.line_ends = bits_equal(bytes, '\n'),
		.nuls = bits_equal(bytes, '\0'),
	};
}
#else
#define EACH_BYTE 0x0101010101010101u

/* The top bits of the bytes that are zero, gathered into 8 bits. */
static inline uint64_t bits_zero(uint64_t word)
{
	const uint64_t low = 0x7f * EACH_BYTE;
	uint64_t tops = ~(((word & low) + low) | word | low);

	return ((tops >> 7) * 0x0102040810204080u) >> 56;
}

static inline struct block_bits block_read(const char *block)
{
	struct block_bits bits = {0};

	for (size_t i = 0; i < 8; i++) {
		uint64_t word;

		memcpy(&word, block + 8 * i, sizeof(word));
		word = le64toh(word);
		bits.quotes |= bits_zero(word ^ '"' * EACH_BYTE) << (8 * i);
		bits.commas |= bits_zero(word ^ ',' * EACH_BYTE) << (8 * i);
		bits.line_ends |= bits_zero(word ^ '\n' * EACH_BYTE) << (8 * i);
		bits.nuls |= bits_zero(word) << (8 * i);
	}
	return bits;
}
#endif

/* Sets each bit for which an odd number of bits are set, from the lowest one up to and including
 * itself. */
static inline uint64_t bits_between(uint64_t bits)
{
	for (int by = 1; by < 64; by *= 2)
		bits ^= bits << by;
	return bits;
}

size_t csv_index_make(uint16_t *ends, size_t *count, const char *text, size_t length)
{
	/* state at the byte before the block: it ended a field; ended a quoted text; quotes are
	 * open */
	uint64_t ended = 1, closed = 0, open = 0;
	size_t found = 0;

	length = length < CSV_INDEX_BYTES ? length : CSV_INDEX_BYTES;
	for (size_t at = 0; at < length; at += 64) {
		struct block_bits bits = block_read(text + at);
		uint64_t wanted = length - at < 64 ? (1ull << (length - at)) - 1 : ~0ull;
		uint64_t inside, ending, opening, closing;

		bits.quotes &= wanted;
		inside = bits_between(bits.quotes) ^ open;
		ending = (bits.commas | bits.line_ends) & ~inside & wanted;
		opening = bits.quotes & inside;
		closing = bits.quotes & ~inside;
		if (((bits.nuls | (bits.line_ends & inside)) & wanted) ||
		    (opening & ~(ending << 1 | ended)) ||
		    ((closing << 1 | closed) & ~ending & wanted))
			break;
		for (uint64_t left = ending; left; left &= left - 1)
			ends[found++] = (uint16_t)(at + (size_t)__builtin_ctzll(left));
		/* all bits or none, if the last byte is in quotes or not */
		open = 0 - (inside >> 63);
		ended = ending >> 63;
		closed = closing >> 63;
	}
	while (found && text[ends[found - 1]] != '\n')
		found--;
	*count = found;
	return found ? (size_t)ends[found - 1] + 1 : 0;
}

/* True if the number of quotes is odd. Tests eight bytes at a time, as every row has some
 * quotes. */
static bool quotes_odd(const char *from, const char *to)
{
	const uint64_t low = 0x7f7f7f7f7f7f7f7fu, quotes = 0x2222222222222222u;
	unsigned int odd = 0;

	for (; to - from >= 8; from += 8) {
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		word ^= quotes;
		/* the top bit of each byte that was a quote */
		odd ^= (unsigned int)__builtin_parityll(~(((word & low) + low) | word | low));
	}
	for (; from < to; from++)
		odd ^= *from == '"';
	return odd;
}

char *csv_record_end(char *at, char *end)
{
	for (bool quoted = false; at < end;) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));
		char *stop = line_end ? line_end : end;

		quoted ^= quotes_odd(at, stop);
		if (line_end && !quoted)
			return line_end;
		at = stop + 1;
	}
	return NULL;
}
