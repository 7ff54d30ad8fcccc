/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements of SQL without the values in them, which are people's data: column querysum. */
#ifndef TSNAP_SAMPLE_QUERY_FOLD_H
#define TSNAP_SAMPLE_QUERY_FOLD_H

#include "base/text.h"

/* Adds the statement with a ? for each number, string and parameter, one for a list of them, and
 * without comments or semicolons at its end. What was cut within a string ends there. A "name" in
 * double quotes stays, as in standard SQL; folding the result changes nothing more. */
void query_fold(struct text *to, const char *query);

#endif
