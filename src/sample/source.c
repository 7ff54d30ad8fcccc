/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/source.h"

#include <string.h>

struct source_missed *source_status_miss(struct source_status *status, const char *what,
					 uint64_t count)
{
	struct source_missed missed = {.what = what, .count = count};

	if (status->missed_count < SOURCE_MISSED_MAX)
		status->missed_count++;
	else
		missed = (struct source_missed){.what = SOURCE_MISSED_MORE, .count = 1};
	status->missed[status->missed_count - 1] = missed;
	return &status->missed[status->missed_count - 1];
}

void source_status_lack(struct source_status *status, const char *what)
{
	source_status_miss(status, what, 1)->standing = true;
}

struct source_missed *source_status_miss_any(struct source_status *status, const char *what,
					     uint64_t count)
{
	return count ? source_status_miss(status, what, count) : NULL;
}

void source_status_add(struct source_status *status, const struct source_missed *missed)
{
	size_t at = 0;

	while (at < status->missed_count && strcmp(status->missed[at].what, missed->what) != 0)
		at++;
	if (at == status->missed_count) {
		*source_status_miss(status, missed->what, missed->count) = *missed;
		return;
	}
	/* recorded numbers may be as large as they like */
	status->missed[at].count += missed->count;
	if (status->missed[at].count > INT64_MAX)
		status->missed[at].count = INT64_MAX;
}
