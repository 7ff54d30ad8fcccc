/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples that xcapture v3 (0xtools) wrote with its -o DIR, as tsnap's own CSV.
 *
 * Its files (xcapture_samples_*.csv) have upper-case header lines, times in the local zone of the
 * host without saying which (taken to be the present one), texts in single quotes of which none is
 * escaped, and states of its own: RUN, RUNQ, SLEEP, DISK. As of its output_writer.c and
 * format_task_state(), November 2025.
 */
#ifndef TSNAP_RECORDING_XCAPTURE_H
#define TSNAP_RECORDING_XCAPTURE_H

#include "recording/csv_reader.h"

/* Makes an input of another one, the caller's: lines of xcapture become tsnap's, all others pass as
 * they are. name: the file's, for errors, the caller's. Free it with xcapture_input_free(). */
struct csv_input *xcapture_input_new(struct csv_input *from, const char *name);
void xcapture_input_free(struct csv_input *input); /* NULL is fine */

#endif
