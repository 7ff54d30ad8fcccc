/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files in which container runtimes keep names, and their parser. Users choose much of their
 * content, so a process without privileges reads them.
 */
#ifndef TSNAP_PROC_CONTAINER_FILE_H
#define TSNAP_PROC_CONTAINER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc/json_strings.h"
#include "sample/cgroup_names.h"

/* Position of a container's name in a runtime's files: a file "before ID after" for each container,
 * or one file for all containers. */
struct container_file_row {
	const char *before, *after; /* after is NULL: one file for all, with ids under id_key */
	int depth;
	const char *key, *id_key;
};

extern const struct container_file_row container_file_rows[];
extern const size_t container_file_row_count;

/* Query for the name of container id in a file with the format of a row of container_file_rows. */
struct container_question {
	uint32_t row;
	char id[CONTAINER_ID_LENGTH + 1];
};

/* Fills name from the open file, which stays open. of: struct containers.of. False: the file does
 * not have the name. */
typedef bool container_file_reader(void *of, int fd, const struct container_question *question,
				   char name[JSON_STRING_SIZE]);

/* Reads the file in this process. of is not used. */
container_file_reader container_file_read;

#endif
