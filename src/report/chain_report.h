/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists that --chains prints below a report: roots, the threads at the end of wait chains;
 * locks; threads that wait for a CPU, by the thread that runs on it, or for a block device, by the
 * others that have requests there; and cycles. Made of samples with the columns of the set
 * `chains`, live or replayed, in bounded memory.
 *
 * With --stacks a root has the stacks of the scans in which others waited for it, if it is among
 * the samples; they are weighed by the time of the threads that waited. */
#ifndef TSNAP_REPORT_CHAIN_REPORT_H
#define TSNAP_REPORT_CHAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/group_split.h"
#include "report/grid.h"
#include "report/stack_lines.h"

#define CHAIN_LINES_MAX 16384 /* limit of roots, and of locks; samples of others are counted */

enum chain_part {
	CHAIN_ROOTS,
	CHAIN_LOCKS,
	CHAIN_QUEUES, /* first part that is shown as its groups, as all after it are */
	CHAIN_DEVICES,
	CHAIN_CYCLES,
	CHAIN_PARTS
};

struct chain_root;
struct chain_lock;
struct chain_victim;

struct chain_report {
	struct keyed roots;   /* struct chain_root, by name and process */
	struct keyed locks;   /* struct chain_lock, by name and process */
	struct index holders; /* pairs of lock and holder */
	/* groups of samples; roots and locks are made of the groups of their part */
	struct group_table groups[CHAIN_PARTS];
	struct column_list grouped[CHAIN_PARTS]; /* columns of groups */
	struct column_list needed, root_list, lock_list;
	struct column_list unrecorded;	/* needed, but not in the recording: set by the part */
	struct grid grids[CHAIN_PARTS]; /* one per list, most seconds first */
	int64_t refused; /* samples that found no free line; of roots, counted when filled */
	struct stack_lines stacks; /* stacks of roots, by the keys of their lines */
	/* present scan: stacks of its threads, by tid, and samples of those that wait */
	struct index scan_stacks;
	struct chain_victim *victims;
	size_t victim_count, victim_capacity;
};

/* stacks: limit for each root, most time first. times: exact times of threads that are shared out
 * among their samples (report/group_split.h), which must outlive the report; NULL: samples are
 * counted. */
void chain_report_init(struct chain_report *report, size_t stacks, struct exact_times *times);
/* Needs of the lists, NEED_*. */
uint64_t chain_report_needs(const void *report);
void chain_report_add(void *report, const struct sample *sample, struct exact_note note);
/* Takes all samples of a scan, in batches, for stacks of roots, and the scan's end. */
void chain_report_note(struct chain_report *report, const struct scan *part);
void chain_report_end_scan(struct chain_report *report);
/* Fills the grids; valid until chain_report_clear(). */
void chain_report_fill(struct chain_report *report, const struct tally *tally);
void chain_report_clear(void *report);
void chain_report_done(void *report);

#endif
