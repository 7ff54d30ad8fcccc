/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Permission to open, read or execute a file, which a process with a group of fanotify(7) has to
 * give: a virus scanner, for instance. */
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FAN_OPEN_PERM, FAN_ACCESS_PERM, FAN_OPEN_EXEC_PERM, FAN_PRE_ACCESS of linux/fanotify.h (6.14) */
#define PERMISSIONS 0x170000u

static unsigned int number_after(const char *line, const char *key, const char *end)
{
	const char *at = strstr(line, key);

	return at && at < end ? (unsigned int)strtoul(at + strlen(key), NULL, 16) : 0;
}

/* which: "fanotify MOUNT DEVICE". A group's marks are lines of fdinfo, proc(5): "fanotify mnt_id:12
 * mflags:0 mask:10000 ignored_mask:0", or with "sdev:800013" of a file or a whole file system. */
static bool group_is(const char *root, int64_t pid, int fd, const char *which)
{
	const char *line = proc_fdinfo_read(root, 0, pid, fd, NULL), *end;
	unsigned int mount, device;

	if (sscanf(which, "fanotify %x %x", &mount, &device) != 2)
		return false;
	for (; (end = strchr(line, '\n')); line = end + 1)
		if (number_after(line, " mask:", end) & PERMISSIONS &&
		    (number_after(line, " mnt_id:", end) == mount ||
		     number_after(line, " sdev:", end) == device))
			return true;
	return false;
}

static void fanotify_describe(struct wait *wait)
{
	static const struct holder_file group = {"anon_inode:[fanotify]", group_is};
	struct mount_facts mount;
	char which[64];

	wait->facts.stored = true;
	text_add_string(wait->text, "fanotify permission");
	if (wait->numbers_only || !wait_mount(wait, &mount))
		return;
	snprintf(which, sizeof(which), "fanotify %x %x", (unsigned int)mount.id, mount.device);
	wait_on_server(wait, " from ", wait_find_file(wait, &group, which));
}

/* Another group may have a mark there, too: which one has yet to answer is not known. */
static void fanotify_edge(const struct wait_facts *facts, const struct sample *sample,
			  struct edge *edge)
{
	server_edge(facts, sample, edge);
	if (edge->kind != EDGE_NONE)
		edge->sure = SURE_LIKELY;
}

const struct wait_object fanotify_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"fanotify_handle_event", "fanotify_get_response", NULL},
	.describe = fanotify_describe,
	.edge = fanotify_edge,
	.searched = true,
};
