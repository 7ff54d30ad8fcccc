/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of a history: equal texts have one address, as long as a chunk of the history uses
 * them. One thread adds; any thread that holds a chunk may read addresses. */
#ifndef TSNAP_SCREEN_HISTORY_TEXTS_H
#define TSNAP_SCREEN_HISTORY_TEXTS_H

#include <stddef.h>

#include "base/index.h"

/* A zeroed struct has no texts. */
struct history_texts {
	struct index by_hash; /* hash to the first name of a chain */
	size_t bytes;
};

/* The texts that one chunk uses, each once. A zeroed struct has none. */
struct history_uses {
	struct index seen; /* addresses of the texts */
};

/* The history's only copy of the text; NULL for NULL. */
const char *history_text(struct history_texts *texts, struct history_uses *uses, const char *text);
/* Drops the chunk's uses: frees texts that no other chunk uses. */
void history_uses_drop(struct history_texts *texts, struct history_uses *uses);

#endif
