/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A condition on the findings of an interval: --when 'finding=deadlock', --when 'findings>0'. */
#ifndef TSNAP_REPORT_FINDING_CONDITION_H
#define TSNAP_REPORT_FINDING_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct findings;

/* Zeroed: there is no condition, and every interval is wanted. */
struct finding_condition {
	bool given;
	const char
		*names; /* one of them must be found: "deadlock,quota"; NULL: any finding counts */
	int64_t more_than; /* so many findings are not enough */
};

/* Reads --when if it is about findings; its text must outlive the condition. 1: it is; 0: it is an
 * expression about samples; or -EINVAL with e. */
int finding_condition_read(struct finding_condition *condition, const char *typed, struct error *e);
/* findings: filled. */
bool finding_condition_met(const struct finding_condition *condition,
			   const struct findings *findings);

#endif
