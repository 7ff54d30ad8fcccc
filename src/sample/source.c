/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/source.h"

struct source_missed *source_facts_miss(struct source_facts *facts, const char *what,
					uint64_t count)
{
	struct source_missed missed = {.what = what, .count = count};

	if (facts->missed_count < SOURCE_MISSED_MAX)
		facts->missed_count++;
	else
		missed = (struct source_missed){.what = SOURCE_MISSED_MORE, .count = 1};
	facts->missed[facts->missed_count - 1] = missed;
	return &facts->missed[facts->missed_count - 1];
}

void source_facts_lack(struct source_facts *facts, const char *what)
{
	source_facts_miss(facts, what, 1)->standing = true;
}

struct source_missed *source_facts_miss_any(struct source_facts *facts, const char *what,
					    uint64_t count)
{
	return count ? source_facts_miss(facts, what, count) : NULL;
}
