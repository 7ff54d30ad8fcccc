/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of a history: equal texts have one address, as long as a chunk of the history uses
 * them. One thread adds; addresses may be read by any thread that holds a chunk.
 */
#ifndef TSNAP_SCREEN_HISTORY_TEXTS_H
#define TSNAP_SCREEN_HISTORY_TEXTS_H

#include <stddef.h>

#include "base/index.h"

/* Zeroed is empty. */
struct history_texts {
	struct index by_hash; /* hash to the first of a chain */
	size_t bytes;
};

/* The texts that one chunk uses, each once. Zeroed is empty. */
struct history_uses {
	struct index seen; /* addresses */
};

/* The one copy of the text; NULL stays NULL. */
const char *history_text(struct history_texts *texts, struct history_uses *uses, const char *text);
/* The chunk uses none of them any more: those that no other one uses are freed. */
void history_uses_drop(struct history_texts *texts, struct history_uses *uses);

#endif
