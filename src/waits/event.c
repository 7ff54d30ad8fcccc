/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that report events: eventfd, inotify, and others. */
#include "waits/wait_object.h"

static void eventfd_describe(struct wait *wait)
{
	int64_t count = wait_fdinfo_number(wait, "eventfd-count:", 16);

	text_add_string(wait->text, "eventfd");
	if (count != ABSENT)
		text_add_format(wait->text, " count %lld", (long long)count);
}

const struct wait_object eventfd_object = {
	.kind = WAIT_EVENT,
	.calls = (const struct wait_call[]){{"read", NULL, 0}, {0}},
	.links = (const struct wait_link[]){{"anon_inode:[eventfd]", "eventfd"}, {0}},
	.describe = eventfd_describe,
	.is_own = wait_is_own,
	.threads_end = true,
};

static void event_describe(struct wait *wait)
{
	const struct wait_link *row;

	wait_object_of_link(wait->link, &row);
	text_add_string(wait->text, row->word);
}

const struct wait_object event_object = {
	.kind = WAIT_EVENT,
	.links =
		(const struct wait_link[]){
			{"anon_inode:inotify", "inotify"},
			{"anon_inode:[fanotify]", "fanotify"},
			{"anon_inode:[userfaultfd]", "userfaultfd"},
			{"anon_inode:[perf_event]", "perf_event"},
			{"anon_inode:bpf", "bpf"},
			{0},
		},
	.describe = event_describe,
	.threads_end = true,
};
