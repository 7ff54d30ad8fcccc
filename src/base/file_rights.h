/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may read and write files. */
#ifndef TSNAP_BASE_FILE_RIGHTS_H
#define TSNAP_BASE_FILE_RIGHTS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Group and permissions of a file. */
struct file_rights {
	gid_t group;
	mode_t mode;
};

/* True for root, the user who runs tsnap, and the user who called sudo: none of them needs tsnap in
 * order to do what tsnap can be made to do. */
bool user_is_trusted(uid_t user);
/* True if only trusted users may write to the file, or change what is in the directory. Any right
 * of a group, which is also how ACLs show, is too much. */
bool only_trusted_write(const struct stat *file);

/* The mode of a new file or directory: less the umask. */
mode_t mode_masked(mode_t mode);
/* Sets both by descriptor, and removes ACLs: a directory may have given its group (setgid) or its
 * default ACL to what was made in it. If the group can't be set, the file's group has no rights. A
 * file system without permissions keeps its own. 0, or -errno. */
int file_rights_set(int fd, const struct file_rights *rights);
/* True if the file gives nobody more than file_rights_set() would. */
bool file_rights_are(int fd, const struct file_rights *rights);

#endif
