/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folding of texts of the column waits_on, so that waits of one kind group together. */
#ifndef TSNAP_SAMPLE_WAITS_FOLD_H
#define TSNAP_SAMPLE_WAITS_FOLD_H

struct text;

/* Appends waits_on with each run of digits, each address (0x...) and the holder of a lock as one *:
 * "mutex 0x7f21c3a0 held by 123 worker" becomes "mutex * held by *". */
void waits_fold(struct text *to, const char *waits_on);

#endif
