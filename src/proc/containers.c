/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/containers.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"
#include "sample/cgroup_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct level {
	bool object, value; /* value: a key and its colon came before */
	char key[JSON_STRING_SIZE];
};

/* Reads a string after its opening quote. Only escaped quotes and backslashes are unescaped: no
 * name of a container has other escapes. */
static const char *string_take(const char *at, const char *end, char string[JSON_STRING_SIZE])
{
	size_t length = 0;

	for (; at < end && *at != '"'; at++) {
		if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
			at++;
		if (length < JSON_STRING_SIZE - 1)
			string[length++] = *at;
	}
	string[length] = '\0';
	return at < end ? at + 1 : end;
}

static void level_open(struct level *levels, int depth, bool object)
{
	struct level *level = &levels[depth], *outer = &levels[depth - 1];

	level->object = object;
	level->value = false;
	/* an array takes the key of the object or array around it */
	if (object)
		level->key[0] = '\0';
	else
		memcpy(level->key, outer->key, sizeof(level->key));
}

void json_strings_visit(const char *text, size_t length, json_visit *visit, void *to)
{
	struct level levels[JSON_DEPTH_MAX] = {{.key = ""}};
	char string[JSON_STRING_SIZE] = "";
	const char *end = text + length;
	int depth = 0;

	while (text < end) {
		struct level *level = depth < JSON_DEPTH_MAX ? &levels[depth] : NULL;
		char c = *text++;

		if (c == '{' || c == '[') {
			if (++depth < JSON_DEPTH_MAX)
				level_open(levels, depth, c == '{');
		} else if (c == '}' || c == ']') {
			depth -= depth > 0;
		} else if (c == ',' && level) {
			level->value = false;
		} else if (c == ':' && level) {
			level->value = true;
		} else if (c == '"') {
			text = string_take(text, end, string);
			if (level && level->object && !level->value)
				memcpy(level->key, string, sizeof(level->key));
			else if (level)
				visit(to, depth, level->key, string);
		}
	}
}

#define FILE_BYTES_MAX (4u << 20)

/* Position of a container's name in a runtime's files: a file "before ID after" for each container,
 * or one file for all containers. */
struct container_file_row {
	const char *before, *after; /* after is NULL: one file for all, with ids under id_key */
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

/* In Kubernetes a container has its name in the pod. */
static const struct container_file_row container_file_rows[] = {
	/* github.com/moby/moby, container/container.go */
	{"/var/lib/docker/containers/", "/config.v2.json", 1, "Name", NULL},
	/* docker as a snap */
	{"/var/snap/docker/common/var-lib-docker/containers/", "/config.v2.json", 1, "Name", NULL},
	/* github.com/containerd/containerd, internal/cri/annotations */
	{"/run/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json", 2,
	 "io.kubernetes.cri.container-name", NULL},
	/* containerd in k3s, RKE2 and MicroK8s */
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
	/* podman by root: github.com/containers/storage, containers.go; a file for each storage
	 * driver */
	STORAGE("overlay"),
	STORAGE("vfs"),
	STORAGE("btrfs"),
	STORAGE("zfs"),
};
#define FILE_ROWS (sizeof(container_file_rows) / sizeof(container_file_rows[0]))

/* Reads a regular file of at most FILE_BYTES_MAX, malloced. NULL: it is something else. */
static char *file_take(int fd, size_t *length)
{
	struct stat about;
	char *bytes;
	ssize_t got;

	if (fstat(fd, &about) || !S_ISREG(about.st_mode) || about.st_size <= 0 ||
	    about.st_size > (off_t)FILE_BYTES_MAX)
		return NULL;
	bytes = memory_get((size_t)about.st_size);
	got = pread(fd, bytes, (size_t)about.st_size, 0);
	*length = got > 0 ? (size_t)got : 0;
	return bytes;
}

struct search {
	const struct container_file_row *row;
	const char *id;
	bool mine; /* the present object is the container's */
	char *name;
};

static void string_meet(void *to, int depth, const char *key, const char *string)
{
	struct search *search = to;
	const struct container_file_row *row = search->row;

	if (row->id_key && depth == row->depth - 1 && !strcmp(key, row->id_key))
		search->mine = !strcmp(string, search->id);
	if (search->mine && !*search->name && depth == row->depth && !strcmp(key, row->key))
		/* names of docker begin with a slash */
		snprintf(search->name, JSON_STRING_SIZE, "%s", string + (*string == '/'));
}

bool container_file_read(void *of, int fd, const struct container_question *question,
			 char name[JSON_STRING_SIZE])
{
	struct search search = {.id = question->id, .name = name};
	size_t length;
	char *bytes;

	(void)of;
	*name = '\0';
	if (question->row >= FILE_ROWS ||
	    strnlen(question->id, sizeof(question->id)) == sizeof(question->id))
		return false;
	bytes = file_take(fd, &length);
	if (!bytes)
		return false;
	search.row = &container_file_rows[question->row];
	search.mine = !search.row->id_key;
	json_strings_visit(bytes, length, string_meet, &search);
	free(bytes);
	return *name;
}

#define ANCESTORS_MAX 64 /* limit of ancestors that are searched */
#define ARGUMENTS_BYTES 4096
#define MONITOR "conmon"

/* The argument that follows an option, which has two names; NULL: there is none. */
static const char *option_find(const char *arguments, size_t length, const char *brief,
			       const char *full)
{
	const char *end = arguments + length, *at = arguments, *next;

	for (; at < end; at = next) {
		next = at + strnlen(at, (size_t)(end - at)) + 1;
		if (next < end && (!strcmp(at, brief) || !strcmp(at, full)))
			return next;
	}
	return NULL;
}

bool container_monitor_parse(const char *arguments, size_t length, const char *id, char *name,
			     size_t size)
{
	const char *found;

	/* the last argument may be cut */
	while (length && arguments[length - 1])
		length--;
	found = option_find(arguments, length, "-c", "--cid");
	if (!found || strcmp(found, id) != 0)
		return false;
	found = option_find(arguments, length, "-n", "--name");
	return found && *found && (size_t)snprintf(name, size, "%s", found) < size;
}

/* Finds the name of the container with that id, which process pid is in. False: no ancestor has the
 * name, or it is longer than size. */
static bool container_monitor_name(const char *proc_root, int64_t pid, const char *id, char *name,
				   size_t size)
{
	char arguments[ARGUMENTS_BYTES];
	struct proc_stat stat;
	bool found = false;
	ssize_t length;

	for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++, pid = stat.ppid) {
		if (proc_stat_read(proc_root, 0, pid, &stat))
			break;
		if (strcmp(stat.comm, MONITOR) != 0)
			continue;
		length = proc_file_read(proc_root, 0, pid, "cmdline", arguments, sizeof(arguments));
		/* the outermost monitor wins: a process in the container may claim to be one,
		 * too */
		if (length > 0)
			found |= container_monitor_parse(arguments, (size_t)length, id, name, size);
	}
	return found;
}

#define ENTRIES_MAX 16384

/* Opens the directory that process 1 sees at path; if a sandbox refuses that, the directory that
 * this process sees. */
static DIR *directory_open(const char *proc_root, const char *path)
{
	char whole[PATH_MAX];
	DIR *dir;

	snprintf(whole, sizeof(whole), "%s/1/root%s", proc_root, path);
	dir = opendir(whole);
	if (!dir && (errno == EACCES || errno == EPERM))
		dir = opendir(path);
	return dir;
}

/* Finds the entry that ends in `end`, and fills name without that end. False: none, or it is too
 * long. */
static bool entry_find(const char *proc_root, const char *path, const char *end,
		       char name[NAME_MAX + 1])
{
	DIR *dir = directory_open(proc_root, path);
	size_t end_length = strlen(end), length;
	const struct dirent *entry;
	bool found = false;

	for (int i = 0; dir && !found && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		length = strlen(entry->d_name);
		found = length > end_length && length <= NAME_MAX &&
			!strcmp(entry->d_name + length - end_length, end);
		if (found) {
			memcpy(name, entry->d_name, length - end_length);
			name[length - end_length] = '\0';
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool name_take(const char *from, char *name, size_t size)
{
	return *from && (size_t)snprintf(name, size, "%s", from) < size;
}

/* The container's name in its pod. False: none, or it is longer than size. */
static bool kubelet_container_name(const char *proc_root, const char *id, char *name, size_t size)
{
	char end[NAME_MAX + 1], entry[NAME_MAX + 1];
	const char *last;

	if ((size_t)snprintf(end, sizeof(end), "-%s.log", id) >= sizeof(end) ||
	    !entry_find(proc_root, "/var/log/containers", end, entry))
		return false;
	last = strrchr(entry, '_');
	return last && name_take(last + 1, name, size);
}

/* NAMESPACE/POD of the pod with that uid. False: none, or it is longer than size. */
static bool kubelet_pod_name(const char *proc_root, const char *uid, char *name, size_t size)
{
	char end[NAME_MAX + 1], entry[NAME_MAX + 1];
	char *between;

	if ((size_t)snprintf(end, sizeof(end), "_%s", uid) >= sizeof(end) ||
	    !entry_find(proc_root, "/var/log/pods", end, entry))
		return false;
	between = strchr(entry, '_');
	if (!between)
		return false;
	*between = '/';
	return name_take(entry, name, size);
}

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
	for (uint32_t i = 0; !name && i < FILE_ROWS; i++)
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
