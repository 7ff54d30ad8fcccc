/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of file systems, devices, and all other files of which no other object knows more than the
 * name. */
#include "waits/wait_object.h"

#include <string.h>

/* True for a file of a file system for data. */
static bool path_is_stored(const char *path)
{
	static const char *const others[] = {"/dev/", "/proc/", "/sys/", "/memfd:"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strncmp(path, others[i], strlen(others[i])))
			return false;
	return *path == '/';
}

static void path_describe(struct wait *wait)
{
	wait->facts.stored = path_is_stored(wait->link);
	text_add_string(wait->text, wait->link);
}

void disk_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge)
{
	(void)facts;
	if (!sample->io.dev)
		return;
	edge->kind = EDGE_IO;
	edge->thing = sample->io.dev;
}

const struct wait_object file_object = {
	.kind = WAIT_FILE,
	.links =
		(const struct wait_link[]){
			{"/", NULL},
			{"/memfd:", "memfd"},
			{"anon_inode:", "anon"},
			{"", "other"}, /* mnt:[4026531841] */
			{0},
		},
	.describe = path_describe,
	.edge = disk_edge,
};
