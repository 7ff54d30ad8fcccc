/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the errors that system calls fail with. */
#ifndef TSNAP_PROC_ERROR_NAMES_H
#define TSNAP_PROC_ERROR_NAMES_H

#include <stdint.h>

/* The error's name, "ENOENT"; the number as text if it has no known name; NULL if it is 0.
 * Interned. */
const char *error_name(uint32_t number);

#endif
