/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers by their monitor. podman and CRI-O start conmon(8) for each container; it is
 * the parent of the container's first process, outside of it, and has the name among its arguments,
 * wherever the container is stored: by root or by a user, with any storage driver.
 */
#ifndef TSNAP_PROC_CONTAINER_MONITOR_H
#define TSNAP_PROC_CONTAINER_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the name of the container with that id, which process pid is in. False: no ancestor has the
 * name, or it is longer than size. */
bool container_monitor_name(const char *proc_root, int64_t pid, const char *id, char *name,
			    size_t size);

/* Finds the name in the monitor's arguments, each ended by a NUL. Pure. */
bool container_monitor_parse(const char *arguments, size_t length, const char *id, char *name,
			     size_t size);

#endif
