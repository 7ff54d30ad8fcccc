/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of a report without samples: how many threads sleep, and what the largest groups of them
 * wait in. Made of one look at all of them. */
#ifndef TSNAP_REPORT_SLEEPERS_H
#define TSNAP_REPORT_SLEEPERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "report/report.h"

/* A zeroed struct has no look in it. */
struct sleepers {
	bool known; /* a look has ended */
	struct column_list list;
	struct group_table groups; /* user threads that sleep */
	struct grid grid;	   /* rows of the groups, most threads first */
	int64_t asleep;		   /* sleeping threads, with those of the kernel */
	int64_t kernel_asleep;
	int64_t halted;	   /* stopped, or zombies */
	int64_t active;	   /* threads that are active now */
	int64_t unsettled; /* sleepers without a wait class: a look a moment later may find it */
	bool filtered;	   /* filters select only some threads */
	struct text unmet; /* options that no thread meets, a line each */
};

/* Forgets all samples. */
void sleepers_begin(struct sleepers *sleepers);
/* Needs of the columns, NEED_*; valid after sleepers_begin(). */
uint64_t sleepers_needs(const struct sleepers *sleepers);
void sleepers_take(void *sleepers, const struct sample *sample);
/* Ends the look: all threads have been taken. */
void sleepers_end(struct sleepers *sleepers);
/* Looks for those of an interval without rows, until their wait classes are known; and for options
 * that no thread meets. */
void sleepers_find(void *sleepers, struct report *report);
void sleepers_done(void *sleepers);

#endif
