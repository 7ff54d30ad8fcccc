/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of block devices by device number, as in /proc/partitions, and what is below them. */
#ifndef TSNAP_PROC_DEVICES_H
#define TSNAP_PROC_DEVICES_H

#include <stdint.h>

#define DEVICES_MAX 1024
#define DEVICES_RECHECK_NS 1000000000ll /* a number may be given to another device */
#define DEVICE_LINKS "/sys/dev/block"

/* The device's name, interned. dev: major << 20 | minor, as in the kernel. A device that has gone
 * keeps its last name; a device without a known name is "7:0"; NULL if dev is 0, which is no
 * device. */
const char *device_name(uint32_t dev);
#define BLOCK_CLASS "/sys/class/block"
/* 1: the device of that name, or the disk that it is a part of, has rotating disks, as far as the
 * kernel knows; 0: it has none; ABSENT: not known. root: BLOCK_CLASS. */
int64_t device_rotates(const char *root, const char *name);
/* The device that another one passes its requests on to: of a loop device, the one that its file is
 * on (Linux 5.12); of a device that is mapped to others (dm, md, bcache), the only one. Interned.
 * NULL: none is known, as of a disk, or there are several. */
const char *device_below(const char *name);
/* Reads that below root (BLOCK_CLASS). */
const char *device_below_read(const char *root, const char *name);
/* Forgets all names. */
void devices_clear(void);

/* Reads the device's name from its link below root (DEVICE_LINKS); NULL: there is none. */
const char *device_link_read(const char *root, uint32_t dev);

#endif
