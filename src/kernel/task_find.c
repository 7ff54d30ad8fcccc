/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/task_find.h"
#include "base/memory.h"
#include "kernel/field_table.h"
#include "kernel/kernel_memory.h"
#include "kernel/record.h"
#include "kernel/task_query.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In struct file, or in the struct fown_struct that it leads to since 6.12 (include/linux/fs.h). */
#define FILE_BYTES 384
#define OWNER_WORDS 8
#define CPU_CONTEXT_SP 88 /* arm64: of struct cpu_context, behind x19 to x28 and fp */

_Static_assert(MEMORY_STACK == KERNEL_STACK_WORDS, "a whole stack is read at once");

struct task_finder {
	struct kernel_memory *memory;
	int file;	   /* descriptor */
	uint64_t owner_at; /* address of the pointer to the owner's struct pid */
	uint32_t tasks;	   /* of a struct pid */
	uint64_t link;	   /* of a task: what tasks leads to */
	uint32_t pid, on_cpu, switches, preempted, sp;
};

static uint64_t word_at(struct kernel_memory *memory, uint64_t address)
{
	return kernel_memory_words(memory, address)[0];
}

static bool member_find(const struct field_layout *layout, const char *of, const char *name,
			uint32_t *at)
{
	const int offset = field_offset_find(layout, of, name);

	*at = (uint32_t)offset;
	return offset >= 0;
}

static bool owner_set(const struct task_finder *finder, uint32_t tid)
{
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)tid};

	return !fcntl(finder->file, F_SETOWN_EX, &owner);
}

static uint64_t own_file(const struct task_finder *finder, const struct field_layout *layout,
			 uint64_t task)
{
	uint32_t files, table, list;
	uint64_t at;

	if (!member_find(layout, "task_struct", "files", &files) ||
	    !member_find(layout, "files_struct", "fdt", &table) ||
	    !member_find(layout, "fdtable", "fd", &list))
		return 0;
	at = word_at(finder->memory, task + files);
	at = word_at(finder->memory, at + table);
	at = word_at(finder->memory, at + list);
	return word_at(finder->memory, at + 8 * (uint64_t)finder->file);
}

/* The struct pid of this thread; until 4.18 in an array of links. */
static uint64_t own_pid(const struct task_finder *finder, const struct field_layout *layout,
			uint64_t task)
{
	const size_t field = field_index("task_struct", "thread_pid");

	return word_at(finder->memory,
		       task + layout->offset[field] + (layout->name[field] ? PIDS_LINK_BYTES : 0));
}

/* True if the word there is the struct pid, and only while this thread is the file's owner. */
static bool is_owner(const struct task_finder *finder, uint64_t at, uint64_t pid)
{
	bool is = word_at(finder->memory, at) == pid && owner_set(finder, 0) &&
		  !word_at(finder->memory, at);

	owner_set(finder, (uint32_t)syscall(SYS_gettid));
	return is;
}

static uint64_t owner_find(const struct task_finder *finder, uint64_t file, uint64_t pid)
{
	if (!file || !pid || !owner_set(finder, (uint32_t)syscall(SYS_gettid)))
		return 0;
	for (uint64_t at = file; at < file + FILE_BYTES; at += 8) {
		uint64_t word = word_at(finder->memory, at);

		if (word == pid && is_owner(finder, at, pid))
			return at;
		for (uint64_t i = 0; word >> 63 && i < OWNER_WORDS; i++)
			if (is_owner(finder, word + 8 * i, pid))
				return word + 8 * i;
	}
	return 0;
}

static int finder_fill(struct task_finder *finder, const struct field_layout *layout)
{
	const uint64_t task = kernel_memory_task(finder->memory);
	uint64_t pid;
	uint32_t thread;

	if (!member_find(layout, "pid", "tasks", &finder->tasks) ||
	    !member_find(layout, "task_struct", "pid", &finder->pid) ||
	    !member_find(layout, "task_struct", "on_cpu", &finder->on_cpu) ||
	    !member_find(layout, "task_struct", "nvcsw", &finder->switches) ||
	    !member_find(layout, "task_struct", "nivcsw", &finder->preempted) ||
	    !member_find(layout, "task_struct", "thread", &thread) ||
	    !member_find(layout, "thread_struct", "sp", &finder->sp))
		return -ENOENT;
	finder->sp += thread;
	if (layout->name[field_index("thread_struct", "sp")])
		finder->sp += CPU_CONTEXT_SP;
	finder->file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (finder->file < 0)
		return -errno;
	pid = own_pid(finder, layout, task);
	finder->owner_at = owner_find(finder, own_file(finder, layout, task), pid);
	finder->link = word_at(finder->memory, pid + finder->tasks) - task;
	if (!finder->owner_at || finder->link > STRUCT_BYTES_MAX)
		return -ENODATA;
	return task_find(finder, (uint32_t)syscall(SYS_gettid)) == task ? 0 : -ENODATA;
}

int task_finder_open(struct task_finder **finder, struct kernel_memory *memory,
		     const struct field_layout *layout)
{
	struct task_finder *opened = memory_get(sizeof(*opened));
	int result;

	*opened = (struct task_finder){.memory = memory, .file = -1};
	result = finder_fill(opened, layout);
	if (result) {
		task_finder_close(opened);
		return result;
	}
	*finder = opened;
	return 0;
}

void task_finder_close(struct task_finder *finder)
{
	if (finder && finder->file >= 0)
		close(finder->file);
	free(finder);
}

uint64_t task_find(struct task_finder *finder, uint32_t tid)
{
	uint64_t pid = owner_set(finder, tid) ? word_at(finder->memory, finder->owner_at) : 0;
	uint64_t link = pid ? word_at(finder->memory, pid + finder->tasks) : 0;
	uint64_t task = link - finder->link;

	/* a thread that has ended is in no list of its struct pid */
	return link && (uint32_t)word_at(finder->memory, task + finder->pid) == tid ? task : 0;
}

bool task_find_stack(struct task_finder *finder, uint32_t tid, struct task_stack *stack)
{
	struct kernel_memory *memory = finder->memory;
	uint64_t task = task_find(finder, tid);

	if (!task)
		return false;
	stack->task = task;
	stack->running = (uint32_t)word_at(memory, task + finder->on_cpu);
	stack->switches = word_at(memory, task + finder->switches);
	stack->preempted = word_at(memory, task + finder->preempted);
	stack->sp = word_at(memory, task + finder->sp);
	memcpy(stack->words, kernel_memory_stack(memory, stack->sp), sizeof(stack->words));
	return true;
}
