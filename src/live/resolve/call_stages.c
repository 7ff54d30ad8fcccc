/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stages for what the sampled thread does: its system call, that call's file, its wait. */
#include "live/resolve/lookup_stages.h"
#include "base/names.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/waits.h"

#include <limits.h>
#include <string.h>

#define WORKER "kworker/"

/* Fills the work queue of a kworker: "kworker/u8:2+loop1" does work of loop1, "kworker/0:1-events"
 * did work of events last (wq_worker_comm() of kernel/workqueue.c, since 4.18). */
void stage_workqueue(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	char name[64];
	size_t queue;

	if (sample->thread.kthread != 1 || sample->now.state == STATE_IDLE ||
	    !sample->thread.comm || strncmp(sample->thread.comm, WORKER, strlen(WORKER)) != 0 ||
	    proc_file_read(item->lookup->root, sample->thread.pid, sample->thread.tid, "comm", name,
			   sizeof(name)) <= 0)
		return;
	name[strcspn(name, "\n")] = '\0';
	queue = strcspn(name, "+-");
	if (name[queue])
		sample->now.workqueue = name_transient_string(name + queue + 1);
}

void stage_call(struct lookup_item *item)
{
	if (item->in_call && (item->needs & NEED_SYSCALL || item->class_open))
		text_take(&item->sample->call.name,
			  syscall_name(item->sample->call.nr, item->hint->compat));
}

/* Decides the wait class by the call alone, or as before, which is enough for most calls. For the
 * others stage_class() needs the file. */
void stage_class_by_call(struct lookup_item *item)
{
	struct waits *waits = item->lookup->waits;
	struct sample *sample = item->sample;

	if (!item->class_open || !item->in_call)
		return;
	item->class_open = !waits_class_by_call(waits, sample) &&
			   !waits_class_as_before(waits, sample, item->now_ns) &&
			   !waits_class_of_peer(waits, sample, item->hint, item->now_ns);
	if (item->class_open)
		item->needs |= NEED_FILE;
}

/* Returns the path that the call was given, or else what its descriptor refers to. */
static const char *file_read(struct lookup *lookup, struct thread *thread,
			     const struct sample *sample, bool compat, int fd, int64_t now_ns)
{
	char target[2 * PATH_MAX];
	ssize_t length = call_path_read(lookup->root, sample, compat, target, sizeof(target));

	if (length <= 0 && fd >= 0) {
		if (!thread->files_requested_ns ||
		    now_ns - thread->files_requested_ns >= LOOKUP_RAN_NS) {
			thread->files_shared =
				fd_are_shared(sample->thread.pid, sample->thread.tid);
			thread->files_requested_ns = now_ns;
		}
		length = fd_link_read(&lookup->fd_dirs, lookup->root, sample->thread.pid,
				      sample->thread.tid, thread->files_shared, fd, now_ns, target,
				      PATH_MAX);
	}
	return length > 0 ? name_transient(target, (size_t)length) : NULL;
}

/* Fills the call's descriptor, and the file that it refers to or the path that the call has. */
void stage_file(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	bool compat = item->hint->compat;
	struct thread *thread;
	int fd, to;

	if (!item->in_call || !(item->needs & NEED_FILE))
		return;
	fd = syscall_fd(sample->call.nr, compat, sample->call.arg);
	to = syscall_fd_to(sample->call.nr, compat, sample->call.arg);
	if (fd < 0 && syscall_path(sample->call.nr, compat).arg < 0)
		return;
	thread = item->thread ? item->thread : thread_find(item);
	/* A thread that was not switched is in the same call, and holds its file even if another
	 * thread closes the descriptor. A thread on a CPU makes new calls without a switch. */
	if (!thread->file_known || thread->file_sequence != item->hint->sequence ||
	    (thread->fd != fd && to < 0) || sample->now.state == STATE_ON) {
		if (to >= 0)
			fd = syscall_fd_waiting(item->lookup->root, sample, compat);
		thread->filename =
			file_read(item->lookup, thread, sample, compat, fd, item->now_ns);
		thread->fd = fd;
		thread->file_sequence = item->hint->sequence;
		thread->file_known = sample->now.state != STATE_ON;
	}
	if (sample->file.fd == ABSENT && thread->fd >= 0)
		sample->file.fd = thread->fd;
	text_take(&sample->file.name, thread->filename);
}

/* Asks about the file of a thread in D: others do not wait for it. */
void stage_page_cache(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	const struct page_cache_facts *facts;

	if (sample->now.state != STATE_DISK || sample->file.fd == ABSENT ||
	    sample->file.size != ABSENT)
		return;
	facts = page_cache_find(&item->lookup->page_cache, item->lookup->root, sample->thread.pid,
				sample->thread.tid, (int)sample->file.fd, item->now_ns);
	sample->file.size = facts->size;
	sample->file.cached = facts->cached;
	sample->file.dirty = facts->dirty;
	sample->file.evicted = facts->evicted;
}

/* Asks about the control group of a thread in D that reads or writes a file. */
void stage_refaults(struct lookup_item *item)
{
	struct sample *sample = item->sample;

	if (sample->now.state == STATE_DISK && sample->file.fd != ABSENT &&
	    sample->file.refault_bps == ABSENT)
		sample->file.refault_bps =
			group_refaults_rate(&item->lookup->refaults, item->lookup->root,
					    sample->thread.pid, sample->thread.tid, item->now_ns);
}

/* Finds the wait class, before stage_wait(): numbers are found sooner than words. */
void stage_class(struct lookup_item *item)
{
	if (item->class_open)
		waits_class(item->lookup->waits, item->sample, item->hint, item->now_ns);
}

void stage_wait(struct lookup_item *item)
{
	waits_fill(item->lookup->waits, item->sample, item->hint, item->needs, item->now_ns);
}

void stage_app(struct lookup_item *item)
{
	apps_fill(item->lookup->apps, item->sample, item->hint, item->needs, item->now_ns);
}
