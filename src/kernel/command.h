/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other programs (tar, modprobe), run to their end without a shell. */
#ifndef TSNAP_KERNEL_COMMAND_H
#define TSNAP_KERNEL_COMMAND_H

/* Folders where distributions have them. Not the caller's PATH: that may be anybody's. */
#define COMMAND_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"

/* Runs argv (NULL at the end) and waits; found by COMMAND_PATH. It is killed when this
 * process dies. 0; -errno where it can't be run; -EIO where it failed, which it told itself. */
int command_run(const char *const *argv);

#endif
