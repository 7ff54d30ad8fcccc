/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/config_file.h"
#include "base/file_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS " \t\r\n"

char *config_trim(char *words)
{
	size_t length;

	words += strspn(words, BLANKS);
	length = strlen(words);
	while (length && strchr(BLANKS, words[length - 1]))
		words[--length] = '\0';
	return words;
}

/* Says why a file is not read: its lines may name files to be written to, and a FIFO or a device
 * may have no end. */
static const char *refused_why(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return "not a regular file";
	if (!user_is_trusted(file->st_uid))
		return "the file belongs to another user";
	if (file->st_mode & S_IWOTH || (file->st_mode & S_IWGRP && file->st_gid != getegid()))
		return "other users may write to the file (chmod go-w)";
	return NULL;
}

/* 0 with *file, which is NULL if there is none; or -errno with e. */
static int file_open(FILE **file, const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err = 0;
	struct stat about = {0};
	const char *why;

	*file = NULL;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &about))
		err = errno;
	else if (S_ISDIR(about.st_mode))
		err = EISDIR;
	if (err)
		err = error_set(e, err, EXIT_FAILED, "%s: %s", path, strerror(err));
	else if ((why = refused_why(&about)))
		err = error_set(e, EINVAL, EXIT_USAGE, "%s: %s", path, why);
	else
		*file = fdopen(fd, "r");
	if (err && fd >= 0)
		close(fd);
	return err;
}

int config_file_read(const char *path, config_line_callback *take, void *to, struct error *e)
{
	struct error inner = {0};
	size_t capacity = 0, number = 0;
	char *line = NULL;
	FILE *file;
	int err = file_open(&file, path, e);

	if (!file)
		return err;
	while (!err && getline(&line, &capacity, file) >= 0) {
		char *words = config_trim(line);

		number++;
		if (*words && *words != '#')
			err = take(to, words, &inner);
	}
	if (!err && ferror(file))
		err = error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	else if (err)
		error_set(e, EINVAL, EXIT_USAGE, "%s: line %zu: %s", path, number, inner.line);
	error_done(&inner);
	free(line);
	fclose(file);
	return err;
}
