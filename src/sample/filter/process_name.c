/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter/process_name.h"
#include "sample/filter/expression.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DELETED " (deleted)" /* what the kernel adds to the path of a file that is gone */

static bool program_matches(const char *pattern, const char *exe)
{
	const char *slash = strrchr(exe, '/'), *file = slash ? slash + 1 : exe;
	size_t length = strlen(file);
	char name[NAME_MAX + 1];

	if (length > strlen(DELETED) && !strcmp(file + length - strlen(DELETED), DELETED))
		length -= strlen(DELETED);
	if (length >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)length, file);
	return pattern_matches(pattern, name);
}

bool process_name_matches(const char *pattern, const char *comm, const char *exe,
			  const char *script)
{
	return (comm && pattern_matches(pattern, comm)) || (exe && program_matches(pattern, exe)) ||
	       (script && pattern_matches(pattern, script));
}
