/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads `objdump -d --wide` and compares the length of each instruction with tsnap's. Ends with 1
 * if some differ, and prints them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/x86_return.h"

/* "  401143:	48 31 ed             	xor    %rbp,%rbp" */
static size_t bytes_take(const char *line, uint8_t *bytes)
{
	const char *at = strchr(line, '\t');
	size_t count = 0;

	for (at = at ? at + 1 : ""; isxdigit((unsigned char)at[0]) && count < X86_BYTES_MAX;
	     at += 3)
		bytes[count++] = (uint8_t)strtoul(at, NULL, 16);
	return count;
}

int main(void)
{
	long count = 0, refused = 0, wrong = 0;
	struct x86_instruction instruction;
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		uint8_t bytes[2 * X86_BYTES_MAX] = {0};
		size_t length = bytes_take(line, bytes);

		/* fwait is an instruction of its own */
		if (!length || bytes[0] == 0x9b || strstr(line, "(bad)"))
			continue;
		count++;
		if (!x86_instruction_read(bytes, sizeof(bytes), &instruction)) {
			refused++;
		} else if (instruction.bytes != length) {
			wrong++;
			printf("%d bytes: %s", instruction.bytes, line);
		}
	}
	printf("%ld instructions, %ld refused, %ld wrong\n", count, refused, wrong);
	return count < 1000 || wrong || refused > count / 100;
}
