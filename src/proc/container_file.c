/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/container_file.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4u << 20)

#define STORAGE(driver)                                                                         \
	{"/var/lib/containers/storage/" driver "-containers/containers.json", NULL, 3, "names", \
	 "id"},                                                                                 \
	{                                                                                       \
		"/var/lib/containers/storage/" driver "-containers/volatile-containers.json",   \
			NULL, 3, "names", "id"                                                  \
	}

/* Rows of runtimes. In Kubernetes a container has its name in the pod. */
const struct container_file_row container_file_rows[] = {
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
const size_t container_file_row_count =
	sizeof(container_file_rows) / sizeof(container_file_rows[0]);

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
	if (question->row >= container_file_row_count ||
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
