/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cgroup.h"
#include "base/names.h"
#include "proc/proc.h"

#include <stdbool.h>
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

/* True if the name is in a comma-separated list. */
static bool name_listed(const char *list, size_t length, const char *name)
{
	size_t size = strlen(name);

	for (const char *end = list + length; list < end; list++) {
		const char *next = memchr(list, ',', (size_t)(end - list));

		next = next ? next : end;
		if ((size_t)(next - list) == size && !memcmp(list, name, size))
			return true;
		list = next;
	}
	return false;
}

const char *cgroup_of_controller(const char *text, const char *controller, size_t *length)
{
	const char *chosen = NULL, *line, *end;

	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		const char *list = memchr(line, ':', (size_t)(end - line)), *path;
		bool v2;

		path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
		if (!path || path[1] != '/')
			continue;
		v2 = path == list + 1;
		if (v2 ? chosen != NULL
		       : !name_listed(list + 1, (size_t)(path - list - 1), controller))
			continue;
		chosen = path + 1;
		*length = (size_t)(end - chosen);
		if (!v2)
			break;
	}
	return chosen;
}

/* True if the path is in a list with line breaks between. */
static bool path_listed(const char *paths, const char *path, size_t length)
{
	for (; *paths; paths += strcspn(paths, "\n"), paths += *paths == '\n')
		if (strcspn(paths, "\n") == length && !memcmp(paths, path, length))
			return true;
	return false;
}

bool cgroup_others(const char *text, const char *chosen, size_t length, char *to, size_t size)
{
	const char *line, *end;
	size_t used = 0;

	*to = '\0';
	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		const char *path = memchr(line, ':', (size_t)(end - line));
		size_t bytes;

		path = path ? memchr(path + 1, ':', (size_t)(end - path - 1)) : NULL;
		bytes = path ? (size_t)(end - ++path) : 0;
		if (bytes <= 1 || *path != '/' || used + bytes + 2 > size ||
		    (bytes == length && !memcmp(path, chosen, length)) ||
		    path_listed(to, path, bytes))
			continue;
		if (used)
			to[used++] = '\n';
		memcpy(to + used, path, bytes);
		used += bytes;
		to[used] = '\0';
	}
	return used;
}

const char *cgroup_read(const char *root, int64_t pid, int64_t tid, const char **others)
{
	char text[CGROUP_BYTES], more[CGROUP_BYTES];
	const char *path = NULL;
	size_t length;

	if (others)
		*others = NULL;
	if (proc_file_read(root, pid, tid, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_choose(text, &length);
	if (path && others && cgroup_others(text, path, length, more, sizeof(more)))
		*others = name_transient_string(more);
	return path ? name_transient(path, length) : NULL;
}
