/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files in which their runtimes keep them, without a request to any
 * daemon. */
#ifndef TSNAP_PROC_CONTAINERS_H
#define TSNAP_PROC_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "sample/cgroup_names.h"

/* Visits the strings of a JSON text with their keys, for files of which only a string or two is
 * wanted. Invalid JSON gives some strings or none, and does no harm. */

#define JSON_STRING_SIZE 256 /* longer strings are cut */
#define JSON_DEPTH_MAX 16    /* deeper strings are left out */

/* Callback for a string. depth: number of objects and arrays around it. key: the string's key or,
 * in an array, the array's key; "" if there is none. */
typedef void json_visit(void *to, int depth, const char *key, const char *string);

void json_strings_visit(const char *text, size_t length, json_visit *visit, void *to);

/* The files in which container runtimes keep names, and their parser. Users choose much of their
 * content, so a process without privileges reads them.
 */

/* Query for the name of container id in a file of a runtime. */
struct container_question {
	uint32_t row; /* of container_file_rows */
	char id[CONTAINER_ID_LENGTH + 1];
};

/* Fills name from the open file, which stays open. of: struct containers.of. False: the file does
 * not have the name. */
typedef bool container_file_reader(void *of, int fd, const struct container_question *question,
				   char name[JSON_STRING_SIZE]);

/* Reads the file in this process. of is not used. */
container_file_reader container_file_read;

/* Names of containers by their monitor. podman and CRI-O start conmon(8) for each container; it is
 * the parent of the container's first process, outside of it, and has the name among its arguments,
 * wherever the container is stored: by root or by a user, with any storage driver.
 */

/* Finds the name in the monitor's arguments, each ended by a NUL. Pure. */
bool container_monitor_parse(const char *arguments, size_t length, const char *id, char *name,
			     size_t size);

/* Names of containers and pods in file names that the kubelet of Kubernetes makes, whatever the
 * runtime (k8s.io/kubernetes, pkg/kubelet/kuberuntime: BuildPodLogsDirectory, legacy.go):
 *
 *   /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log
 *   /var/log/pods/NAMESPACE_POD_UID
 *
 * Names contain no underscore.
 */

#define CONTAINERS_MAX 4096
#define CONTAINERS_RECHECK_NS (60 * 1000000000ll) /* names can change: docker rename */
#define CONTAINERS_UNNAMED_NS (5 * 1000000000ll)  /* the container may still be being made */

struct containers {
	struct cache known;
	container_file_reader *read; /* container_file_read() unless the caller replaces it */
	void *of;		     /* first argument of read */
};

void containers_init(struct containers *containers);
/* The name of the container that a control group belongs to, interned; NULL: none, or not known.
 * pid: a process in it. proc_root: files are read as its process 1 sees them. */
const char *container_name(struct containers *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns);
/* Returns the number of containers, among those looked up lately, without a name because files of
 * process 1 may not be read (refused), or because none of the known files has it (not refused). */
size_t containers_unnamed(const struct containers *containers, bool refused);
/* NAMESPACE/NAME of the control group's Kubernetes pod, interned; NULL: none, or not known. */
const char *pod_name(struct containers *containers, const char *proc_root, const char *cgroup,
		     int64_t now_ns);

#endif
