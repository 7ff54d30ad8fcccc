/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LINUX_VERSION_CODE of the running kernel. Before 5.0 a kprobe program must carry exactly this
 * number, and uname reports another one where a distribution has a numbering of its own: 4.9.0-19
 * of Debian is 4.9.320.
 */
#ifndef TSNAP_KERNEL_VERSION_CODE_H
#define TSNAP_KERNEL_VERSION_CODE_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_CODE(major, minor) ((uint32_t)(major) << 16 | (minor) << 8)

/* Returns the code from the vDSO, else Ubuntu's /proc/version_signature, else release (uname's). 0:
 * not known. */
uint32_t version_code_read(const char *release);

/* Version code from a vDSO's image, from version_signature ("Ubuntu 4.15.0-20.21-generic 4.15.17"),
 * from a release ("4.9.0-19-amd64"). 0: it does not say. */
uint32_t version_code_of_vdso(const void *image, size_t size);
uint32_t version_code_of_signature(const char *text);
uint32_t version_code_of_release(const char *release);

#endif
