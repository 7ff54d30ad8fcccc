/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The groups of a report, of each step of --by-time, and the exact times that they share: the part
 * that takes samples of an interval, and adds them to all parts, itself included. */
#ifndef TSNAP_REPORT_GROUPS_H
#define TSNAP_REPORT_GROUPS_H

#include "report/report.h"

extern const struct report_part groups_part;

/* Take a sample that is not shown, of a thread that may be (pass of struct source); and one again
 * (take_again). */
void groups_pass(struct report *report, const struct scan *scan, const struct sample *sample);
void groups_take_again(struct report *report, const struct sample *sample);
/* Adds a time before the scan in which no thread was seen to the steps of --by-time. */
void groups_add_silence(struct report *report, int64_t weight_us, int64_t from_us,
			int64_t silent_us);
/* Count a batch, and the scan of which all batches were taken, or no more will come. */
void groups_end_batch(struct report *report, const struct scan *batch);
void groups_end_scan(struct report *report, const struct scan *scan);
/* True if what is shown is the same whether a thread that waits is in each scan, or in one that
 * stands for several. */
bool groups_sum_up(const struct report *report);

#endif
