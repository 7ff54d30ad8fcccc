/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A root-only temporary directory for the compile child: tsnap.PID.XXXXXX below /run, or /tmp. Its
 * owner, and processes that were forked meanwhile, hold a lock on it. The parent removes it
 * whatever happened to the child; what a killed parent left has no lock and is removed by the next
 * start, whichever pid namespace either is in.
 */
#ifndef TSNAP_KERNEL_WORK_DIR_H
#define TSNAP_KERNEL_WORK_DIR_H

#include "base/error.h"

#define WORK_DIR_PATH_SIZE 96

struct work_dir {
	char path[WORK_DIR_PATH_SIZE]; /* "": none */
	int lock;		       /* descriptor of the locked directory */
};

/* Makes a directory of mode 0700 (after removing those without an owner). 0 or -errno with e
 * filled. */
int work_dir_make(struct work_dir *dir, struct error *e);
/* For a process that has a work directory to itself, where work_dir_make() found no place: mounts a
 * file system in memory that no other process sees, and that ends with the process. Returns its
 * path, or NULL with errno set: without CAP_SYS_ADMIN. */
const char *work_dir_mount(void);
/* Removes a directory with all that is in it; does nothing for one without a path. */
void work_dir_remove(struct work_dir *dir);
/* Writes path/name (folders made as needed). 0 or -errno with e filled. */
int work_dir_write(const char *path, const char *name, const char *text, struct error *e);

#endif
