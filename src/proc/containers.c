/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/containers.h"
#include "base/cache.h"
#include "proc/json_strings.h"
#include "proc/container_monitor.h"
#include "proc/kubelet_names.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/cgroup_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4u << 20)

struct container {
	struct cache_entry entry; /* key: address of the interned id, or uid of a pod */
	int64_t read_ns;
	const char *name;
	bool pod;
	bool refused; /* files of process 1 may not be read */
};

/* Where a runtime keeps the name: in a file before ID/after, or in one of all containers. */
struct name_row {
	const char *before, *after; /* after: NULL: one file; ids are under id_key */
	int depth;
	const char *key, *id_key;
};

#define STORAGE(driver)                                                                         \
	{"/var/lib/containers/storage/" driver "-containers/containers.json", NULL, 3, "names", \
	 "id"},                                                                                 \
	{                                                                                       \
		"/var/lib/containers/storage/" driver "-containers/volatile-containers.json",   \
			NULL, 3, "names", "id"                                                  \
	}

/* Kubernetes' name of a container is the one in its pod. */
static const struct name_row name_rows[] = {
	/* github.com/moby/moby, container/container.go */
	{"/var/lib/docker/containers/", "/config.v2.json", 1, "Name", NULL},
	/* its snap */
	{"/var/snap/docker/common/var-lib-docker/containers/", "/config.v2.json", 1, "Name", NULL},
	/* github.com/containerd/containerd, internal/cri/annotations */
	{"/run/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json", 2,
	 "io.kubernetes.cri.container-name", NULL},
	/* its place in k3s, RKE2 and MicroK8s */
	{"/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json", 2,
	 "io.kubernetes.cri.container-name", NULL},
	{"/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/k8s.io/",
	 "/config.json", 2, "io.kubernetes.cri.container-name", NULL},
	/* github.com/containerd/nerdctl, pkg/labels */
	{"/run/containerd/io.containerd.runtime.v2.task/default/", "/config.json", 2,
	 "nerdctl/name", NULL},
	/* github.com/cri-o/cri-o, pkg/annotations */
	{"/run/containers/storage/overlay-containers/", "/userdata/config.json", 2,
	 "io.kubernetes.container.name", NULL},
	/* podman by root: github.com/containers/storage, containers.go; of each storage driver */
	STORAGE("overlay"),
	STORAGE("vfs"),
	STORAGE("btrfs"),
	STORAGE("zfs"),
};

void containers_init(struct cache *containers)
{
	*containers = (struct cache){.entry_bytes = sizeof(struct container),
				     .entries_max = CONTAINERS_MAX};
}

/* A file of a reasonable size, malloced. NULL: there is none, or it is something else (errno). */
static char *file_read(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat about;
	char *bytes = NULL;
	ssize_t got = -1;

	if (fd < 0)
		return NULL;
	errno = 0;
	if (!fstat(fd, &about) && S_ISREG(about.st_mode) && about.st_size > 0 &&
	    about.st_size <= (off_t)FILE_BYTES_MAX) {
		bytes = memory_get((size_t)about.st_size);
		got = read(fd, bytes, (size_t)about.st_size);
	}
	close(fd);
	*length = got > 0 ? (size_t)got : 0;
	return bytes;
}

struct search {
	const struct name_row *row;
	const char *id;
	bool mine; /* the object is the container's */
	char name[JSON_STRING_SIZE];
};

static void string_meet(void *to, int depth, const char *key, const char *string)
{
	struct search *search = to;
	const struct name_row *row = search->row;

	if (row->id_key && depth == row->depth - 1 && !strcmp(key, row->id_key))
		search->mine = !strcmp(string, search->id);
	if (search->mine && !*search->name && depth == row->depth && !strcmp(key, row->key))
		/* docker's begin with a slash */
		snprintf(search->name, sizeof(search->name), "%s", string + (*string == '/'));
}

/* *refused: also set where the files of process 1 may not be read. */
static const char *name_search(const struct name_row *row, const char *proc_root, const char *id,
			       bool *refused)
{
	struct search search = {.row = row, .id = id, .mine = !row->id_key};
	char path[PATH_MAX], *bytes;
	const char *own;
	size_t length;

	length = (size_t)snprintf(path, sizeof(path), "%s/1/root", proc_root);
	snprintf(path + length, sizeof(path) - length, "%s%s%s", row->before, row->after ? id : "",
		 row->after ? row->after : "");
	own = path + length;
	bytes = file_read(path, &length);
	/* a sandbox may refuse the root of process 1, which mostly is this process' own; another's
	 * files have no container of that id */
	if (!bytes && (errno == EACCES || errno == EPERM)) {
		*refused = true;
		bytes = file_read(own, &length);
	}
	if (!bytes)
		return NULL;
	json_strings_visit(bytes, length, string_meet, &search);
	free(bytes);
	return *search.name ? name_lent_string(search.name) : NULL;
}

static const char *name_find(const char *proc_root, const char *id, int64_t pid, bool *refused)
{
	char monitored[JSON_STRING_SIZE];
	const char *name = NULL;

	*refused = false;
	/* what is no id is a name, and no part of a path */
	if (strspn(id, "0123456789abcdef") != CONTAINER_ID_LENGTH || id[CONTAINER_ID_LENGTH])
		return id;
	for (size_t i = 0; !name && i < sizeof(name_rows) / sizeof(name_rows[0]); i++)
		name = name_search(&name_rows[i], proc_root, id, refused);
	if (!name && kubelet_container_name(proc_root, id, monitored, sizeof(monitored)))
		name = name_lent_string(monitored);
	if (!name && container_monitor_name(proc_root, pid, id, monitored, sizeof(monitored)))
		name = name_lent_string(monitored);
	return name;
}

/* A container or a pod, whose name is to be read if *old. */
static struct container *container_get(struct cache *containers, const char *id, int64_t now_ns,
				       bool *old)
{
	bool added;
	struct container *container =
		cache_get(containers, (uint64_t)(uintptr_t)id, now_ns, &added);
	int64_t still_ns = container->name ? CONTAINERS_RECHECK_NS : CONTAINERS_UNNAMED_NS;

	*old = added || now_ns - container->read_ns >= still_ns;
	if (*old)
		container->read_ns = now_ns;
	return container;
}

const char *container_name(struct cache *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns)
{
	struct cgroup_names names;
	struct container *container;
	const char *id;
	bool old;

	cgroup_names_find(cgroup, &names);
	if (!*names.container)
		return NULL;
	id = name_lent_string(names.container);
	container = container_get(containers, id, now_ns, &old);
	if (old)
		container->name = name_find(proc_root, id, pid, &container->refused);
	return container->name;
}

size_t containers_unnamed(const struct cache *containers, bool refused)
{
	size_t count = 0;

	for (size_t i = 0; i < containers->count; i++) {
		const struct container *container = (struct container *)containers->entries[i];

		count += !container->pod && !container->name && container->refused == refused;
	}
	return count;
}

const char *pod_name(struct cache *containers, const char *proc_root, const char *cgroup,
		     int64_t now_ns)
{
	struct cgroup_names names;
	struct container *pod;
	char name[NAME_MAX + 1];
	const char *uid;
	bool old;

	cgroup_names_find(cgroup, &names);
	if (!*names.pod)
		return NULL;
	uid = name_lent_string(names.pod);
	pod = container_get(containers, uid, now_ns, &old);
	pod->pod = true;
	if (old)
		pod->name = kubelet_pod_name(proc_root, uid, name, sizeof(name))
				    ? name_lent_string(name)
				    : NULL;
	return pod->name;
}
