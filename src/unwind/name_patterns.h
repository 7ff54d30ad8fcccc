/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of function names, as patterns of fnmatch(3) that begin with a letter of the name. */
#ifndef TSNAP_UNWIND_NAME_PATTERNS_H
#define TSNAP_UNWIND_NAME_PATTERNS_H

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>

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
