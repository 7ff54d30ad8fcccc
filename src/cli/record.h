/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What other parts add to a recording (-o). */
#ifndef TSNAP_CLI_RECORD_H
#define TSNAP_CLI_RECORD_H

#include "recording/finding_rows.h"
#include "recording/frame.h"
#include "report/findings.h"
#include "report/report.h"

/* Returns the present scan's rows of that kind; a part that takes a scan before record_part adds to
 * them. */
struct text *record_rows(struct report *report, enum record_kind kind);

/* Fills the entry except for times and text; names are those of the finding. */
void finding_entry_fill(struct finding_entry *entry, const struct finding *finding);

#endif
