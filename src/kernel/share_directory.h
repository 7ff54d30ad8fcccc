/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private directory of a bpf file system in which samplers share: /sys/fs/bpf/tsnap-NAME, mode
 * 0700. Its users are known by their locks, which go with their process however it ends:
 *
 *   its starter     holds it alone (LOCK_EX) until all is in it
 *   each sampler    holds it with the others (LOCK_SH) as long as it runs; if it could hold it
 *                   alone at first, then it had been left
 *   a leaving one   tries to hold it alone: if it can, it was the last, and removes it
 *
 * So a directory that nobody holds is what a killed tsnap left. Nothing is ever mounted here.
 */
#ifndef TSNAP_KERNEL_SHARE_DIRECTORY_H
#define TSNAP_KERNEL_SHARE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SHARE_NAME_MAX 32

struct share_directory {
	char name[SHARE_NAME_MAX + 1]; /* "": none, and the rest has no meaning */
	int root, fd;  /* descriptors of the file system, and of the directory in it */
	bool was_left; /* nobody held it when it was joined */
};

/* True for a name of letters, digits, - and _: the kernel keeps names with dots for itself. */
bool share_name_valid(const char *name);

/* Makes the directory and holds it alone. What a killed tsnap left under that name is removed
 * first, and *cleared set. -errno with e: somebody is in it, it is not ours, or there is no such
 * file system (exit code 77). */
int share_directory_make(struct share_directory *directory, const char *name, bool *cleared,
			 struct error *e);
/* Changes from holding the directory alone to holding it with others. */
int share_directory_open(struct share_directory *directory, struct error *e);
/* Holds a directory that is there, together with others; waits for one that is being made. -EINTR
 * after a signal. */
int share_directory_join(struct share_directory *directory, const char *name, struct error *e);
/* Leaves the directory, and removes it unless others hold it, or it was left before and is of no
 * use here: then it stays as it was. */
void share_directory_leave(struct share_directory *directory, bool useless);

/* Calls each for every share of this user, with the pids of its holders ("" for none). */
void share_directories_walk(void (*each)(void *to, const char *name, const char *holders),
			    void *to);

#endif
