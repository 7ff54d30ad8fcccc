/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a recording, in the order in which they are read. */
#ifndef TSNAP_RECORDING_RECORDING_FILES_H
#define TSNAP_RECORDING_RECORDING_FILES_H

#include <stdbool.h>

#include "base/error.h"
#include "recording/part_name.h"
#include "recording/recording_part.h"

struct recording_file {
	char *path;		/* "-": standard input */
	bool is_part;		/* name is set: the file's name is one of tsnap's */
	struct part_name name;	/* kind, host and time, as in the file's name */
	bool streamed;		/* the file is a pipe, which can be read once */
	uint64_t device, inode; /* of a file that was named; 0: of a directory's */
};

/* A zeroed struct is empty. */
struct recording_files {
	struct recording_file *files;
	size_t count, capacity;
	size_t passed;	/* files that were left out because of their times */
	size_t strange; /* see struct part_list */
	size_t twice;	/* files that were named before */
};

/* Adds a directory's files, or a file. Files whose name has another time than the part are left
 * out. 0, or -errno with e. */
int recording_files_add(struct recording_files *files, const char *path,
			const struct recording_part *part, struct error *e);
/* Sorts the files. 0, or -EINVAL with e: they are of more than one host, or there are none. */
int recording_files_end(struct recording_files *files, const char *name, struct error *e);
/* True if there may be rows of that kind in the file. */
bool recording_file_has(const struct recording_file *file, enum record_kind kind);
/* Number of files of samples in directories that have no file of their scans beside them. */
size_t recording_files_scanless(const struct recording_files *files, enum record_kind samples,
				enum record_kind scans);
void recording_files_done(struct recording_files *files);

#endif
