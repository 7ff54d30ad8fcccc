/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists that --chains prints below a report: roots, which others wait for in the end; locks;
 * threads that wait for a CPU, by who runs on it; and cycles. Made of samples with the columns of
 * the set `chains`, live or replayed, in bounded memory. */
#ifndef TSNAP_REPORT_CHAIN_REPORT_H
#define TSNAP_REPORT_CHAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/keyed.h"
#include "report/grid.h"

#define CHAIN_LINES_MAX 16384 /* roots, and locks; samples of others are counted */

enum chain_part { CHAIN_ROOTS, CHAIN_LOCKS, CHAIN_QUEUES, CHAIN_CYCLES, CHAIN_PARTS };

struct chain_root;
struct chain_lock;

/* Zeroed is one that nobody asked for: it takes nothing. */
struct chain_report {
	bool wanted;
	struct keyed roots;   /* struct chain_root, by name and process */
	struct keyed locks;   /* struct chain_lock, the same */
	struct index holders; /* pairs of lock and holder */
	struct group_table queues, cycles;
	struct column_list needed, lists[CHAIN_PARTS];
	struct grid grids[CHAIN_PARTS]; /* one per list, most seconds first */
	int64_t refused;		/* samples for which there was no line left */
};

void chain_report_init(struct chain_report *report);
/* Needs of the lists, NEED_*. */
uint64_t chain_report_needs(const struct chain_report *report);
void chain_report_add(struct chain_report *report, const struct sample *sample);
/* Fills the grids; valid until chain_report_clear(). */
void chain_report_fill(struct chain_report *report, const struct tally *tally);
void chain_report_clear(struct chain_report *report);
void chain_report_done(struct chain_report *report);

#endif
