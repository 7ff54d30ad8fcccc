/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a server of FUSE, a process that has /dev/fuse open for the mount. */
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* which: a line of fdinfo, "fuse_connection:\t39\n": the mount's device. */
static bool connection_is(const char *root, int64_t pid, int fd, const char *which)
{
	return strstr(proc_fdinfo_read(root, 0, pid, fd, NULL), which);
}

static bool is_of_fuse(const struct mount_facts *mount)
{
	return wait_object_of_mount(mount) == &fuse_object;
}

/* Finds the mount that a page fault of the process waits for: the only one of FUSE with files that
 * it has mapped, as nothing shows the address of a fault on data. */
static bool mapped_mount_find(const struct wait *wait, struct mount_facts *found)
{
	FILE *maps = proc_file_stream(wait->waits->root, wait->pid, wait->tid, "maps");
	char line[PATH_MAX + 128];
	unsigned int minor, last = 0;
	struct mount_facts mount;
	int path, count = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		path = 0;
		line[strcspn(line, "\n")] = '\0';
		/* parts of one file follow each other */
		if (sscanf(line, "%*s %*s %*s 00:%x %*s %n", &minor, &path) != 1 || !minor ||
		    minor == last)
			continue;
		last = minor;
		if (!mount_find(wait->waits->root, wait->pid, wait->tid, -1, line + path, &mount) ||
		    mount.device != minor || !is_of_fuse(&mount))
			continue;
		count += !count || mount.device != found->device;
		*found = mount;
	}
	if (maps)
		fclose(maps);
	return count == 1;
}

static void fuse_describe(struct wait *wait)
{
	static const struct holder_file connection = {"/fuse", connection_is};
	struct mount_facts mount;
	char which[64];

	wait->facts.stored = true;
	text_add_string(wait->text, "FUSE server");
	if (wait->numbers_only ||
	    !((wait_mount(wait, &mount) && is_of_fuse(&mount)) || mapped_mount_find(wait, &mount)))
		return;
	snprintf(which, sizeof(which), "fuse_connection:\t%u\n", mount.device);
	wait_on_server(wait, " ", wait_find_file(wait, &connection, which));
	text_add_format(wait->text, " of %s", mount.point);
}

const struct wait_object fuse_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"request_wait_answer", "fuse_get_req", "__fuse_get_req",
					   "__fuse_request_send", "fuse_request_send",
					   "__fuse_simple_request", "fuse_simple_request", NULL},
	.describe = fuse_describe,
	.edge = server_edge,
	.searched = true,
};
