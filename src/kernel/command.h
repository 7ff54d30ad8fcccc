/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other programs (tar, modprobe), run to their end without a shell. */
#ifndef TSNAP_KERNEL_COMMAND_H
#define TSNAP_KERNEL_COMMAND_H

/* Folders where distributions have these programs. The caller's PATH is not used: it may be
 * anybody's. */
#define COMMAND_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"

/* Runs argv (NULL at the end), found by COMMAND_PATH, and waits. The program is killed when this
 * process dies. 0; -errno where it can't be run; -EIO where it failed, with its own message. */
int command_run(const char *const *argv);

#endif
