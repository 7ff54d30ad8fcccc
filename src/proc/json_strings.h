/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The strings of a JSON text with their keys, for files of which a string or two is wanted. Text
 * that is no JSON gives some strings or none, and no harm. */
#ifndef TSNAP_PROC_JSON_STRINGS_H
#define TSNAP_PROC_JSON_STRINGS_H

#include <stddef.h>

#define JSON_STRING_SIZE 256 /* longer ones are cut */
#define JSON_DEPTH_MAX 16    /* deeper ones are left out */

/* depth: objects and arrays around the string. key: of the object that it is in or, in an array, of
 * the array; "" where there is none. */
typedef void json_visit(void *to, int depth, const char *key, const char *string);

void json_strings_visit(const char *text, size_t length, json_visit *visit, void *to);

#endif
