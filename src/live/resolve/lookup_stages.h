/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stages of a lookup: lookup.c has the table of them, in order. For src/live/resolve only.
 *
 * A stage fills its own fields of the sample, as far as they are absent and the item's needs
 * include them, by what stages above it have filled; it calls no other stage. What it reads serves
 * the thread's later samples (lookup.h says for how long).
 *
 * A stage takes one sample at a time. Facts are kept only if their thread is still in the wait that
 * was sampled once they have been read (live/scan/episodes), and most samples need only stages that
 * have kept what they read before. If facts are read for all 256 samples of a batch, and checked
 * against their threads after that, almost twice as many are lost: 28 % instead of 15 % of those of
 * 60 pairs of threads on pipes that keep two CPUs busy.
 */
#ifndef TSNAP_LIVE_RESOLVE_LOOKUP_STAGES_H
#define TSNAP_LIVE_RESOLVE_LOOKUP_STAGES_H

#include "base/seldom.h"
#include "base/cache.h"
#include "live/resolve/lookup.h"
#include "proc/containers.h"
#include "proc/fd_dirs.h"
#include "proc/page_cache.h"
#include "proc/refaults.h"

#define THREADS_MAX 131072

struct lookup_item;
typedef void lookup_stage_fill(struct lookup_item *item);

#define LOOKUP_STAGES_MAX 32

struct lookup {
	char *root;
	struct cache threads, processes, users, comms, proc_words, page_cache;
	struct group_refaults refaults;
	struct containers containers;
	struct fd_dirs fd_dirs;
	struct waits *waits;
	struct apps *apps;
	task_reader *read_task; /* NULL: none */
	uint64_t planned;	/* needs that plan is for */
	bool plan_of_thread;
	lookup_stage_fill *plan[LOOKUP_STAGES_MAX + 1]; /* stages in order, ended by NULL */
};

/* A sample on its way through the stages. */
struct lookup_item {
	struct lookup *lookup;
	struct sample *sample;
	const struct lookup_hint *hint;
	uint64_t needs;	       /* facts that are wanted; a stage may add what one below it lacks */
	int64_t now_ns;	       /* monotonic */
	bool in_call;	       /* the thread is in a system call */
	bool class_open;       /* the wait class is wanted, and not known yet */
	struct thread *thread; /* cached facts; NULL: no stage of the plan is of_thread */
	bool renamed;	       /* the thread's name changed since it was cached */
	bool task_known;       /* task_uid and groups were read, by read_task() */
	int64_t task_uid;
	uint64_t groups;
};

struct lookup_stage {
	const char *name;
	uint64_t gives; /* needs (NEED_*): the stage is called for any of them */
	uint64_t wants; /* needs that stages above have served, as far as they are wanted */
	bool of_thread; /* the stage is given item->thread, the facts that are kept of the thread */
	lookup_stage_fill *fill;
};

extern const struct lookup_stage lookup_stages[];
extern const size_t lookup_stage_count;

/* call_stages.c: the system call, its file, what the thread waits for, the class of that wait, and
 * what the program says of it. */
lookup_stage_fill stage_workqueue, stage_call, stage_class_by_call, stage_file, stage_page_cache,
	stage_refaults, stage_class, stage_wait, stage_app;
/* thread_stages.c: the thread's waker, process, user, cgroup, namespace and container. */
lookup_stage_fill stage_waker, stage_process, stage_task, stage_user, stage_cgroup, stage_namespace,
	stage_values, stage_container;

/* Facts that are cached of a thread. With -a there is one struct for each thread of the host: 208
 * bytes with malloc(3)'s own. */
struct thread {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	/* time when the facts were read, and what would make them stale */
	int64_t read_ns;
	uint64_t sequence;
	const char *comm;
	uint64_t known;
	/* facts */
	int64_t uid;
	const char *user, *cgroup, *cgroup_others;
	struct sample_process process;
	struct sample_namespace namespace;
	int64_t cgroup_ns;	    /* time when cgroup was read; 0: never */
	uint64_t cgroup_groups;	    /* groups at that time; 0: not known */
	int64_t files_requested_ns; /* time when files_shared was found out */
	/* the file of one episode in a system call */
	uint64_t file_sequence;
	const char *filename;
	int fd;
	bool file_known;
	bool files_shared; /* result of fd_are_shared() */
	bool uid_read;	   /* uid was read since it ran */
	bool cgroup_still; /* it has not run since cgroup_ns */
	bool was_running;
};

void thread_facts_init(struct cache *threads);
/* Returns the thread's entry. Its facts are of this thread and not stale, but may not be known. */
struct thread *thread_find(struct lookup_item *item);

/* Returns the needs that are not known of the thread, and marks them known: the caller reads them.
 */
static inline uint64_t thread_missing(struct thread *thread, uint64_t needs)
{
	uint64_t missing = needs & ~thread->known;

	thread->known |= needs;
	return missing;
}

/* Returns ns to twice that, by the number, so that thousands of sleepers seen in one scan don't all
 * come due in one. */
int64_t lookup_spread_ns(uint64_t number, int64_t ns);

/* Sets a text that is wanted and absent. */
static inline void text_take(const char **field, const char *text)
{
	if (!*field)
		*field = text;
}

#endif
