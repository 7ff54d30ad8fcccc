/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/kernel_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES 16384

void kernel_stack_parse(struct kernel_stack *stack, const char *text)
{
	stack->count = 0;
	while (*text && stack->count < KERNEL_FRAMES_MAX) {
		size_t line = strcspn(text, "\n"), name, length;

		/* an address, 0 to those who may not know it; 0xffffffffffffffff ended the list
		 * until 5.1 */
		name = strcspn(text, "]");
		if (name < line && text[name + 1] == ' ') {
			name += 2;
			length = strcspn(text + name, "+\n");
			if (length >= KERNEL_NAME_SIZE)
				length = KERNEL_NAME_SIZE - 1;
			if (length && text[name] != '0') {
				memcpy(stack->names[stack->count], text + name, length);
				stack->names[stack->count++][length] = '\0';
			}
		}
		text += line + (text[line] == '\n');
	}
}

int kernel_stack_read(struct kernel_stack *stack, const char *proc_root, int64_t tid)
{
	char path[PATH_MAX], text[STACK_BYTES];
	ssize_t length;
	int fd, err;

	snprintf(path, sizeof(path), "%s/%lld/stack", proc_root, (long long)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, text, sizeof(text) - 1);
	err = -errno;
	close(fd);
	if (length < 0)
		return err;
	text[length] = '\0';
	kernel_stack_parse(stack, text);
	return 0;
}
