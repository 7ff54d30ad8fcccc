/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status of a source since an earlier one: of an interval. */
#ifndef TSNAP_REPORT_STATUS_SINCE_H
#define TSNAP_REPORT_STATUS_SINCE_H

#include "sample/source.h"

/* Changes now, the present status, to the difference since before. */
void status_subtract(struct source_status *now, const struct source_status *before);

#endif
