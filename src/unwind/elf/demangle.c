/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/demangle.h"

#include <setjmp.h>
#include <string.h>

#ifdef TSNAP_HAS_DEMANGLE
#include <libiberty/demangle.h>

#define NAME_LENGTH_MAX 4096

struct output {
	char *text;
	size_t size, length;
	jmp_buf full;
};

/* A short name may stand for one of any length, for it can refer to parts of itself, so that it
 * must be stopped when there is enough. The functions with a callback hold no memory. */
static void output_take(const char *piece, size_t length, void *to)
{
	struct output *output = to;
	size_t left = output->size - 1 - output->length;

	memcpy(output->text + output->length, piece, length < left ? length : left);
	output->length += length < left ? length : left;
	output->text[output->length] = '\0';
	if (length > left)
		longjmp(output->full, 1);
}

bool name_demangle(const char *name, char *text, size_t size)
{
	struct output output = {.text = text, .size = size};
	bool cplusplus = !strncmp(name, "_Z", 2);

	if ((!cplusplus && strncmp(name, "_R", 2) != 0) || strlen(name) > NAME_LENGTH_MAX)
		return false;
	*text = '\0';
	if (setjmp(output.full))
		return true;
	/* Rust's older names are C++ names with a hash */
	if (rust_demangle_callback(name, 0, output_take, &output))
		return true;
	output.length = 0;
	return cplusplus && cplus_demangle_v3_callback(name, DMGL_ANSI, output_take, &output);
}
#else
bool name_demangle(const char *name, char *text, size_t size)
{
	(void)name;
	(void)text;
	(void)size;
	return false;
}
#endif
