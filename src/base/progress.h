/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line on the terminal that tells what tsnap is doing when a start takes long: after a second of
 * silence, on standard error, erased before anything else is written there or shown.
 *
 * Nothing is written where standard error is no terminal, or where tsnap runs in its background.
 * One line in a process; the main thread calls these.
 */
#ifndef TSNAP_BASE_PROGRESS_H
#define TSNAP_BASE_PROGRESS_H

void progress_begin(void);
/* doing: static words, "compiling BPF programs". Nothing before progress_begin(). */
void progress_step(const char *doing);
/* Erases the line. May be called at any time, and more than once. */
void progress_end(void);

#endif
