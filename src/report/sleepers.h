/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of a report without samples: how many threads sleep, and what the largest groups of them
 * wait in. Made of one look at all of them. */
#ifndef TSNAP_REPORT_SLEEPERS_H
#define TSNAP_REPORT_SLEEPERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "report/grid.h"

/* Zeroed is one that was not looked at. */
struct sleepers {
	struct column_list list;
	struct group_table groups; /* user threads that sleep */
	struct grid grid;	   /* rows of the groups, most threads first */
	int64_t asleep;		   /* the kernel's own, too */
	int64_t kernel_asleep;
	int64_t halted;	   /* stopped, or zombies */
	int64_t active;	   /* just now */
	int64_t unsettled; /* threads that a look a moment later knows more of */
	bool filtered;	   /* not all threads were asked for */
	struct text unmet; /* options that no thread meets, a line each */
};

/* Forgets what was taken. */
void sleepers_begin(struct sleepers *sleepers);
/* Needs of the columns, NEED_*; to be asked after sleepers_begin(). */
uint64_t sleepers_needs(const struct sleepers *sleepers);
void sleepers_take(struct sleepers *sleepers, const struct sample *sample);
/* All have been taken. */
void sleepers_end(struct sleepers *sleepers);
void sleepers_done(struct sleepers *sleepers);

#endif
