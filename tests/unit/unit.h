/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header that every unit test includes. */
#ifndef TSNAP_TESTS_UNIT_H
#define TSNAP_TESTS_UNIT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#endif
