/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The headers that the kernel itself may carry (CONFIG_IKHEADERS, 5.2), built in or as a module. */
#include "kernel/command.h"
#include "kernel/type_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool archive_there(void)
{
	return !access(KERNEL_KHEADERS_PATH, R_OK);
}

/* Only root's explicit word loads a module. */
static bool module_is_wanted(const struct type_request *request)
{
	return request->choice && !strcmp(request->choice, "kheaders") && !geteuid();
}

bool kheaders_there(const struct type_request *request, char *where, size_t size)
{
	if (archive_there())
		snprintf(where, size, "%s", KERNEL_KHEADERS_PATH);
	else if (errno != ENOENT)
		snprintf(where, size, "%s: %s", KERNEL_KHEADERS_PATH, strerror(errno));
	else if (module_is_wanted(request))
		snprintf(where, size, "%s after modprobe kheaders", KERNEL_KHEADERS_PATH);
	else
		snprintf(where, size, "no %s (as root, --kernel-types kheaders loads the module)",
			 KERNEL_KHEADERS_PATH);
	return archive_there() || module_is_wanted(request);
}

static int archive_unpack(const struct type_request *request, const char *tree, struct error *e)
{
	const char *const command[] = {"tar", "-xJf", KERNEL_KHEADERS_PATH, "-C", tree, NULL};
	int failed = work_dir_write(request->work_dir, "kheaders/.tsnap", "", e);

	if (failed)
		return failed;
	failed = command_run(command);
	if (!failed)
		return 0;
	return error_set(e, -failed, EXIT_FAILED,
			 "%s can't be unpacked: tar: %s; are tar and xz installed?",
			 KERNEL_KHEADERS_PATH, failed == -EIO ? "failed" : strerror(-failed));
}

int kheaders_read(const struct type_request *request, struct field_layout *layout, struct error *e)
{
	static const char *const load[] = {"modprobe", "kheaders", NULL};
	static const char *const unload[] = {"modprobe", "-r", "kheaders", NULL};
	bool loaded = false;
	char tree[PATH_MAX];
	int failed = 0;

	snprintf(tree, sizeof(tree), "%s/kheaders/.", request->work_dir);
	if (!archive_there()) {
		failed = command_run(load);
		loaded = !failed;
	}
	if (failed || !archive_there())
		failed = error_set(e, ENOENT, EXIT_HOST_CANNOT,
				   "no %s: modprobe kheaders %s, so this kernel has no headers of "
				   "its own",
				   KERNEL_KHEADERS_PATH,
				   failed == -EIO ? "failed (-v says why)"
				   : failed	  ? "can't be run"
						  : "did not bring it");
	else
		failed = archive_unpack(request, tree, e);
	/* a module that tsnap loaded is unloaded again: the archive is unpacked */
	if (loaded)
		command_run(unload);
	return failed ? failed : header_layout_read(request, tree, layout, e);
}
