/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of reports, in the order in which they take samples, and stand in a report. */
#ifndef TSNAP_CLI_PART_TABLE_H
#define TSNAP_CLI_PART_TABLE_H

#include "report/report.h"

extern const struct report_part *const part_table[];
extern const struct report_part times_part, earlier_findings_part, recorded_findings_part,
	counted_findings_part, recorded_events_part, recorded_distributions_part, probe_stacks_part,
	record_part, stack_dict_part, changed_part, hosts_part;

#endif
