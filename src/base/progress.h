/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line on the terminal, on standard error, erased before anything else is written there or shown:
 * what tsnap is doing when a start takes longer than a second, and later how far sampling is.
 *
 * Nothing is written where standard error is no terminal, or where tsnap runs in its background.
 * One line in a process; the main thread calls these.
 */
#ifndef TSNAP_BASE_PROGRESS_H
#define TSNAP_BASE_PROGRESS_H

#include <stdint.h>

void progress_begin(void);
/* Ends it, and begins none any more: the terminal is somebody else's. */
void progress_silence(void);
/* doing: static words, "compiling BPF programs". Nothing before progress_begin(). */
void progress_step(const char *doing);
/* Erases the line of the start. May be called at any time, and more than once. */
void progress_end(void);

/* The line while samples are taken, written once a second: "3 of 5 s, 812 samples". total_us: 0 if
 * there is no end; nothing is written where it is too short to be watched. */
void progress_sampling(int64_t elapsed_us, int64_t total_us, int64_t samples);
/* Erases that line, as before a report. May be called at any time, and more than once. */
void progress_sampling_end(void);

#endif
