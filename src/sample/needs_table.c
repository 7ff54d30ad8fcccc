/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/needs_table.h"

const char *const needs_cost_names[COST_COUNT] = {
	[COST_FREE] = "free",
	[COST_SAMPLED] = "when sampled",
	[COST_EVENT] = "per event",
};

#define NEEDS_ROW(need, implies, from, traits, probes, cost, name, help) \
	{need, implies, probes, cost, name, help},

const struct needs_row needs_rows[] = {
	{0, 0, 0, COST_FREE, "record", "the scan, and the thread's record"},
	SAMPLE_NEEDS(NEEDS_ROW)};

const size_t needs_row_count = sizeof(needs_rows) / sizeof(needs_rows[0]);

uint64_t sample_needs_close(uint64_t needs)
{
	for (size_t i = needs_row_count; i--;) /* a row comes after those that it implies */
		if (needs & needs_rows[i].need)
			needs |= needs_rows[i].implies;
	return needs;
}

uint64_t needs_first(uint64_t needs)
{
	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			return needs_rows[i].need;
	return 0;
}

const struct needs_row *needs_dearest(uint64_t needs)
{
	const struct needs_row *row = &needs_rows[0];

	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			row = &needs_rows[i];
	return row;
}
