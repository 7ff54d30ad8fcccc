/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for storage and for memory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workload.h"

#define PAGE_BYTES 4096

struct syncer {
	char path[4096];
	int fd;
	int64_t start_ns, sync_ns;
	long rounds;
	volatile bool stop;
};

static void sync_loop(void *data)
{
	static const char block[PAGE_BYTES] = "tsnap";
	struct syncer *syncer = data;

	syncer->start_ns = clock_ns(CLOCK_MONOTONIC);
	while (!syncer->stop) {
		int64_t before_ns;

		if (pwrite(syncer->fd, block, sizeof(block), (syncer->rounds % 64) * PAGE_BYTES) <
		    0)
			die("write");
		before_ns = clock_ns(CLOCK_MONOTONIC);
		if (fsync(syncer->fd))
			die("fsync");
		syncer->sync_ns += clock_ns(CLOCK_MONOTONIC) - before_ns;
		syncer->rounds++;
	}
}

static void fsync_run(void)
{
	static struct syncer syncer;
	struct subject subject;

	snprintf(syncer.path, sizeof(syncer.path), "%s/tsnap-test-%d",
		 option_text("dir", "/var/tmp"), getpid());
	syncer.fd = open(syncer.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (syncer.fd < 0)
		die(syncer.path);
	unlink(syncer.path); /* unlinked, so that it is removed however this process ends */
	subject_start(&subject, "fsync", sync_loop, &syncer);
	ready_begin(subject.tid, getpid());
	line_add("syscall", "fsync");
	line_add("fd", "%d", syncer.fd);
	line_add("file", "%s (deleted)", syncer.path);
	line_end();
	hold();
	syncer.stop = true;
	pthread_join(subject.thread, NULL);
	line_begin("done");
	line_add("ns", "%lld", (long long)(clock_ns(CLOCK_MONOTONIC) - syncer.start_ns));
	line_add("sync_ns", "%lld", (long long)syncer.sync_ns);
	line_add("rounds", "%ld", syncer.rounds);
	line_end();
}

/* Returns a page that userfaultfd(2) never fills. */
static char *missing_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	char *page =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		unready("no userfaultfd here");
	if (page == MAP_FAILED || ioctl((int)fd, UFFDIO_API, &api))
		die("userfaultfd");
	range.range.start = (unsigned long)page;
	range.range.len = PAGE_BYTES;
	if (ioctl((int)fd, UFFDIO_REGISTER, &range))
		die("userfaultfd");
	return page;
}

static void touch(void *page)
{
	*(volatile char *)page = 1;
}

/* Sleeps in user mode: no system call, yet not runnable. */
static void page_fault_run(void)
{
	struct subject subject;

	subject_start(&subject, "page_fault", touch, missing_page());
	await_state(getpid(), subject.tid, "S", NR_NONE);
	ready_begin(subject.tid, getpid());
	ready_call('S', "", NR_NONE);
	line_end();
	hold();
}

/* Reads a page by process_vm_readv: a fault that the kernel takes on its behalf waits in D
 * (TASK_KILLABLE; before 5.8 TASK_UNINTERRUPTIBLE). */
static void read_remote(void *page)
{
	static char to[16];
	struct iovec local = {to, sizeof(to)}, remote = {page, sizeof(to)};

	syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul);
}

static void remote_fault_run(void)
{
	struct subject subject;

	subject_start(&subject, "remote_fault", read_remote, missing_page());
	await_state(getpid(), subject.tid, "D", SYS_process_vm_readv);
	ready_begin(subject.tid, getpid());
	ready_call('D', "process_vm_readv", SYS_process_vm_readv);
	line_end();
	hold();
}

#define TURN_FILES 16

/* A reader that waits in each of its reads for another file, all read by one descriptor. */
struct turns {
	char paths[TURN_FILES][4096];
	int files[TURN_FILES], fd;
	atomic_long turn; /* turn of the present read */
	int64_t pause_ns;
	atomic_bool stop;
};

/* Reads in turns: the count of a read says which file it is. */
static void turns_read(void *data)
{
	struct turns *turns = data;
	char bytes[TURN_FILES];

	while (!turns->stop) {
		long file = turns->turn % TURN_FILES;

		if (dup2(turns->files[file], turns->fd) < 0)
			die("dup2");
		if (read(turns->fd, bytes, (size_t)file + 1) < 0)
			die("read");
		turns->turn++;
	}
}

static void turns_write(void *data)
{
	struct turns *turns = data;
	long turn = -1;

	while (!turns->stop) {
		sleep_ns(turns->pause_ns);
		if (turns->turn == turn)
			continue;
		turn = turns->turn;
		if (write(turns->files[turn % TURN_FILES], "", 1) < 0)
			die("write");
	}
}

static void turns_make(struct turns *turns)
{
	turns->pause_ns = option_number("pause_us", 100) * 1000;
	for (int i = 0; i < TURN_FILES; i++) {
		snprintf(turns->paths[i], sizeof(turns->paths[i]), "%s/turn.%d",
			 option_text("dir", "/tmp"), i);
		if (mkfifo(turns->paths[i], 0600))
			die(turns->paths[i]);
		turns->files[i] = open(turns->paths[i], O_RDWR | O_CLOEXEC);
		if (turns->files[i] < 0)
			die(turns->paths[i]);
	}
	turns->fd = dup(turns->files[0]);
}

static void turns_run(void)
{
	static struct turns turns;
	struct subject reader, writer;

	turns_make(&turns);
	subject_start(&reader, "turns_reader", turns_read, &turns);
	subject_start(&writer, "turns_writer", turns_write, &turns);
	ready_begin(reader.tid, getpid());
	line_add("syscall", "read");
	line_add("fd", "%d", turns.fd);
	line_end();
	hold();
	for (int i = 0; i < TURN_FILES; i++)
		unlink(turns.paths[i]);
	_exit(0);
}

const struct workload file_workloads[] = {
	{"fsync", "dir=PATH", "writes and syncs a file in a loop", fsync_run},
	{"turns", "dir=PATH pause_us=N", "reads another FIFO, dir/turn.N, in each wait", turns_run},
	{"page_fault", "", "a thread asleep outside a system call", page_fault_run},
	{"remote_fault", "", "a thread in D, in process_vm_readv", remote_fault_run},
	{0},
};
