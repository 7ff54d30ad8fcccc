/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/embedded.h"

#include <stddef.h>
#include <string.h>

const char *embedded_text(const char *name)
{
	for (const struct embedded_file *file = embedded_files; file->name; file++)
		if (!strcmp(strrchr(file->name, '/') + 1, name))
			return file->text;
	return NULL;
}
