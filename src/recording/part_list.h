/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorded files of a directory. */
#ifndef TSNAP_RECORDING_PART_LIST_H
#define TSNAP_RECORDING_PART_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/part_name.h"

struct part_file {
	struct part_name name;
	uint64_t bytes;
	uid_t user;
};

/* A zeroed list is empty. */
struct part_list {
	struct part_file *files; /* files in the order of part_name_compare() */
	size_t count, capacity;
	size_t strange; /* links, directories and the like with names of recorded files */
};

/* Reads the directory; the caller keeps the descriptor. 0 or -errno. */
int part_list_read(struct part_list *list, int directory);
void part_list_done(struct part_list *list);

#endif
