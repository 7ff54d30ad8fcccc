/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_tasks.h"
#include "live/routine_parsers.h"
#include "apps/app_modules.h"
#include "base/clock.h"
#include "base/names.h"
#include "proc/proc.h"
#include "sample/sample.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/python_tasks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC_ROOT "/proc"
#define NAMES_COLUMNS_MAX 40 /* columns of a list of names; --csv has more of it */

static bool no_mark(const char *path)
{
	(void)path;
	return false;
}

/* Looks whether a mapped file is the interpreter, or has asyncio in it. Returns 0, also for one
 * that is no regular file, or -errno: it can't be opened. */
static int file_look(struct task_source *source, struct parser *parser,
		     const struct mapping *mapping)
{
	struct file_section_answer section = {.is_mapped = false};
	struct runtime_exports exports;
	struct elf_file elf = {.fd = mapping_open(mapping, PROC_ROOT, source->pid)};
	struct stat status;
	uint64_t distance;

	if (elf.fd < 0)
		return elf.fd == -EINVAL ? 0 : elf.fd;
	elf.bytes = fstat(elf.fd, &status) ? 0 : (uint64_t)status.st_size;
	if (!file_section_request(parser, &elf, ASYNCIO_SECTION, mapping->offset, &section) &&
	    section.is_mapped) {
		distance = mapping->start - section.mapped;
		if (section.address)
			source->asyncio = section.address + distance;
		if (!source->exports.python[MODULE_PYTHON_RUNTIME] &&
		    !file_exports_request(parser, &elf, &exports) &&
		    exports.python[MODULE_PYTHON_RUNTIME]) {
			source->exports = exports;
			source->distance = distance;
		}
	}
	close(elf.fd);
	return 0;
}

/* Finds the interpreter. Returns 0, or -errno with e. */
static int source_find(struct task_source *source, struct parser *parser, struct error *e)
{
	const uint64_t *interpreter = &source->exports.python[MODULE_PYTHON_RUNTIME];
	struct app_modules modules;
	int err = 0, unopened = 0, opened;

	if (!app_modules_read(&modules, no_mark, PROC_ROOT, source->pid, source->pid))
		err = error_set(e, proc_thread_count(PROC_ROOT, source->pid) ? EACCES : ESRCH,
				EXIT_FAILED, "tasks of process %lld: its memory map can't be read",
				(long long)source->pid);
	for (size_t i = 0; !err && i < modules.count && !(*interpreter && source->asyncio); i++) {
		opened = file_look(source, parser, &modules.files[i]);
		unopened = opened ? opened : unopened;
	}
	app_modules_done(&modules);
	if (!err && unopened && !(*interpreter && source->asyncio))
		err = error_set(e, -unopened, EXIT_FAILED,
				"tasks of process %lld: files that it has mapped can't be opened "
				"(%s): run tsnap as root",
				(long long)source->pid, strerror(-unopened));
	else if (!err && !*interpreter)
		err = error_set(e, ENOTSUP, EXIT_FAILED,
				"tasks of process %lld: it runs no Python (none of its files "
				"exports _PyRuntime)",
				(long long)source->pid);
	return err;
}

/* Returns the id of a thread of the process, by that in its own pid namespace; ABSENT: it has no
 * such thread. */
static int64_t thread_find(int64_t pid, int64_t inner)
{
	int64_t found = ABSENT, tid;
	DIR *threads;

	if (!inner)
		return ABSENT;
	if (thread_inner_tid(PROC_ROOT, pid) == pid)
		return inner;
	threads = proc_dir_open(PROC_ROOT, pid, "task");
	while (found == ABSENT && (tid = proc_dir_next(threads)) >= 0)
		if (thread_inner_tid(PROC_ROOT, tid) == inner)
			found = tid;
	if (threads)
		closedir(threads);
	return found;
}

static const char *transient_or_none(const char *text)
{
	return *text ? name_transient_string(text) : NULL;
}

static void tasks_give(const struct tasks *tasks, int64_t pid, routine_callback *take, void *to)
{
	struct routine_row row = {.time_us = clock_utc_us(),
				  .pid = pid,
				  .version = transient_or_none(tasks->version)};

	for (size_t i = 0; i < tasks->group_count; i++) {
		const struct task_group *group = &tasks->groups[i];

		row.count = (int64_t)group->count;
		row.state = task_state_name(group->state);
		row.tid = thread_find(pid, group->tid);
		row.names = transient_or_none(group->names);
		row.awaited_by = transient_or_none(group->awaited_by);
		row.stack = transient_or_none(group->stack);
		take(to, &row);
	}
}

static void missed_add(const struct task_counts *counts, struct text *out)
{
	if (counts->moved + counts->unread + counts->left + counts->lists)
		text_add_format(
			out,
			"Missed: %llu tasks that moved on each time they were read; %llu "
			"that could not be read; %llu for which there was no time or room; "
			"lists of %llu threads that changed each time they were read\n",
			(unsigned long long)counts->moved, (unsigned long long)counts->unread,
			(unsigned long long)counts->left, (unsigned long long)counts->lists);
}

/* Adds a text that is made fit for a terminal, and cut; padded to a width. */
static void cell_add(const char *text, size_t width, struct text *out)
{
	struct text cell = {0};
	size_t columns;

	text_add_printable(&cell, text && *text ? text : "-");
	text_shorten(&cell, NAMES_COLUMNS_MAX);
	columns = text_width(text_string(&cell));
	text_add_string(out, text_string(&cell));
	text_add_spaces(out, columns < width ? width - columns + 2 : 2);
	text_done(&cell);
}

static size_t width_of(size_t width, const char *text)
{
	size_t columns = text_width(text);

	columns = columns < NAMES_COLUMNS_MAX ? columns : NAMES_COLUMNS_MAX;
	return columns > width ? columns : width;
}

static void tasks_describe(const struct tasks *tasks, int64_t pid, struct text *out)
{
	size_t names = strlen("NAMES"), awaited_by = strlen("AWAITED_BY");

	for (size_t i = 0; i < tasks->group_count; i++) {
		names = width_of(names, tasks->groups[i].names);
		awaited_by = width_of(awaited_by, tasks->groups[i].awaited_by);
	}
	text_add_format(out, "%llu asyncio tasks of process %lld, Python ",
			(unsigned long long)tasks->counts.tasks, (long long)pid);
	text_add_printable(out, tasks->version);
	text_add_string(out, "\n\n  COUNT  STATE      THREAD  ");
	cell_add("NAMES", names, out);
	cell_add("AWAITED_BY", awaited_by, out);
	text_add_string(out, "STACK\n");
	for (size_t i = 0; i < tasks->group_count; i++) {
		const struct task_group *group = &tasks->groups[i];
		int64_t tid = thread_find(pid, group->tid);

		text_add_format(out, "%7llu  %-7s  ", (unsigned long long)group->count,
				task_state_name(group->state));
		if (tid == ABSENT)
			text_add_string(out, "       -  ");
		else
			text_add_format(out, "%8lld  ", (long long)tid);
		cell_add(group->names, names, out);
		cell_add(group->awaited_by, awaited_by, out);
		text_add_printable(out, *group->stack ? group->stack : "-");
		text_add_char(out, '\n');
	}
	missed_add(&tasks->counts, out);
}

int live_tasks(int64_t pid, bool free, routine_callback *take, void *to, struct text *out,
	       struct error *e)
{
	struct task_source source = {.pid = pid};
	struct tasks tasks = {.group_count = 0};
	struct parsers *parsers;
	struct parser *parser;
	int err;

	parsers = routine_parsers_begin("tasks", pid, task_service, free, &err, e);
	parser = &parsers->parser[PARSER_NAMES];
	if (!err)
		err = source_find(&source, parser, e);
	if (!err)
		err = tasks_read(&tasks, &source, PROC_ROOT, parser, e);
	if (!err && take) {
		tasks_give(&tasks, pid, take, to);
		missed_add(&tasks.counts, out);
	} else if (!err) {
		tasks_describe(&tasks, pid, out);
	}
	tasks_done(&tasks);
	parsers_end(parsers);
	return err;
}
