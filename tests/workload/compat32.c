/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A 32-bit program that blocks in read of its standard input. Freestanding: a compiler that knows
 * the 32-bit mode is enough, no C library is needed. The two calls have the same numbers on i386
 * and ARM. */
void _start(void);

static long call3(long nr, long a, long b, long c)
{
#ifdef __arm__
	register long number __asm__("r7") = nr;
	register long first __asm__("r0") = a;
	register long second __asm__("r1") = b;
	register long third __asm__("r2") = c;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third) : "memory");
	return first;
#else
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
#endif
}

void _start(void)
{
	char c;

	while (call3(3 /* read */, 0, (long)&c, 1) > 0)
		;
	call3(1 /* exit */, 0, 0, 0);
}
