/* SPDX-License-Identifier: GPL-2.0-or-later */
/* strange NAME: sleeps with an invalid stack, for walks that must end: prints "ready TID" and runs
 * until standard input ends. Exit 77 if this kernel can't.
 *
 * nowhere: the stack pointer leads to unmapped memory; secret: to memory that no other process may
 * read; cycle: code without a table, whose frames are a cycle; jit: the same with a good frame, and
 * "ready TID ADDRESS" of the code; traced: the thread is stopped by its tracer.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNREADY 77
#define SECRET_BYTES 65536
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447 /* since 5.14 */
#endif

static char input;

static void ready(long tid, uint64_t code)
{
	printf("ready %ld %#llx\n", tid, (unsigned long long)code);
	fflush(stdout);
}

/* Calls read(0, &input, 1) with that stack pointer. */
static void sleep_on(uint64_t sp)
{
	long call = SYS_read;

	__asm__ volatile("movq %%rsp, %%r12\n\tmovq %[sp], %%rsp\n\tsyscall\n\tmovq %%r12, %%rsp"
			 : "+a"(call)
			 : [sp] "r"(sp), "D"(0l), "S"(&input), "d"(1l)
			 : "rcx", "r11", "r12", "memory");
}

static void nowhere(void)
{
	ready(syscall(SYS_gettid), 0);
	sleep_on(4096);
}

static void secret(void)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);
	char *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, SECRET_BYTES))
		memory = mmap(NULL, SECRET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		exit(UNREADY);
	memset(memory, 1, SECRET_BYTES);
	ready(syscall(SYS_gettid), 0);
	sleep_on((uintptr_t)memory + SECRET_BYTES / 2);
}

/* Calls code that is in no file, and only enters the kernel, with that frame pointer. */
static void sleep_in_made_code(uint64_t frame, const void *code)
{
	long call = SYS_read;

	__asm__ volatile("pushq %%rbp\n\tmovq %[frame], %%rbp\n\tcallq *%[code]\n\tpopq %%rbp"
			 : "+a"(call)
			 : [frame] "r"(frame), [code] "r"(code), "D"(0l), "S"(&input), "d"(1l)
			 : "rcx", "r11", "memory");
}

static unsigned char *code_make(void)
{
	/* push, syscall, nop, pop, ret: without the nop the thread would be at pop, where the stack
	 * shows the caller and not the frame pointer */
	static const unsigned char enter[] = {0x55, 0x0f, 0x05, 0x90, 0x5d, 0xc3};
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		exit(UNREADY);
	memcpy(code, enter, sizeof(enter));
	return code;
}

static void cycle(void)
{
	uint64_t frames[4];
	unsigned char *code = code_make();

	for (int i = 0; i < 4; i += 2) {
		frames[i] = (uintptr_t)&frames[(i + 2) % 4];
		frames[i + 1] = (uintptr_t)code + 3;
	}
	ready(syscall(SYS_gettid), 0);
	sleep_in_made_code((uintptr_t)frames, code);
}

static void jit(void)
{
	unsigned char *code = code_make();
	uint64_t frame[2] = {0, 0};

	ready(syscall(SYS_gettid), (uintptr_t)code);
	sleep_in_made_code((uintptr_t)frame, code);
}

static void traced(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGUSR1);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ready(child, 0);
	sleep_on((uint64_t)(uintptr_t)&child & ~15ull);
	kill(child, SIGKILL);
}

static const struct {
	const char *name;
	void (*run)(void);
} stacks[] = {{"nowhere", nowhere},
	      {"secret", secret},
	      {"cycle", cycle},
	      {"jit", jit},
	      {"traced", traced}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(stacks) / sizeof(stacks[0]); i++)
		if (!strcmp(argv[1], stacks[i].name))
			stacks[i].run();
	return argc > 1 ? 0 : 2;
}
