/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other programs (tar, modprobe), run to their end without a shell. */
#ifndef TSNAP_KERNEL_COMMAND_H
#define TSNAP_KERNEL_COMMAND_H

/* Runs argv (NULL at the end) and waits; found by PATH, /usr/sbin and /sbin. It is killed when this
 * process dies. 0; -errno where it can't be run; -EIO where it failed, which it told itself. */
int command_run(const char *const *argv);

#endif
