/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions, which others have chosen. */
#ifndef TSNAP_UNWIND_FUNCTION_NAME_H
#define TSNAP_UNWIND_FUNCTION_NAME_H

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>

#define FUNCTION_NAME_SIZE 512

/* Replaces ; in a name, which the folded form puts between frames, and control characters. */
static inline void function_name_clean(char *name)
{
	for (; *name; name++) {
		if (*name == ';')
			*name = ':';
		else if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
	}
}

/* True if one of the patterns of fnmatch(3), which begin with a letter of the name, fits. */
static inline bool name_among(const char *name, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++) /* fnmatch() is slow */
		if (patterns[i][0] == name[0] && !fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

#define NAME_AMONG(name, patterns) \
	name_among(name, patterns, sizeof(patterns) / sizeof((patterns)[0]))

#endif
