/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_texts.h"
#include "recording/csv_value.h"

#include <string.h>

/* Gets the first and the last eight bytes of a text; of a shorter text, all bytes and 0. */
static inline void text_words(const char *text, size_t length, uint64_t *first, uint64_t *last)
{
	uint32_t low, high;

	*first = *last = 0;
	if (length >= 8) {
		memcpy(first, text, 8);
		memcpy(last, text + length - 8, 8);
	} else if (length >= 4) {
		memcpy(&low, text, 4);
		memcpy(&high, text + length - 4, 4);
		*first = (uint64_t)high << 32 | low;
	} else if (length) {
		*first = (uint64_t)(unsigned char)text[0] |
			 (uint64_t)(unsigned char)text[length / 2] << 8 |
			 (uint64_t)(unsigned char)text[length - 1] << 16;
	}
}

const char *csv_texts_read(struct csv_texts *texts, const struct csv_field *field,
			   struct text *scratch)
{
	uint64_t first, last, hash;
	size_t length = field->length, at;
	const char *name;

	text_words(field->text, length, &first, &last);
	hash = (first ^ (last << 1 | last >> 63) ^ length) * 0x9e3779b97f4a7c15ull;
	at = hash >> 32 & (CSV_TEXTS - 1);
	if (texts->known[at].name && texts->known[at].length == length &&
	    texts->known[at].first == first && texts->known[at].last == last &&
	    (length <= 16 || !memcmp(texts->known[at].name, field->text, length)))
		return texts->known[at].name;
	name = csv_text_read(field->text, scratch);
	/* the name of an escaped text, or of one that the table of names refused, differs */
	if (!strcmp(name, field->text)) {
		texts->known[at].first = first;
		texts->known[at].last = last;
		texts->known[at].length = length;
		texts->known[at].name = name;
	}
	return name;
}
