/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cgroup.h"
#include "base/names.h"
#include "proc/proc.h"

#include <string.h>

#define CGROUP_BYTES 8192

enum cgroup_rank { RANK_V2, RANK_SYSTEMD, RANK_OTHER, RANK_ROOT, RANK_NONE };

static enum cgroup_rank line_rank(const char *controllers, size_t path_length)
{
	static const char systemd[] = "name=systemd:";

	if (path_length <= 1)
		return RANK_ROOT;
	if (*controllers == ':')
		return RANK_V2;
	return strncmp(controllers, systemd, sizeof(systemd) - 1) ? RANK_OTHER : RANK_SYSTEMD;
}

const char *cgroup_choose(const char *text, size_t *length)
{
	enum cgroup_rank best = RANK_NONE;
	const char *chosen = NULL, *line, *end;

	/* lines read HIERARCHY:CONTROLLERS:PATH; a path may hold colons, but no line break */
	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		const char *controllers = memchr(line, ':', end - line), *path;
		enum cgroup_rank rank;

		if (!controllers)
			continue;
		controllers++;
		path = memchr(controllers, ':', end - controllers);
		if (!path || path[1] != '/')
			continue;
		path++;
		rank = line_rank(controllers, end - path);
		if (rank >= best)
			continue;
		best = rank;
		chosen = path;
		*length = end - path;
	}
	return chosen;
}

const char *cgroup_read(const char *root, int64_t pid, int64_t tid)
{
	char text[CGROUP_BYTES];
	const char *path = NULL;
	size_t length;

	if (proc_file_read(root, pid, tid, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_choose(text, &length);
	return path ? name_lent(path, length) : NULL;
}
