/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A root-only temporary directory for the compile child: tsnap.PID.XXXXXX below /run, or /tmp. The
 * parent removes it whatever happened to the child; what a killed parent left is removed by the
 * next start.
 */
#ifndef TSNAP_KERNEL_WORK_DIR_H
#define TSNAP_KERNEL_WORK_DIR_H

#include "base/error.h"

#define WORK_DIR_PATH_SIZE 96

/* Makes one of mode 0700 (after removing those of dead processes). 0 or -errno with e filled. */
int work_dir_make(char path[WORK_DIR_PATH_SIZE], struct error *e);
/* Removes it with all that is in it; an empty path is nothing. */
void work_dir_remove(const char *path);
/* Writes path/name (folders made as needed). 0 or -errno with e filled. */
int work_dir_write(const char *path, const char *name, const char *text, struct error *e);

#endif
