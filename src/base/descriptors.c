/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/descriptors.h"

#include <sys/resource.h>

unsigned int descriptors_share(unsigned int wanted, unsigned int part_of)
{
	struct rlimit limit;
	rlim_t soft;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	soft = limit.rlim_cur;
	if (soft < DESCRIPTORS_WANTED && soft < limit.rlim_max) {
		limit.rlim_cur =
			limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			soft = limit.rlim_cur;
	}
	return soft / part_of < wanted ? (unsigned int)(soft / part_of) : wanted;
}
