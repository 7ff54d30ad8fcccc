/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cgroup.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "proc/proc.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_FILE_SIZE (2ul * PATH_MAX)
#define WALK_DEEP 32 /* limit of nested groups */

/* Parses a line "36 35 0:31 /ROOT /MOUNT rw shared:1 - cgroup cgroup rw,cpu,cpuacct", proc(5). */
static void mount_read(struct cgroup_mount *found, char *line, const char *controller)
{
	char root[PATH_MAX], mount[PATH_MAX], type[32], options[512];
	char *behind = strstr(line, " - ");
	bool v1;

	if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(behind + 3, "%31s %*s %511s", type, options) != 2)
		return;
	v1 = !strcmp(type, "cgroup") && text_lists(options, strlen(options), controller);
	if (!v1 && (strcmp(type, "cgroup2") || found->path))
		return;
	free(found->path);
	free(found->root);
	found->path = memory_text(mount, strlen(mount));
	found->root = memory_text(root, strlen(root));
	found->v1 = v1;
}

void cgroup_mount_find(struct cgroup_mount *mount, const char *proc_root, const char *controller)
{
	char path[PATH_MAX], line[3 * PATH_MAX];
	FILE *mounts;

	*mount = (struct cgroup_mount){0};
	snprintf(path, sizeof(path), "%s/self/mountinfo", proc_root);
	mounts = fopen(path, "re");
	while (mounts && !mount->v1 && fgets(line, sizeof(line), mounts))
		mount_read(mount, line, controller);
	if (mounts)
		fclose(mounts);
}

void cgroup_mount_done(struct cgroup_mount *mount)
{
	free(mount->path);
	free(mount->root);
	*mount = (struct cgroup_mount){0};
}

/* The path of a file of the group, whose own path is that of /proc/TID/cgroup. */
static void cgroup_mount_file(const struct cgroup_mount *mount, const char *group, const char *name,
			      char file[CGROUP_FILE_SIZE])
{
	size_t root = strlen(mount->root);

	/* the path begins with the path of the mounted group */
	if (root > 1 && !strncmp(group, mount->root, root) && (group[root] == '/' || !group[root]))
		group += root;
	snprintf(file, CGROUP_FILE_SIZE, "%s%s/%s", mount->path, strcmp(group, "/") ? group : "",
		 name);
}

ssize_t cgroup_mount_read(const struct cgroup_mount *mount, const char *group, const char *name,
			  char *bytes, size_t size)
{
	char file[CGROUP_FILE_SIZE];

	if (!mount->path)
		return -1;
	cgroup_mount_file(mount, group, name, file);
	return host_file_read(file, bytes, size);
}

int64_t cgroup_mount_number(const struct cgroup_mount *mount, const char *group, const char *name)
{
	char text[64], *end;
	int64_t number;

	if (cgroup_mount_read(mount, group, name, text, sizeof(text)) <= 0)
		return -1;
	number = strtoll(text, &end, 10);
	return end == text ? -1 : number;
}

struct cgroup_walk {
	const struct cgroup_mount *mount;
	int64_t end_ns;
	cgroup_callback *take;
	void *to;
	char path[PATH_MAX]; /* group whose subgroups are being walked */
};

static bool groups_walk(struct cgroup_walk *walk, int depth)
{
	char directory[CGROUP_FILE_SIZE];
	size_t length = strlen(walk->path);
	const struct dirent *entry;
	bool all = true;
	DIR *dir;

	cgroup_mount_file(walk->mount, walk->path, "", directory);
	dir = opendir(directory);
	while (dir && all && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		if (depth == WALK_DEEP || clock_monotonic_ns() > walk->end_ns ||
		    length + strlen(entry->d_name) + 2 > PATH_MAX) {
			all = false;
			break;
		}
		snprintf(walk->path + length, PATH_MAX - length, "/%s", entry->d_name);
		all = walk->take(walk->to, walk->path) && groups_walk(walk, depth + 1);
		walk->path[length] = '\0';
	}
	if (dir)
		closedir(dir);
	return all;
}

bool cgroup_mount_walk(const struct cgroup_mount *mount, int64_t end_ns, cgroup_callback *take,
		       void *to)
{
	struct cgroup_walk walk = {.mount = mount, .end_ns = end_ns, .take = take, .to = to};

	if (!mount->path || !take(to, mount->root))
		return false;
	if (strcmp(mount->root, "/") != 0)
		snprintf(walk.path, sizeof(walk.path), "%s", mount->root);
	return groups_walk(&walk, 0);
}

size_t cgroup_outer(const char *path, size_t length)
{
	if (length <= 1)
		return 0;
	while (path[--length] != '/')
		;
	return length + !length;
}

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
		       : !text_lists(list + 1, (size_t)(path - list - 1), controller))
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
