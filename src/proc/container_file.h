/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files in which runtimes of containers keep names, and what they say: users choose much of
 * that, so that a process without privileges reads it.
 */
#ifndef TSNAP_PROC_CONTAINER_FILE_H
#define TSNAP_PROC_CONTAINER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc/json_strings.h"
#include "sample/cgroup_names.h"

/* Place of a container's name in a runtime's files: a file before ID/after, or one file of all
 * containers. */
struct container_file_row {
	const char *before, *after; /* after: NULL: one file; ids are under id_key */
	int depth;
	const char *key, *id_key;
};

extern const struct container_file_row container_file_rows[];
extern const size_t container_file_row_count;

/* A question to a file: the name of container id, in the format of a row of container_file_rows. */
struct container_question {
	uint32_t row;
	char id[CONTAINER_ID_LENGTH + 1];
};

/* Fills name from the open file, which stays open. of: struct containers.of. False: the file does
 * not tell. */
typedef bool container_file_reader(void *of, int fd, const struct container_question *question,
				   char name[JSON_STRING_SIZE]);

/* Reads the file in this process. of: any. */
container_file_reader container_file_read;

#endif
