/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library for LD_PRELOAD: the MALLOC_FAILS-th call of malloc, calloc or realloc of a process has
 * no memory, if the process has the name MALLOC_FAILS_IN by then. A forked one counts on from where
 * its parent was.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define NAME_SIZE 16

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static atomic_long calls;
static long failing;
static char failing_name[NAME_SIZE];

__attribute__((constructor)) static void number_read(void)
{
	const char *number = getenv("MALLOC_FAILS"), *name = getenv("MALLOC_FAILS_IN");

	if (!number || !name)
		return;
	strncpy(failing_name, name, NAME_SIZE - 1);
	calls = 0;
	failing = atol(number);
}

static int fails(void)
{
	char name[NAME_SIZE] = "";

	if (!failing || ++calls != failing)
		return 0;
	prctl(PR_GET_NAME, name);
	if (strcmp(name, failing_name))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(memory, bytes);
}
