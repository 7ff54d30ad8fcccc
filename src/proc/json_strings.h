/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Visits the strings of a JSON text with their keys, for files of which only a string or two is
 * wanted. Invalid JSON gives some strings or none, and does no harm. */
#ifndef TSNAP_PROC_JSON_STRINGS_H
#define TSNAP_PROC_JSON_STRINGS_H

#include <stddef.h>

#define JSON_STRING_SIZE 256 /* longer strings are cut */
#define JSON_DEPTH_MAX 16    /* deeper strings are left out */

/* Callback for a string. depth: number of objects and arrays around it. key: the string's key or,
 * in an array, the array's key; "" if there is none. */
typedef void json_visit(void *to, int depth, const char *key, const char *string);

void json_strings_visit(const char *text, size_t length, json_visit *visit, void *to);

#endif
