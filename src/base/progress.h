/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line on the terminal, on standard error, erased before anything else is written there or shown:
 * the present step of a start that takes longer than a second, and later how far sampling is.
 *
 * Nothing is written if standard error is no terminal, or if tsnap runs in its background. A
 * process has one line; only the main thread calls these functions.
 */
#ifndef TSNAP_BASE_PROGRESS_H
#define TSNAP_BASE_PROGRESS_H

#include <stdint.h>

void progress_begin(void);
/* Ends the line, and begins no other: the terminal is used for something else. */
void progress_silence(void);
/* Sets the step that the line shows. doing: static words, "compiling BPF programs". Has no effect
 * before progress_begin(). */
void progress_step(const char *doing);
/* Erases the line of the start. May be called at any time, and more than once. */
void progress_end(void);

/* Writes the line during sampling, once a second: "3 of 5 s, 812 samples". total_us: 0 if there is
 * no end; nothing is written if it is too short to be watched. */
void progress_sampling(int64_t elapsed_us, int64_t total_us, int64_t samples);
/* Erases the line of sampling, as before a report. May be called at any time, and more than
 * once. */
void progress_sampling_end(void);

#endif
