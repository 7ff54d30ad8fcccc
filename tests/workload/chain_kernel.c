/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains of threads that wait for locks of the kernel. The holder of a lock sleeps in a page fault,
 * for a page of a userfaultfd(2): in a system call that has taken the lock before it copies. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain.h"

#define PAGE 4096
#define PAGES_MAX 64
#define PAGES 8

static char *missing; /* pages that are missing until they are filled */
static int faults = -1, file = -1;
static char block[PAGE];
static struct subject holder, writers[PAGES_MAX], waiters[PAGES];
static int64_t turn_ns;
static FILE *turns; /* NULL: not written */

static void missing_make(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.range.len = PAGES_MAX * PAGE,
				      .mode = UFFDIO_REGISTER_MODE_MISSING};

	missing = mmap(NULL, PAGES_MAX * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	all.range.start = (uintptr_t)missing;
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &all))
		unready("no userfaultfd here");
}

/* Makes the file and unlinks it before a thread has its lock, which unlink(2) takes, too. */
static void file_make(void)
{
	char path[256];

	lock_file("chain-kernel", path);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || unlink(path))
		die("open");
}

/* Holds the inode's rwsem, for writing. */
static void hold_inode(void *unused)
{
	(void)unused;
	if (pwrite(file, missing, PAGE, 0) < 0)
		die("pwrite");
}

/* Takes the mutex of the open file's position, and waits for the inode. */
static void write_on(void *unused)
{
	(void)unused;
	if (write(file, block, sizeof(block)) < 0)
		die("write");
}

/* The file's inode is held by that thread, which sleeps: adds who waits for it, and who for them.
 */
static void waiters_add(pid_t holder_tid, const char *shown)
{
	subject_start(&writers[0], "chain_writer", write_on, NULL);
	await_state(getpid(), writers[0].tid, "D", SYS_write);
	victim_add(writers[0].tid, holder_tid, "chain_writer kernel lock> %s", shown);
	for (int i = 0; i < PAGES; i++) {
		subject_start(&waiters[i], "chain_waiter", write_on, NULL);
		await_state(getpid(), waiters[i].tid, "D", SYS_write);
		victim_add(waiters[i].tid, writers[0].tid,
			   "chain_waiter kernel lock> chain_writer kernel lock> %s", shown);
	}
	pid_add(getpid());
}

static void kernel_locks(void)
{
	missing_make();
	file_make();
	subject_start(&holder, "chain_holder", hold_inode, NULL);
	await_state(getpid(), holder.tid, "S", SYS_pwrite64);
	waiters_add(holder.tid, "chain_holder");
}

/* --- the same without userfaultfd(2), in a file system that is frozen: who writes a page of a file
 * there sleeps in its page fault, and has the memory map's lock until 6.4; who changes the map
 * waits for it, and after that one every page fault of the process. */

static struct {
	struct worker fault, maps, holder;
} * frozen; /* shared with the process whose threads they are */
static char *frozen_page;

static void page_write(void *unused)
{
	(void)unused;
	*(volatile char *)frozen_page = 1;
}

static void map_change(void *unused)
{
	(void)unused;
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void freeze(void)
{
	int directory = open(option_text("dir", "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int frozen_file;
	char path[256];

	lock_file("chain-frozen", path);
	frozen_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (frozen_file < 0 || pwrite(frozen_file, block, PAGE, 0) != PAGE || fsync(frozen_file))
		die("pwrite");
	frozen_page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, frozen_file, 0);
	missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (directory < 0 || frozen_page == MAP_FAILED || ioctl(directory, FIFREEZE, 0))
		unready("no file system that can be frozen");
}

/* No page of this thread is missing once the map is locked. */
static void frozen_run(const struct part *unused)
{
	(void)unused;
	freeze();
	worker_start(&frozen->fault, "chain_fault", page_write, NULL);
	worker_start(&frozen->maps, "chain_maps", map_change, NULL);
	worker_start(&frozen->holder, "chain_holder", hold_inode, NULL);
	worker_go(&frozen->fault);
	sleep_ns(200 * NS_PER_MS);
	worker_go(&frozen->maps);
	sleep_ns(200 * NS_PER_MS);
	worker_go(&frozen->holder);
}

static void kernel_frozen(void)
{
	pid_t pid;

	frozen = mmap(NULL, sizeof(*frozen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	file = open("/dev/shm", O_RDWR | O_TMPFILE, 0600); /* not to be frozen */
	if (frozen == MAP_FAILED || file < 0)
		die("open");
	pid = part_start(&(struct part){"chain_frozen", frozen_run, file, -1});
	while (!__atomic_load_n(&frozen->holder.subject.tid, __ATOMIC_ACQUIRE))
		sleep_ns(NAP_NS);
	await_state(pid, frozen->holder.subject.tid, "D", SYS_pwrite64);
	waiters_add(frozen->holder.subject.tid, "*"); /* its process may not be read */
}

/* Holds the directory's rwsem, for reading. */
static void hold_directory(void *unused)
{
	(void)unused;
	syscall(SYS_getdents64, file, missing, PAGE);
}

static void file_add(void *unused)
{
	(void)unused;
	mkdirat(file, "new", 0700);
}

static void kernel_reader(void)
{
	char path[256];

	missing_make();
	lock_file("chain-directory", path); /* not removed: removing waits for its lock, too */
	if (mkdir(path, 0700))
		die("mkdir");
	file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	subject_start(&holder, "chain_holder", hold_directory, NULL);
	await_state(getpid(), holder.tid, "S", SYS_getdents64);
	subject_start(&waiters[0], "chain_waiter", file_add, NULL);
	await_state(getpid(), waiters[0].tid, "D", SYS_mkdirat);
	victim_add(waiters[0].tid, holder.tid, "chain_waiter kernel lock> chain_holder");
	pid_add(getpid());
}

/* Holds the inode until its page comes. */
static void write_in_turn(void *which)
{
	char *own = missing + (size_t)which * PAGE;

	for (;;)
		if (madvise(own, PAGE, MADV_DONTNEED) || pwrite(file, own, PAGE, 0) < 0)
			die("pwrite");
}

/* Holds the mutex of the open file's position, and the inode. */
static void write_on_in_turn(void *which)
{
	char *own = missing + (size_t)which * PAGE;

	for (;;)
		if (madvise(own, PAGE, MADV_DONTNEED) || write(file, own, 1) < 0)
			die("write");
}

/* Gives pages, and notes who has the lock meanwhile: from when the fault is seen to when its page
 * is given, in ns since 1970. */
static void pages_give(void *unused)
{
	struct uffdio_zeropage zero = {.range.len = PAGE};
	struct uffd_msg fault;
	int64_t begun_ns;

	(void)unused;
	while (read(faults, &fault, sizeof(fault)) == sizeof(fault)) {
		begun_ns = clock_ns(CLOCK_REALTIME);
		sleep_ns(turn_ns);
		zero.range.start = fault.arg.pagefault.address & ~(__u64)(PAGE - 1);
		if (turns)
			fprintf(turns, "%d %" PRId64 " %" PRId64 "\n",
				writers[(zero.range.start - (uintptr_t)missing) / PAGE].tid,
				begun_ns, clock_ns(CLOCK_REALTIME));
		ioctl(faults, UFFDIO_ZEROPAGE, &zero);
	}
}

static void turns_take(void (*write)(void *))
{
	size_t threads = (size_t)option_number("threads", PAGES);
	const char *path = option_text("turns", NULL);

	if (threads > PAGES_MAX)
		die("threads");
	turn_ns = option_number("turn_ms", 2) * NS_PER_MS;
	turns = path ? fopen(path, "we") : NULL;
	if (turns)
		setvbuf(turns, NULL, _IOLBF, 0);
	missing_make();
	file_make();
	for (size_t i = 0; i < threads; i++) {
		subject_start(&writers[i], "chain_turn", write, (void *)i);
		victim_add(writers[i].tid, 0, "chain_turn kernel lock> chain_turn*");
	}
	subject_start(&holder, "chain_giver", pages_give, NULL);
	pid_add(getpid());
}

static void kernel_turns(void)
{
	turns_take(write_in_turn);
}

static void kernel_mutex_turns(void)
{
	turns_take(write_on_in_turn);
}

const struct chain_row kernel_chains[] = {
	{"kernel_locks", kernel_locks},
	{"kernel_frozen", kernel_frozen},
	{"kernel_reader", kernel_reader},
	{"kernel_turns", kernel_turns},
	{"kernel_mutex_turns", kernel_mutex_turns},
	{0},
};
