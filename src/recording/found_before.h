/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When findings of a recording were found: who sees one wants to know whether that is new. Two
 * findings are the same if their kind is, and the process that others wait for; where there is
 * none, the thing. */
#ifndef TSNAP_RECORDING_FOUND_BEFORE_H
#define TSNAP_RECORDING_FOUND_BEFORE_H

#include <stdint.h>

#include "base/index.h"
#include "base/text.h"
#include "recording/finding_rows.h"

/* Zeroed: nothing was found. */
struct found_before {
	struct keyed findings; /* struct found_times */
};

/* Takes a finding, as a finding_callback of a struct found_before; in the order of time. */
void found_before_take(void *before, const struct finding_entry *entry);
/* Adds when it was found last and ended five minutes before now_us or earlier, and on how many of
 * the seven days until then: "yesterday 14:05 to 14:20, and on 6 of the last 7 days"; nothing if it
 * was not. */
void found_before_add(struct text *text, const struct found_before *before,
		      const struct finding_entry *entry, int64_t now_us);
void found_before_done(struct found_before *before);

#endif
