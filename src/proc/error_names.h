/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what system calls fail with. */
#ifndef TSNAP_PROC_ERROR_NAMES_H
#define TSNAP_PROC_ERROR_NAMES_H

#include <stdint.h>

/* "ENOENT"; the number as text where it has no name here; NULL of 0. Interned. */
const char *error_name(uint32_t number);

#endif
