/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and files that must not be looked at (keeper.h): those that the kernel says are locked
 * now (kernel/task_query.h), and those that were met by a look that did not end, for their life.
 * Code that opens a file of a process, or a file whose name comes from outside, checks here first,
 * and takes an avoided one for unreadable (-ETIMEDOUT). Children inherit the set by fork(2).
 */
#ifndef TSNAP_KEEPER_AVOID_H
#define TSNAP_KEEPER_AVOID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define AVOID_FILES_MAX 16
/* In place of a directory: file systems that anybody may mount, and have his own program serve; the
 * name service. */
#define AVOID_USER_MOUNTS "all mounts of user namespaces"
#define AVOID_USERS "users"

/* What a look at a process would wait for now. */
struct avoid_state {
	const char *why; /* static words, "its memory map is locked"; NULL: nothing */
	uint64_t holder; /* another number once another thread has the lock: it is only busy */
	int64_t pid;	 /* the process, or 0 */
	bool map_only;	 /* only a look that needs the memory map would wait */
	bool user_mount; /* the descriptor's file system was mounted in a user namespace */
};

/* Has avoids_process() and avoids_fdinfo() ask for the state of the process of a thread, and of a
 * descriptor of it (-1: none); ask is called by any thread. NULL: nobody is asked. */
void avoid_ask_with(void (*ask)(int64_t id, int fd, struct avoid_state *state));

/* Adds the process of that thread or process, until it ends. why: static words. False: it is
 * avoided already, or as many others that live are. */
bool avoid_process(int64_t id, const char *why);
/* Adds all files below directory; the last of AVOID_FILES_MAX entries has the files of all
 * directories. False: the directory is avoided already. */
bool avoid_files(const char *directory, const char *why);

/* True if the process or thread must not be looked at; a look that waits for the lock of its memory
 * map asks avoids_memory(). Any thread may ask for a process. An answer holds for about as long as
 * a scan takes. */
bool avoids_process(int64_t id);
/* The same for a look at the file of that name in /proc/PID or /proc/PID/task/TID. The kernel is
 * not asked for files that wait for no lock: comm and wchan (fs/proc, Linux 4.9 to 6.18). */
bool avoids_process_file(int64_t id, const char *name);
/* The same for a look that waits for the lock of the memory map, too, asked right before it: the
 * process may have taken that lock a moment ago. */
bool avoids_memory(int64_t id);
/* True if fdinfo of that descriptor of a thread must not be read: it is an epoll set that a thread
 * which sleeps has locked, for ever if the server of a file in it does not answer polls. */
bool avoids_fdinfo(int64_t id, int fd);
bool avoids_file(const char *path);
/* True if a look at a file of that name in /proc/PID waits for the lock of its memory map. */
bool avoid_waits_for_map(const char *name);
/* True if the kernel says that the file of that descriptor is of a mount of a user namespace. */
bool avoid_is_user_mount(int64_t pid, int fd);

/* Number of times that a process was found to be locked. */
uint64_t avoid_locked_count(void);
/* Adds the processes avoided at present, or the files, and why, in words for a footer, "4711 (its
 * memory map is locked)". Returns their number. */
size_t avoid_processes_text(struct text *words);
size_t avoid_files_text(struct text *words);

#endif
