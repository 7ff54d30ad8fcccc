/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts samples that xcapture v3 (0xtools) wrote with its -o DIR to tsnap's own CSV.
 *
 * Its files (xcapture_samples_*.csv) have upper-case header lines, times in the local zone of the
 * host without its name (assumed to be the present zone), texts in single quotes of which none is
 * escaped, and states of its own: RUN, RUNQ, SLEEP, DISK. The format is that of its output_writer.c
 * and format_task_state(), November 2025.
 */
#ifndef TSNAP_RECORDING_XCAPTURE_H
#define TSNAP_RECORDING_XCAPTURE_H

#include "recording/csv_reader.h"

/* Makes an input that reads another one: lines of xcapture become those of tsnap, all others pass
 * unchanged. name: of the file, for errors. The caller owns both. Free it with
 * xcapture_input_free(). */
struct csv_input *xcapture_input_new(struct csv_input *from, const char *name);
void xcapture_input_free(struct csv_input *input); /* NULL is fine */

#endif
