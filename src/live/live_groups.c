/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_groups.h"
#include "kernel/probe_table.h"
#include "sample/needs.h"

#define ALWAYS SAMPLE_NEED(60) /* no NEED_* */

/* A group is compiled and attached when any of these is needed. */
static const uint64_t group_needs[GROUP_COUNT] = {
	[GROUP_SWITCH] = ALWAYS,
	[GROUP_WAKE] = ALWAYS,	/* RQ, and records to be read in the next scan */
	[GROUP_NEW] = ALWAYS,	/* a thread before its first switch */
	[GROUP_EXEC] = ALWAYS,	/* tids change hands */
	[GROUP_EXIT] = ALWAYS,	/* else dead threads stay for a second */
	[GROUP_CLOCK] = ALWAYS, /* shows a missed switch, and ON or RQ at the start */
	[GROUP_REQUEST] = NEEDS_REGISTERS,
	[GROUP_STACK] = NEED_USTACK,
	[GROUP_NAME] = NEED_COMM | NEEDS_KEPT, /* NEED_PROCESSES implies the first */
	[GROUP_BLOCK_QUEUE] = NEED_BLOCK,
	[GROUP_BLOCK_ISSUE] = NEED_BLOCK,
	[GROUP_BLOCK_DONE] = NEED_BLOCK,
	[GROUP_CALL] = NEED_CALL_TIME,
};

unsigned int live_groups_of(uint64_t needs)
{
	unsigned int groups = 0;

	for (int group = 0; group < GROUP_COUNT; group++)
		if ((needs | ALWAYS) & group_needs[group])
			groups |= 1u << group;
	return groups;
}

static const uint64_t part_needs[PART_COUNT] = {
	[PART_REGISTERS] = NEEDS_REGISTERS,
	[PART_TOTALS] = NEED_TOTALS | NEED_SLEEP | NEED_PROCESSES,
	[PART_WAKER] = NEED_WAKER | NEED_WAKER_COMM | NEED_WAKER_PID,
	[PART_PROGRAM] = NEED_USTACK, /* the files of another program lie elsewhere */
	[PART_STACKS] = NEED_USTACK | NEED_KSTACK,
	[PART_WAKES] = NEED_PATH,
};

unsigned int live_parts_of(uint64_t needs)
{
	unsigned int parts = 0;

	for (int part = 0; part < PART_COUNT; part++)
		if (needs & part_needs[part])
			parts |= 1u << part;
	return parts;
}
