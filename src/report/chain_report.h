/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists that --chains prints below a report: roots, which others wait for in the end; locks;
 * threads that wait for a CPU, by who runs on it, or for a block device, by who else has requests
 * there; and cycles. Made of samples with the columns of the set `chains`, live or replayed, in
 * bounded memory.
 *
 * With --stacks a root has the stacks that it had in the scans in which others waited for it, as
 * far as it is among the samples, and by the time of those who waited. */
#ifndef TSNAP_REPORT_CHAIN_REPORT_H
#define TSNAP_REPORT_CHAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/keyed.h"
#include "report/group_split.h"
#include "report/grid.h"
#include "report/stack_lines.h"

#define CHAIN_LINES_MAX 16384 /* roots, and locks; samples of others are counted */

enum chain_part {
	CHAIN_ROOTS,
	CHAIN_LOCKS,
	CHAIN_QUEUES, /* from here on parts are their groups */
	CHAIN_DEVICES,
	CHAIN_CYCLES,
	CHAIN_PARTS
};

struct chain_root;
struct chain_lock;
struct chain_victim;

/* Zeroed is one that nobody asked for: it takes nothing. */
struct chain_report {
	bool wanted;
	struct keyed roots;   /* struct chain_root, by name and process */
	struct keyed locks;   /* struct chain_lock, by name and process */
	struct index holders; /* pairs of lock and holder */
	/* groups of samples; roots and locks are made of those of their part */
	struct group_table groups[CHAIN_PARTS];
	struct column_list grouped[CHAIN_PARTS]; /* columns of groups */
	struct column_list needed, root_list, lock_list;
	struct grid grids[CHAIN_PARTS]; /* one per list, most seconds first */
	int64_t refused; /* samples for which there was no line left; roots: when filled */
	struct stack_lines stacks; /* stacks of roots, by the keys of their lines */
	/* the scan that is being taken: stacks of its threads, by tid, and samples of those that
	 * wait */
	struct index scan_stacks;
	struct chain_victim *victims;
	size_t victim_count, victim_capacity;
};

/* stacks: so many of each root, most time first. */
void chain_report_init(struct chain_report *report, size_t stacks);
/* Samples share the exact times of their threads, as report/group_split.h has them. Without it they
 * count. times must outlive the report. */
void chain_report_split(struct chain_report *report, struct exact_times *times);
/* Needs of the lists, NEED_*. */
uint64_t chain_report_needs(const struct chain_report *report);
void chain_report_add(struct chain_report *report, const struct sample *sample,
		      struct exact_note note);
/* True if the report must share out before more is added (report/group_split.h). */
bool chain_report_crowded(const struct chain_report *report);
/* Shares out what was added so far (report/group_split.h). */
void chain_report_share_out(struct chain_report *report);
/* For stacks of roots: all samples of a scan, in parts, and its end. */
void chain_report_note(struct chain_report *report, const struct scan *part);
void chain_report_end_scan(struct chain_report *report);
/* Fills the grids; valid until chain_report_clear(). */
void chain_report_fill(struct chain_report *report, const struct tally *tally);
void chain_report_clear(struct chain_report *report);
void chain_report_done(struct chain_report *report);

#endif
