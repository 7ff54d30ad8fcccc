/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "expect.h"

#include <stdarg.h>
#include <stdio.h>

static int passed, failed;

bool expect(bool right, const char *words, ...)
{
	va_list list;

	if (right) {
		passed++;
		return true;
	}
	failed++;
	va_start(list, words);
	printf("FAILED: ");
	vprintf(words, list);
	printf("\n");
	va_end(list);
	return false;
}

bool expect_sum(void)
{
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	fflush(NULL);
	return !failed;
}
