/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A 32-bit program that blocks in read of its standard input. Freestanding: a compiler that can
 * -m32 is enough, no 32-bit C library is needed. */
void _start(void);

static long call3(long nr, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

void _start(void)
{
	char c;

	while (call3(3 /* read */, 0, (long)&c, 1) > 0)
		;
	call3(1 /* exit */, 0, 0, 0);
}
