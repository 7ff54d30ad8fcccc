/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mounts that an automounter has to make, autofs(5). */
#include "waits/wait_object.h"

#include <stdlib.h>
#include <string.h>

static void autofs_describe(struct wait *wait)
{
	static const char key[] = "pgrp=";
	struct mount_facts mount;
	const char *group;

	wait->facts.stored = true;
	text_add_string(wait->text, "automount");
	if (wait->numbers_only || !wait_mount(wait, &mount) || strcmp(mount.type, "autofs") != 0)
		return;
	text_add_format(wait->text, " of %s", mount.point);
	group = strstr(mount.options, key);
	if (group)
		wait_on_server(wait, " by ", strtoll(group + strlen(key), NULL, 10));
}

const struct wait_object autofs_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"autofs_wait", "autofs4_wait", NULL},
	.describe = autofs_describe,
	.edge = server_edge,
};
