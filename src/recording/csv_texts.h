/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cache of texts of fields: most rows have the same few. */
#ifndef TSNAP_RECORDING_CSV_TEXTS_H
#define TSNAP_RECORDING_CSV_TEXTS_H

#include "base/text.h"
#include "recording/csv_reader.h"

#define CSV_TEXTS 1024

/* A zeroed cache is empty, and valid until names_transient_clear(). */
struct csv_texts {
	struct {
		uint64_t first, last; /* first and last 8 bytes; a shorter text: all */
		size_t length;
		const char *name; /* NULL: none */
	} known[CSV_TEXTS];
};

/* Does csv_text_read() for a field that csv_read() filled. */
const char *csv_texts_read(struct csv_texts *texts, const struct csv_field *field,
			   struct text *scratch);

#endif
