/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/stack_files.h"

#include <string.h>

void stack_files_next(struct stack_files *files)
{
	size_t length = files->at ? strcspn(files->at, ";") : 0, path_length = length;

	while (path_length && files->at[path_length - 1] != '@')
		path_length--;
	if (path_length) {
		files->file = files->at;
		files->length = length;
		files->path_length = path_length - 1;
	} else if (length || !files->at) {
		files->file = NULL;
	}
	if (files->at)
		files->at = files->at[length] ? files->at + length + 1 : NULL;
}
