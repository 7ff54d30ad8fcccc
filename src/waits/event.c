/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that report events: eventfd, inotify, and others. */
#include "waits/wait_object.h"

#include <stdlib.h>
#include <string.h>

static void eventfd_describe(struct wait *wait)
{
	static const char key[] = "eventfd-count:";
	const char *count = strstr(wait_fdinfo(wait, NULL), key);

	text_add_string(wait->text, "eventfd");
	/* up to UINT64_MAX - 1, at which a writer waits for a reader */
	if (count)
		text_add_format(wait->text, " count %llu", strtoull(count + strlen(key), NULL, 16));
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
