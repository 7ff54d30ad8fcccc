/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/part_table.h"
#include "render/renderer.h"
#include "report/groups.h"

const struct report_part *const part_table[] = {
	&path_part,		      /* first: others get the samples of the paths */
	&probe_stacks_part,	      /* the same, of its calls */
	&page_part,		      /* adds columns of groups */
	&groups_part,		      /* before parts that share its exact times */
	&recorded_distributions_part, /* before the part that they go into */
	&distributions_part,
	&recorded_events_part, /* before the part that they go into */
	&events_part,	       /* before stacks in a report, and before a recording of
				  them */
	&stacks_part,
	&chains_part,
	&counted_findings_part, /* before those that it adds to */
	&findings_part,
	&earlier_findings_part,
	&sleepers_part,
	&changed_part,
	&times_part,
	&stack_dict_part,
	&rows_part,
	&recorded_findings_part, /* before what they go into */
	&record_part,
	&hosts_part,
	NULL,
};
_Static_assert(sizeof(part_table) / sizeof(part_table[0]) <= REPORT_PARTS_MAX, "raise it");
