/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The asyncio tasks of a Python 3.14 process, grouped by state, stack and who awaits them: they are
 * read out of its memory while it runs. Everything in it may be a lie: counts, depths, reads and
 * time are bounded. A parser reads all of it.
 *
 * Each thread, and each interpreter for threads that ended, has a list of its tasks
 * (asyncio_tasks_head). Where these lie in their structs the module _asyncio says in its section
 * .AsyncioDebug (struct Py_AsyncioModuleDebugOffsets of Modules/_asynciomodule.c), and for
 * coroutines, sets and numbers the interpreter does (_Py_DebugOffsets). A task's stack is that of
 * the coroutines and generators that await each other, from the task's own to the one that waits;
 * of a task that runs, the part of its thread's stack that begins there. A task counts if it was
 * linked in its list, with the same stack, after all of it was read as before; else it is read
 * again. Tasks that are no instances of asyncio.Task of C are in no list.
 *
 * A suspended task is ready, and not waiting, if it has not begun, or if the future that it waits
 * for is done: only its event loop has to run it. That future lies before the coroutine
 * (task_fut_waiter), and the state of a future after its awaited_by: no offset says so, and both
 * are believed only if the members around them lie as in 3.14; otherwise no task is ready.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_TASKS_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "parser/parser.h"
#include "unwind/elf/elf_exports.h"

struct thread_memory;

#define ASYNCIO_SECTION ".AsyncioDebug"
#define TASK_FRAMES_MAX 128   /* innermost frames of a stack that are kept */
#define TASK_STACK_SIZE 36864 /* with the NUL; further functions are cut */
#define TASK_NAMES_SIZE 2048  /* with the NUL; further names are cut */
#define TASK_GROUPS_MAX 65536
#define TASK_WHY_SIZE 128

enum task_state {
	TASK_RUNNING, /* a thread runs it now */
	TASK_READY,   /* it waits for its event loop only */
	TASK_WAITING,
};

struct task_group {
	uint64_t count;
	/* Thread whose event loop has the tasks, as the process knows it; 0: it has ended */
	int64_t tid;
	uint32_t state; /* enum task_state */
	/* Owned texts. stack: folded, the outermost function first; "": not known. names and
	 * awaited_by: "Task-2..Task-9, worker"; "": nobody. */
	char *stack, *names, *awaited_by;
};

struct task_counts {
	uint64_t tasks;	 /* in groups */
	uint64_t moved;	 /* tasks that changed each time they were read */
	uint64_t unread; /* tasks that could not be read, or make no sense */
	uint64_t left;	 /* tasks left out: no time, or too many */
	uint64_t lists;	 /* lists that changed each time they were read, so that some may lack */
};

struct tasks {
	char version[16];	   /* "3.14.2" */
	struct task_group *groups; /* those with most tasks first */
	size_t group_count, group_capacity;
	struct task_counts counts;
};

/* A process with an interpreter. */
struct task_source {
	int64_t pid;
	struct runtime_exports exports; /* what the interpreter's file exports */
	uint64_t distance;		/* of the process' addresses from those of the file */
	uint64_t asyncio; /* address of the section in the process; 0: there is none */
};

/* Reads the tasks: in a parser. Returns 0, or -errno with why, in words. */
int tasks_list(struct tasks *tasks, const struct task_source *source, struct thread_memory *memory,
	       char why[TASK_WHY_SIZE]);

/* The parser_service that reads tasks, and answers requests about files as well. */
parser_service task_service;

/* Reads the tasks of a process by a parser of task_service. Returns 0, or -errno with e. Zeroed
 * tasks are empty and valid. */
int tasks_read(struct tasks *tasks, const struct task_source *source, const char *proc_root,
	       struct parser *parser, struct error *e);
void tasks_done(struct tasks *tasks);

const char *task_state_name(uint32_t state);

#endif
