/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_groups.h"
#include "kernel/probe_table.h"
#include "sample/needs_table.h"

/* Probe groups and parts of records for each enum need_probe. Another program of a thread whose
 * facts are kept shows in its new name. */
static const struct {
	unsigned int probes, groups, parts;
} rows[] = {
	{KEEPS_REGISTERS, 1u << GROUP_REQUEST, 1u << PART_REGISTERS},
	{KEEPS_TOTALS, 0, 1u << PART_TOTALS},
	{KEEPS_WAKER, 0, 1u << PART_WAKER},
	{KEEPS_STACKS, 0, 1u << PART_STACKS},
	{KEEPS_PROGRAM, 1u << GROUP_STACK, 1u << PART_PROGRAM},
	{KEEPS_WAKES, 0, 1u << PART_WAKES},
	{SEES_REQUESTS, 1u << GROUP_BLOCK_QUEUE | 1u << GROUP_BLOCK_ISSUE | 1u << GROUP_BLOCK_DONE,
	 0},
	{SEES_CALLS, 1u << GROUP_CALL, 0},
	{SEES_RENAMES, 1u << GROUP_NAME, 0},
};

/* Groups that are always attached: states, and records to be read in the next scan; a thread before
 * its first switch; tids that change hands, and dead threads, which would stay for a second; a
 * switch that was missed, and ON or RQ at the start. */
#define GROUPS_ALWAYS                                                                 \
	(1u << GROUP_SWITCH | 1u << GROUP_WAKE | 1u << GROUP_NEW | 1u << GROUP_EXEC | \
	 1u << GROUP_EXIT | 1u << GROUP_CLOCK)

static unsigned int probes_of(uint64_t needs)
{
	unsigned int probes = needs & NEEDS_KEPT ? SEES_RENAMES : 0;

	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			probes |= needs_rows[i].probes;
	return probes;
}

unsigned int live_groups_of(uint64_t needs)
{
	unsigned int probes = probes_of(needs), groups = GROUPS_ALWAYS;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (probes & rows[i].probes)
			groups |= rows[i].groups;
	return groups;
}

unsigned int live_parts_of(uint64_t needs)
{
	unsigned int probes = probes_of(needs), parts = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (probes & rows[i].probes)
			parts |= rows[i].parts;
	return parts;
}
