/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cgroup_mount.h"
#include "base/clock.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WALK_DEEP 32 /* limit of nested groups */

static ssize_t file_read(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, bytes, size - 1);
	close(fd);
	bytes[length > 0 ? length : 0] = '\0';
	return length;
}

/* True if the option is in a comma-separated list. */
static bool option_listed(char *options, const char *name)
{
	char *save = NULL;

	for (char *at = strtok_r(options, ",\n", &save); at; at = strtok_r(NULL, ",\n", &save))
		if (!strcmp(at, name))
			return true;
	return false;
}

/* Parses a line "36 35 0:31 /ROOT /MOUNT rw shared:1 - cgroup cgroup rw,cpu,cpuacct", proc(5). */
static void mount_read(struct cgroup_mount *found, char *line, const char *controller)
{
	char root[PATH_MAX], mount[PATH_MAX], type[32], options[512];
	char *behind = strstr(line, " - ");
	bool v1;

	if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(behind + 3, "%31s %*s %511s", type, options) != 2)
		return;
	v1 = !strcmp(type, "cgroup") && option_listed(options, controller);
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

void cgroup_mount_file(const struct cgroup_mount *mount, const char *group, const char *name,
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
	return file_read(file, bytes, size);
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
