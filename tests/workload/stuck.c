/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes whose observation never ends: pages, locks and an exec that wait for a FUSE server
 * which answers all but reads. They go on when the server ends. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fuse.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

#define MOUNT_POINT "/mnt"
#define FILE_BYTES (1 << 20)
#define NODE 2
#define MESSAGE_BYTES (1 << 17)
#define PAGE_BYTES 4096

/* Paths of the file: reads of "direct" do not go through the page cache. */
#define CACHED_FILE MOUNT_POINT "/cached"
#define DIRECT_FILE MOUNT_POINT "/direct"

/* Memory shared with the server: contents of the first page of a file; whether reads are answered;
 * whether nothing is answered any more. */
static struct served {
	bool reads, dead;
	char page[PAGE_BYTES];
} * served;

static void reply(int device, uint64_t unique, int error, const void *body, size_t bytes)
{
	char message[256 + PAGE_BYTES];
	struct fuse_out_header head = {(uint32_t)(sizeof(head) + bytes), error, unique};

	memcpy(message, &head, sizeof(head));
	if (bytes)
		memcpy(message + sizeof(head), body, bytes);
	if (write(device, message, head.len) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .size = FILE_BYTES,
				  .blocks = FILE_BYTES / 512,
				  .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755,
				  .nlink = 1,
				  .blksize = 4096};
}

static void message_answer(int device, const struct fuse_in_header *in, const char *body)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = 31,
				     .max_readahead = 4096,
				     .flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO,
				     .max_write = 4096,
				     .max_background = 16};
	struct fuse_entry_out entry = {.entry_valid = 1000, .attr_valid = 1000};
	struct fuse_attr_out attr = {.attr_valid = served->reads ? 0 : 1000,
				     .attr = attributes(in->nodeid)};
	struct fuse_open_out open_out = {.fh = in->nodeid};
	struct fuse_statfs_out system = {.st = {.bsize = PAGE_BYTES, .namelen = 255}};

	if (served->dead)
		return;
	switch (in->opcode) {
	case FUSE_INIT:
		reply(device, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.nodeid = body[0] == 'd' ? NODE + 1 : NODE;
		entry.attr = attributes(entry.nodeid);
		reply(device, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		reply(device, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_STATFS:
		reply(device, in->unique, 0, &system, sizeof(system));
		break;
	case FUSE_OPEN:
		open_out.open_flags = in->nodeid == NODE ? 0 : FOPEN_DIRECT_IO;
		reply(device, in->unique, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		if (served->reads)
			reply(device, in->unique, 0, served->page, PAGE_BYTES);
		break;
	case FUSE_POLL: /* never answered */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(device, in->unique, -ENOSYS, NULL, 0);
	}
}

static void server_run(int device)
{
	static char message[MESSAGE_BYTES];
	const struct fuse_in_header *in = (const struct fuse_in_header *)message;

	while (read(device, message, sizeof(message)) > 0 || errno == ENOENT || errno == EINTR)
		message_answer(device, in, message + sizeof(*in));
	_exit(0);
}

/* Mounts the server's file system for this process and its children only. */
static void server_start(void)
{
	char options[64];
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	served = mmap(NULL, sizeof(*served), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (served == MAP_FAILED)
		die("mmap");
	if (device < 0)
		unready("there is no /dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("stuck", MOUNT_POINT, "fuse", 0, options))
		unready("a FUSE file system can't be mounted");
	if (!child_fork())
		server_run(device);
	close(device);
}

static int file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static void reported(pid_t pid, const char *letters)
{
	await_state(pid, pid, letters, NR_ANY);
	ready_begin(pid, pid);
	line_end();
	hold();
}

/* A thread asleep with its stack pointer in a page of the server. */
static void stack_run(void)
{
#if defined(__x86_64__)
	pid_t pid;

	server_start();
	pid = child_fork();
	if (!pid) {
		char *page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE,
				  file_open(CACHED_FILE), 0);

		__asm__ volatile("mov %0, %%rsp\n\t"
				 "mov %1, %%eax\n\t"
				 "syscall\n\t"
				 "ud2"
				 :
				 : "r"(page + FILE_BYTES / 2), "i"(SYS_pause)
				 : "rax", "rcx", "r11", "memory");
	}
	reported(pid, "S");
#else
	unready("the stack pointer is moved on x86-64 only");
#endif
}

static void page_touch(void *page)
{
	(void)*(volatile char *)page;
}

/* Needs the lock of its memory map half a second later. */
static void map_later(void *page)
{
	sleep_ns(500 * NS_PER_MS);
	mprotect(page, FILE_BYTES, PROT_READ);
}

static void direct_map(void *fd)
{
	(void)mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, *(int *)fd, 0);
}

/* Naps that last as long as a scan or two: the stack of one that sleeps is read of its memory, and
 * that of a thread which is never found twice in the same nap is copied while it runs. */
static void naps(void *of)
{
	(void)of;
	for (;;)
		sleep_ns(100 * NS_PER_MS);
}

/* Locks a memory map for ever: a thread that maps a file whose pages are not cached waits for the
 * page that another thread reads. */
static void maps_run(void)
{
	pid_t pid;

	server_start();
	pid = child_fork();
	if (!pid) {
		/* both are the same file: opened directly it is not cached */
		int fd = file_open(DIRECT_FILE), lock = 0;
		struct subject reader, mapper, napper, waiter;
		char *page = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);

		if (option_number("naps", 0))
			subject_start(&napper, "napper", naps, NULL);
		/* before the map is locked: a thread needs a stack */
		if (option_number("waits", 0))
			subject_start(&waiter, "waiter", map_later, page);
		subject_start(&reader, "reader", page_touch, page);
		await_state(getpid(), reader.tid, "DS", NR_ANY);
		sleep_ns(100 * NS_PER_MS);
		subject_start(&mapper, "mapper", direct_map, &fd);
		syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 0, NULL);
		_exit(0);
	}
	sleep_ns(500 * NS_PER_MS);
	reported(pid, "S");
}

/* Makes an exec that waits for a read which its process began. */
static void exec_run(void)
{
	pid_t pid;

	server_start();
	pid = child_fork();
	if (!pid) {
		static char bytes[4096] __attribute__((aligned(4096)));
		struct iocb request = {.aio_lio_opcode = IOCB_CMD_PREAD,
				       .aio_fildes = (uint32_t)file_open(DIRECT_FILE),
				       .aio_buf = (uint64_t)(uintptr_t)bytes,
				       .aio_nbytes = sizeof(bytes)};
		struct iocb *requests[] = {&request};
		aio_context_t context = 0;

		if (syscall(SYS_io_setup, 1, &context) ||
		    syscall(SYS_io_submit, context, 1, requests) != 1)
			die("io_submit");
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	/* the process's state can't be read: that is what the row is about */
	sleep_ns(500 * NS_PER_MS);
	ready_begin(pid, pid);
	line_end();
	hold();
}

static void set_wait(void *set)
{
	struct epoll_event event;

	for (;;)
		epoll_wait(*(int *)set, &event, 1, -1);
}

static void set_add(void *set)
{
	struct epoll_event event = {.events = EPOLLIN};

	epoll_ctl(*(int *)set, EPOLL_CTL_ADD, file_open(DIRECT_FILE), &event);
}

/* Locks an epoll set for ever, for which another thread waits: a file that is added to it is polled
 * with the lock held. */
static void epoll_run(void)
{
	pid_t pid;

	server_start();
	pid = child_fork();
	if (!pid) {
		struct subject waiter, adder;
		int set = epoll_create1(0), lock = 0;

		subject_start(&waiter, "waiter", set_wait, &set);
		subject_start(&adder, "adder", set_add, &set);
		syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 0, NULL);
		_exit(0);
	}
	sleep_ns(500 * NS_PER_MS);
	reported(pid, "S");
}

/* Runs a program in a file of a server, which dies then. */
static void program_run(const char *path)
{
#if defined(__x86_64__)
	/* mov $SYS_pause, %eax; syscall; ret */
	static const unsigned char code[] = {0xb8, SYS_pause, 0, 0, 0, 0x0f, 0x05, 0xc3};
	pid_t pid;

	memcpy(served->page, code, sizeof(code));
	served->reads = true;
	pid = child_fork();
	if (!pid) {
		void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE,
				  file_open(path), 0);
		void (*run)(void);

		memcpy(&run, &page, sizeof(run));
		run();
		_exit(0);
	}
	await_state(pid, pid, "S", SYS_pause);
	served->dead = true;
	reported(pid, "S");
#else
	(void)path;
	unready("its file holds code of x86-64");
#endif
}

static void file_run(void)
{
	server_start();
	program_run(CACHED_FILE);
}

static void text_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		unready("a user namespace can't be used");
	close(fd);
}

/* The same in an overlay file system of a user namespace. The kernel asks the server as the user
 * who mounted that, so root, too, may open the file. Each process has another path. */
static void overlay_run(void)
{
	char path[64],
		options[] = "lowerdir=" MOUNT_POINT ",upperdir=/tmp/u,workdir=/tmp/w,userxattr";

	if (unshare(CLONE_NEWUSER))
		unready("a user namespace can't be made");
	text_write("/proc/self/setgroups", "deny");
	text_write("/proc/self/uid_map", "0 0 1");
	text_write("/proc/self/gid_map", "0 0 1");
	server_start();
	snprintf(path, sizeof(path), "/tmp/%d", getpid());
	if (mount("stuck", "/tmp", "tmpfs", 0, NULL) || mkdir("/tmp/u", 0755) ||
	    mkdir("/tmp/w", 0755) || mkdir(path, 0755) ||
	    mount("stuck", path, "overlay", 0, options))
		unready("an overlay file system can't be mounted");
	strcat(path, "/cached");
	program_run(path);
}

const struct workload stuck_workloads[] = {
	{"stuck_stack", "", "a stack in a page of a FUSE server that does not answer", stack_run},
	{"stuck_maps", "naps=N waits=N",
	 "a memory map that is locked for ever, a thread that naps, one that waits for the lock",
	 maps_run},
	{"stuck_epoll", "", "an epoll set that is locked for ever", epoll_run},
	{"stuck_file", "", "a program in a file of a FUSE server that died", file_run},
	{"stuck_overlay", "", "the same through an overlay of a user namespace", overlay_run},
	{"stuck_exec", "", "an exec that does not end", exec_run},
	{0},
};
