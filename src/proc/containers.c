/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/containers.h"
#include "proc/container_monitor.h"
#include "proc/kubelet_names.h"
#include "base/names.h"
#include "sample/cgroup_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct container {
	struct cache_entry entry; /* key: address of the interned id, or uid of a pod */
	int64_t read_ns;
	const char *name;
	bool pod;
	bool refused; /* files of process 1 may not be read */
};

void containers_init(struct containers *containers)
{
	*containers = (struct containers){
		.known = {.entry_bytes = sizeof(struct container), .entries_max = CONTAINERS_MAX},
		.read = container_file_read};
}

static const char *name_request(const struct containers *containers, int fd, uint32_t row,
				const char *id)
{
	struct container_question question = {.row = row};
	char name[JSON_STRING_SIZE];

	snprintf(question.id, sizeof(question.id), "%s", id);
	return containers->read(containers->of, fd, &question, name) ? name_transient_string(name)
								     : NULL;
}

/* Reads the name from the file of a row. Sets *refused if the files of process 1 may not be
 * read. */
static const char *name_search(const struct containers *containers, uint32_t number,
			       const char *proc_root, const char *id, bool *refused)
{
	const struct container_file_row *row = &container_file_rows[number];
	char path[PATH_MAX];
	const char *name;
	size_t length;
	int fd;

	length = (size_t)snprintf(path, sizeof(path), "%s/1/root", proc_root);
	snprintf(path + length, sizeof(path) - length, "%s%s%s", row->before, row->after ? id : "",
		 row->after ? row->after : "");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* a sandbox may refuse the root of process 1, which mostly is this process's own root, too;
	 * if it is another, its files have no container of that id */
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		*refused = true;
		fd = open(path + length, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	if (fd < 0)
		return NULL;
	name = name_request(containers, fd, number, id);
	close(fd);
	return name;
}

static const char *name_find(const struct containers *containers, const char *proc_root,
			     const char *id, int64_t pid, bool *refused)
{
	char monitored[JSON_STRING_SIZE];
	const char *name = NULL;

	*refused = false;
	/* an id is 64 hex digits; anything else is a name already, and never part of a path */
	if (strspn(id, "0123456789abcdef") != CONTAINER_ID_LENGTH || id[CONTAINER_ID_LENGTH])
		return id;
	for (uint32_t i = 0; !name && i < container_file_row_count; i++)
		name = name_search(containers, i, proc_root, id, refused);
	if (!name && kubelet_container_name(proc_root, id, monitored, sizeof(monitored)))
		name = name_transient_string(monitored);
	if (!name && container_monitor_name(proc_root, pid, id, monitored, sizeof(monitored)))
		name = name_transient_string(monitored);
	return name;
}

/* Finds or adds a container or a pod; *old: its name must be read. */
static struct container *container_get(struct containers *containers, const char *id,
				       int64_t now_ns, bool *old)
{
	bool added;
	struct container *container =
		cache_get(&containers->known, (uint64_t)(uintptr_t)id, now_ns, &added);
	int64_t still_ns = container->name ? CONTAINERS_RECHECK_NS : CONTAINERS_UNNAMED_NS;

	*old = added || now_ns - container->read_ns >= still_ns;
	if (*old)
		container->read_ns = now_ns;
	return container;
}

const char *container_name(struct containers *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns)
{
	struct cgroup_names names;
	struct container *container;
	const char *id;
	bool old;

	cgroup_names_find(cgroup, &names);
	if (!*names.container)
		return NULL;
	id = name_transient_string(names.container);
	container = container_get(containers, id, now_ns, &old);
	if (old)
		container->name = name_find(containers, proc_root, id, pid, &container->refused);
	return container->name;
}

size_t containers_unnamed(const struct containers *containers, bool refused)
{
	size_t count = 0;

	for (size_t i = 0; i < containers->known.count; i++) {
		const struct container *container =
			(struct container *)containers->known.entries[i];

		count += !container->pod && !container->name && container->refused == refused;
	}
	return count;
}

const char *pod_name(struct containers *containers, const char *proc_root, const char *cgroup,
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
	uid = name_transient_string(names.pod);
	pod = container_get(containers, uid, now_ns, &old);
	pod->pod = true;
	if (old)
		pod->name = kubelet_pod_name(proc_root, uid, name, sizeof(name))
				    ? name_transient_string(name)
				    : NULL;
	return pod->name;
}
