/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit system calls on a 64-bit kernel: their numbers and registers differ. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

#define READ_32 3 /* number of read(2) on i386 and on ARM */

static void ready_compat(pid_t tid, pid_t pid, int fd)
{
	char link[64], file[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, fd);
	n = readlink(link, file, sizeof(file) - 1);
	file[n > 0 ? n : 0] = 0;
	await_state(pid, tid, "S", READ_32);
	ready_begin(tid, pid);
	ready_call('S', "read", READ_32);
	line_add("fd", "%d", fd);
	line_add("file", "%s", file);
	line_end();
	hold();
}

#ifdef __x86_64__
static char *low_memory; /* int $0x80 cuts pointers to 32 bits */

static long int80_read(int fd, char *to, long size)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"((long)READ_32), "b"((long)fd), "c"(to), "d"(size)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static void int80_thread(void *fd)
{
	for (;;)
		int80_read(*(int *)fd, low_memory, 512);
}

static bool int80_works(void)
{
	int fds[2], status = -1;
	pid_t pid = fork();

	if (!pid) {
		make_pipe(fds);
		close(fds[1]);
		_exit(int80_read(fds[0], low_memory, 1) ? 1 : 0);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

static void int80_run(void)
{
	struct subject subject;
	int fds[2];

	low_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low_memory == MAP_FAILED)
		die("mmap");
	if (!int80_works())
		unready("this kernel takes no 32-bit system calls");
	make_pipe(fds);
	subject_start(&subject, "int80", int80_thread, &fds[0]);
	ready_compat(subject.tid, getpid(), fds[0]);
}

#else
static void int80_run(void)
{
	unready("an x86-64 matter");
}
#endif

/* Runs a 32-bit program, built without a C library; it reads its standard input. */
static void compat32_run(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 4);
	int fds[2], status;
	pid_t pid;

	if (n < 0)
		die("readlink");
	strcpy(path + n, "32");
	if (access(path, X_OK))
		unready("the compiler could not build the 32-bit program");
	make_pipe(fds);
	pid = child_fork();
	if (!pid) {
		dup2(fds[0], STDIN_FILENO);
		execl(path, "workload32", (char *)NULL);
		_exit(EXIT_UNREADY);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		char exe[4096], link[64];

		snprintf(link, sizeof(link), "/proc/%d/exe", pid);
		n = readlink(link, exe, sizeof(exe) - 1);
		exe[n > 0 ? n : 0] = 0;
		if (!strcmp(exe, path))
			return ready_compat(pid, pid, STDIN_FILENO);
		sleep_ns(1000000);
	}
	unready("this kernel runs no 32-bit programs");
}

const struct workload compat_workloads[] = {
	{"int80", "", "a 64-bit thread blocked in a 32-bit read", int80_run},
	{"compat32", "", "a 32-bit process blocked in read", compat32_run},
	{0},
};
