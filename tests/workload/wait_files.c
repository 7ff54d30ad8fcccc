/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for pipes and for other kinds of descriptors. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include "wait.h"

static void pipe_reader(struct waiting *w)
{
	int fds[2];

	make_pipe(fds);
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d " OTHER, w->pid);
	w->filetype = "pipe";
}

static void pipe_writer(struct waiting *w)
{
	static const char bytes[4096];
	int fds[2];

	make_pipe(fds);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	while (write(fds[1], bytes, sizeof(bytes)) > 0)
		;
	fcntl(fds[1], F_SETFL, 0);
	w->pid = other_start(fds[1]);
	close(fds[0]);
	read_of(w, fds[1]);
	w->nr = SYS_write;
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe to %d " OTHER, w->pid);
}

/* Moves a pipe's data into one that is full. */
static void splice_full(struct waiting *w)
{
	int fds[2];

	pipe_writer(w);
	make_pipe(fds);
	if (write(fds[1], "x", 1) != 1)
		die("write");
	w->nr = SYS_splice;
	w->arg[0] = fds[0];
	w->arg[1] = 0;
	w->arg[2] = w->fd;
	w->arg[3] = 0;
	w->arg[4] = 1;
}

/* Touches a page that userfaultfd is to give, in a read. */
static void userfault(struct waiting *w)
{
	long size = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	void *page = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		unready("no userfaultfd here (4.3)");
	range.range.start = (uintptr_t)page;
	range.range.len = (__u64)size;
	if (page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &range))
		die("register a page");
	read_of(w, open("/dev/zero", O_RDONLY | O_CLOEXEC));
	w->arg[1] = (long)page;
	w->arg[2] = 1;
	strcpy(w->waits_on, "page fault (userfaultfd)");
}

/* Opens a terminal; *master: its other side. */
static int terminal_open(int *master)
{
	int slave;

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || grantpt(*master) || unlockpt(*master))
		unready("no pseudo terminals here");
	slave = open(ptsname(*master), O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		die(ptsname(*master));
	return slave;
}

static void write_to_terminal(struct waiting *w, int slave)
{
	static char page[4096];

	w->nr = SYS_write;
	w->fd = slave;
	w->arg[0] = slave;
	w->arg[1] = (long)page;
	w->arg[2] = sizeof(page);
	w->filetype = "char";
}

/* Writes to a terminal that nobody reads. */
static void terminal_full(struct waiting *w)
{
	int master, slave = terminal_open(&master);

	w->pid = other_start(slave);
	write_to_terminal(w, slave);
	snprintf(w->waits_on, sizeof(w->waits_on), "%s to %d " OTHER, ptsname(master), w->pid);
	close(master);
}

/* Writes to a terminal whose output is stopped, and that another process reads. */
static void terminal_stopped(struct waiting *w)
{
	int master, slave = terminal_open(&master);
	pid_t reader = child_fork();
	char bytes[64];

	if (!reader) {
		close(slave);
		while (read(master, bytes, sizeof(bytes)) > 0)
			;
		stay();
	}
	if (tcflow(slave, TCOOFF))
		die("tcflow");
	write_to_terminal(w, slave);
	snprintf(w->waits_on, sizeof(w->waits_on), "%s stopped (Ctrl-S)", ptsname(master));
	close(master);
}

static void pipe_own(struct waiting *w)
{
	int fds[2];

	make_pipe(fds);
	w->pid = getpid();
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d workload", w->pid);
}

/* Waits for a pipe whose other process has very many descriptors. */
static void pipe_many(struct waiting *w)
{
	int fds[2], nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	limits_raise();
	make_pipe(fds);
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		close(fds[0]);
		for (int i = 0; i < 10000; i++)
			if (dup(nothing) < 0)
				_exit(1);
		/* after all of them */
		if (dup(fds[1]) < 0 || close(fds[1]))
			_exit(1);
		stay();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d " OTHER, w->pid);
}

static void fifo_make(char *path, size_t size)
{
	snprintf(path, size, "%s/tsnap-test-%d.fifo", option_text("dir", "/tmp"), getpid());
	if (mkfifo(path, 0600))
		die(path);
}

/* Waits for another process to open the other end. */
static void fifo_open(struct waiting *w)
{
	fifo_make(w->file, sizeof(w->file));
	w->nr = SYS_openat;
	w->arg[0] = AT_FDCWD;
	w->arg[1] = (long)w->file;
	w->arg[2] = O_RDONLY;
	strcpy(w->waits_on, w->file);
}

/* Waits for another process to open the other end of a path that is relative to a descriptor. */
static void fifo_open_relative(struct waiting *w)
{
	static char name[64];

	fifo_make(w->file, sizeof(w->file));
	strcpy(name, strrchr(w->file, '/') + 1);
	w->nr = SYS_openat;
	w->fd = open(option_text("dir", "/tmp"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->arg[0] = w->fd;
	w->arg[1] = (long)name;
	w->arg[2] = O_RDONLY;
	strcpy(w->waits_on, w->file);
}

static void fifo_reader(struct waiting *w)
{
	char path[128];
	int fds[2];

	fifo_make(path, sizeof(path));
	fds[1] = open(path, O_RDWR | O_CLOEXEC);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "%s from %d " OTHER, path, w->pid);
	w->filetype = "fifo";
}

static void eventfd_reader(struct waiting *w)
{
	read_of(w, eventfd(0, EFD_CLOEXEC));
	strcpy(w->waits_on, "eventfd count 0");
	w->filetype = "eventfd";
}

/* Nobody takes what has been written. */
static void eventfd_writer(struct waiting *w)
{
	static uint64_t most = UINT64_MAX - 1;

	read_of(w, eventfd(0, EFD_CLOEXEC));
	if (write(w->fd, &most, sizeof(most)) != sizeof(most))
		die("write");
	w->nr = SYS_write;
	w->arg[1] = (long)&most;
	w->arg[2] = sizeof(most);
	strcpy(w->waits_on, "eventfd count 18446744073709551614");
}

static void inotify_reader(struct waiting *w)
{
	read_of(w, inotify_init1(IN_CLOEXEC));
	strcpy(w->waits_on, "inotify");
	w->filetype = "inotify";
}

static void timerfd_reader(struct waiting *w)
{
	struct itimerspec when = {.it_value.tv_sec = 1000000};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	timerfd_settime(fd, 0, &when, NULL);
	read_of(w, fd);
	strcpy(w->waits_on, "timerfd 9999*s left");
	w->filetype = "timerfd";
}

static void file_lock(struct waiting *w)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/tsnap-test-%d.lock", option_text("dir", "/tmp"), getpid());
	w->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		if (flock(open(path, O_RDWR), LOCK_EX))
			die("flock");
		stay();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	w->nr = SYS_flock;
	w->arg[0] = w->fd;
	w->arg[1] = LOCK_EX;
	snprintf(w->waits_on, sizeof(w->waits_on), "lock on %s held by %d " OTHER, path, w->pid);
}

const struct wait_row file_waits[] = {
	{"pipe_reader", pipe_reader},
	{"pipe_writer", pipe_writer},
	{"pipe_own", pipe_own},
	{"pipe_many", pipe_many},
	{"fifo_open", fifo_open},
	{"fifo_open_relative", fifo_open_relative},
	{"fifo_reader", fifo_reader},
	{"eventfd", eventfd_reader},
	{"eventfd_writer", eventfd_writer},
	{"inotify", inotify_reader},
	{"timerfd", timerfd_reader},
	{"file_lock", file_lock},
	{"splice_full", splice_full},
	{"userfault", userfault},
	{"terminal_full", terminal_full},
	{"terminal_stopped", terminal_stopped},
	{0},
};
