/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/lock_name.h"
#include "base/memory.h"
#include "kernel/btf_types.h"
#include "kernel/lock_search.h"
#include "kernel/lock_symbols.h"
#include "kernel/task_query.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define STEPS 3
#define WRITERS 3     /* SB_FREEZE_LEVELS of include/linux/fs/super_types.h */
#define MINOR_BITS 20 /* MINORBITS of include/linux/kdev_t.h */
#define CONTAINERS_AT_ALL (sizeof(containers) / sizeof(*containers))

struct member {
	const char *of, *name;
};

/* clang-format off */
/* Locks of objects that a waiter has: pointers to follow from its task, or from its file, and the
 * lock in what the last one leads to. What a file's private_data is does not show, but another
 * struct has no lock there that its own thread waits for. */
static const struct {
	const char *field;
	enum lock_of of;
	struct member steps[STEPS];
} paths[] = {
	{"mmap_lock",         LOCK_OF_WAITER, {{"task_struct", "mm"}, {"mm_struct", "mmap_lock"}}},
	{"exec_update_lock",  LOCK_OF_WAITER, {{"task_struct", "signal"}, {"signal_struct", "exec_update_lock"}}},
	{"cred_guard_mutex",  LOCK_OF_WAITER, {{"task_struct", "signal"}, {"signal_struct", "cred_guard_mutex"}}},
	{"f_pos_lock",        LOCK_OF_FILE,   {{"file", "f_pos_lock"}}},
	{"i_rwsem",           LOCK_OF_FILE,   {{"file", "f_inode"}, {"inode", "i_rwsem"}}},
	{"mutex",             LOCK_OF_FILE,   {{"file", "private_data"}, {"pipe_inode_info", "mutex"}}},
	{"atomic_write_lock", LOCK_OF_FILE,   {{"file", "private_data"}, {"tty_file_private", "tty"}, {"tty_struct", "atomic_write_lock"}}},
	{"termios_rwsem",     LOCK_OF_FILE,   {{"file", "private_data"}, {"tty_file_private", "tty"}, {"tty_struct", "termios_rwsem"}}},
	{"legacy_mutex",      LOCK_OF_FILE,   {{"file", "private_data"}, {"tty_file_private", "tty"}, {"tty_struct", "legacy_mutex"}}},
};

/* Locks in objects that show what they are: from the object, a pointer leads back to it, or to a
 * part of it. */
static const struct {
	const char *field;
	enum lock_of of;
	struct member lock, check[2], part; /* part: check leads there; name NULL: to the start */
} containers[] = {
	{"i_rwsem",    LOCK_OF_INODE,   {"inode", "i_rwsem"}, {{"inode", "i_mapping"}}, {"inode", "i_data"}},
	{"s_umount",   LOCK_OF_DEVICE,  {"super_block", "s_umount"}, {{"super_block", "s_root"}, {"dentry", "d_sb"}}, {0}},
	{"s_sync_lock", LOCK_OF_DEVICE, {"super_block", "s_sync_lock"}, {{"super_block", "s_root"}, {"dentry", "d_sb"}}, {0}},
	{"sb_writers", LOCK_OF_DEVICE,  {"super_block", "s_writers"}, {{"super_block", "s_root"}, {"dentry", "d_sb"}}, {0}},
	{"mmap_lock",  LOCK_OF_PROCESS, {"mm_struct", "mmap_lock"}, {{"mm_struct", "owner"}, {"task_struct", "mm"}}, {0}},
};
/* clang-format on */

struct lock_fields {
	int paths[sizeof(paths) / sizeof(*paths)][STEPS]; /* offsets; the first -1: none */
	int ends[sizeof(paths) / sizeof(*paths)];	  /* index of the last step */
	struct {
		int lock, check[2], part; /* lock -1: not known */
	} containers[CONTAINERS_AT_ALL];
	int writers, writer_bytes; /* percpu_rw_semaphores in sb_writers */
	int files, table, table_size, descriptors;
	int inode_number, inode_fs, device, owner, tgid;
};

static int offset_of(const struct btf_types *btf, struct member member)
{
	return member.name ? (int)btf_offset_find(btf, member.of, member.name, 0) : 0;
}

static void paths_fill(struct lock_fields *fields, const struct btf_types *btf)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		bool known = true;

		for (int step = 0; step < STEPS && paths[i].steps[step].name; step++) {
			fields->paths[i][step] = offset_of(btf, paths[i].steps[step]);
			fields->ends[i] = step;
			known &= fields->paths[i][step] >= 0;
		}
		if (!known)
			fields->paths[i][0] = -1;
	}
}

static void containers_fill(struct lock_fields *fields, const struct btf_types *btf)
{
	for (size_t i = 0; i < CONTAINERS_AT_ALL; i++) {
		int lock = offset_of(btf, containers[i].lock), known = 0;

		for (int step = 0; step < 2; step++) {
			fields->containers[i].check[step] =
				offset_of(btf, containers[i].check[step]);
			known |= fields->containers[i].check[step];
		}
		fields->containers[i].part = offset_of(btf, containers[i].part);
		known |= fields->containers[i].part;
		fields->containers[i].lock = known < 0 ? -1 : lock;
	}
}

struct lock_fields *lock_fields_open(void)
{
	struct lock_fields *fields = memory_get(sizeof(*fields));
	const struct btf_types *btf;

	if (btf_kernel(&btf, NULL)) {
		for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
			fields->paths[i][0] = -1;
		for (size_t i = 0; i < CONTAINERS_AT_ALL; i++)
			fields->containers[i].lock = -1;
		return fields;
	}
	paths_fill(fields, btf);
	containers_fill(fields, btf);
	fields->files = offset_of(btf, (struct member){"task_struct", "files"});
	fields->table = offset_of(btf, (struct member){"files_struct", "fdt"});
	fields->table_size = offset_of(btf, (struct member){"fdtable", "max_fds"});
	fields->descriptors = offset_of(btf, (struct member){"fdtable", "fd"});
	fields->inode_number = offset_of(btf, (struct member){"inode", "i_ino"});
	fields->inode_fs = offset_of(btf, (struct member){"inode", "i_sb"});
	fields->device = offset_of(btf, (struct member){"super_block", "s_dev"});
	fields->owner = offset_of(btf, (struct member){"mm_struct", "owner"});
	fields->tgid = offset_of(btf, (struct member){"task_struct", "tgid"});
	fields->writers = offset_of(btf, (struct member){"sb_writers", "rw_sem"});
	fields->writer_bytes = (int)btf_struct_bytes(btf, "percpu_rw_semaphore");
	btf_kernel_forget();
	return fields;
}

void lock_fields_close(struct lock_fields *fields)
{
	free(fields);
}

static uint64_t word(struct lock_search *search, uint64_t base, int at)
{
	return base && at >= 0 ? lock_search_word(search, base + (uint64_t)at) : 0;
}

/* The struct file of a task's descriptor; 0: there is none. */
static uint64_t file_of(const struct lock_fields *fields, struct lock_search *search, uint64_t task,
			int fd)
{
	uint64_t table = word(search, word(search, task, fields->files), fields->table);

	if (fd < 0 || (uint32_t)fd >= (uint32_t)word(search, table, fields->table_size))
		return 0;
	return word(search, word(search, table, fields->descriptors), 8 * fd);
}

static bool name_of_path(const struct lock_fields *fields, struct lock_search *search,
			 uint64_t task, uint64_t file, uint64_t address, struct lock_name *name)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const int *at = fields->paths[i];
		uint64_t base = paths[i].of == LOCK_OF_FILE ? file : task;

		for (int step = 0; at[0] >= 0 && step < fields->ends[i]; step++)
			base = word(search, base, at[step]);
		if (at[0] < 0 || !base || base + (uint64_t)at[fields->ends[i]] != address)
			continue;
		*name = (struct lock_name){.field = paths[i].field, .of = paths[i].of};
		return true;
	}
	return false;
}

/* True if the object of containers[i] is what it seems to be. */
static bool is_object(const struct lock_fields *fields, struct lock_search *search, size_t i,
		      uint64_t object)
{
	uint64_t at = word(search, object, fields->containers[i].check[0]);

	if (containers[i].check[1].name)
		at = word(search, at, fields->containers[i].check[1]);
	return at == object + (uint64_t)fields->containers[i].part;
}

static uint32_t device_of(const struct lock_fields *fields, struct lock_search *search, uint64_t fs)
{
	uint32_t device = (uint32_t)word(search, fs, fields->device);

	return (uint32_t)makedev(device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
}

static bool name_of_object(const struct lock_fields *fields, struct lock_search *search, size_t i,
			   uint64_t object, struct lock_name *name)
{
	if (!is_object(fields, search, i, object))
		return false;
	*name = (struct lock_name){.field = containers[i].field, .of = containers[i].of};
	switch (name->of) {
	case LOCK_OF_INODE:
		name->inode = word(search, object, fields->inode_number);
		name->device = device_of(fields, search, word(search, object, fields->inode_fs));
		break;
	case LOCK_OF_DEVICE:
		name->device = device_of(fields, search, object);
		break;
	default:
		name->pid =
			(uint32_t)word(search, word(search, object, fields->owner), fields->tgid);
	}
	return true;
}

/* sb_writers has several, at `writers`, each for another kind of writing. */
static bool name_of_container(const struct lock_fields *fields, struct lock_search *search,
			      uint64_t address, struct lock_name *name)
{
	for (size_t i = 0; i < CONTAINERS_AT_ALL; i++) {
		uint64_t object = address - (uint64_t)fields->containers[i].lock;
		bool several = !strcmp(containers[i].field, "sb_writers");

		if (fields->containers[i].lock < 0 || (several && fields->writers < 0))
			continue;
		if (!several && name_of_object(fields, search, i, object, name))
			return true;
		for (int kind = 0; several && kind < WRITERS; kind++)
			if (name_of_object(fields, search, i,
					   object - (uint64_t)(fields->writers +
							       kind * fields->writer_bytes),
					   name))
				return true;
	}
	return false;
}

bool lock_name_find(const struct lock_fields *fields, struct lock_search *search, uint32_t tid,
		    int fd, uint64_t address, struct lock_name *name)
{
	struct task_stack stack;

	*name = (struct lock_name){.field = lock_symbol_find(lock_search_symbols(search), address)};
	if (name->field)
		return true;
	if (!task_query_stack(tid, &stack))
		return false;
	return name_of_path(fields, search, stack.task, file_of(fields, search, stack.task, fd),
			    address, name) ||
	       name_of_container(fields, search, address, name);
}
