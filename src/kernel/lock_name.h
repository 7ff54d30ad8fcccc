/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the kernel's locks: which field of which object it is. Static locks have a symbol. Of
 * others, the waiter's own objects are tried (its memory map, the file of its call), and then what
 * object the lock would lie in, if that says of itself that it is one. */
#ifndef TSNAP_KERNEL_LOCK_NAME_H
#define TSNAP_KERNEL_LOCK_NAME_H

#include <stdbool.h>
#include <stdint.h>

struct lock_search;

enum lock_of {
	LOCK_OF_NOBODY,	 /* a static lock */
	LOCK_OF_FILE,	 /* the file of the waiter's call */
	LOCK_OF_WAITER,	 /* the waiter's process */
	LOCK_OF_PROCESS, /* process `pid` */
	LOCK_OF_INODE,	 /* inode number `inode` of the file system on `device` */
	LOCK_OF_DEVICE,	 /* the file system on `device` */
};

struct lock_name {
	const char *field; /* the kernel's name of it; lasts as long as the search. NULL: unknown */
	enum lock_of of;
	uint32_t pid; /* as the kernel numbers it */
	uint64_t inode;
	uint32_t device; /* as struct stat has it (makedev(3)) */
};

struct lock_fields;

/* Finds where the kernel has its locks. The caller's; never NULL. */
struct lock_fields *lock_fields_open(void);
void lock_fields_close(struct lock_fields *fields);
/* Names the lock at that address, for which thread tid (as the kernel numbers it) sleeps in a call
 * with that descriptor; -1: none. False: it is not known. */
bool lock_name_find(const struct lock_fields *fields, struct lock_search *search, uint32_t tid,
		    int fd, uint64_t address, struct lock_name *name);

#endif
