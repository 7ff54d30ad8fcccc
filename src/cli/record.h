/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What other parts add to a recording (-o). */
#ifndef TSNAP_CLI_RECORD_H
#define TSNAP_CLI_RECORD_H

#include "recording/frame.h"
#include "report/report.h"

/* Returns the present scan's rows of that kind; a part that takes a scan before record_part adds to
 * them. */
struct text *record_rows(struct report *report, enum record_kind kind);

#endif
