/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/wait_object.h"
#include "base/memory.h"
#include "proc/processes.h"
#include "proc/file_type.h"
#include "proc/proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_ADDRESS(name) &name##_object,
static const struct wait_object *const objects[] = {WAIT_OBJECTS(OBJECT_ADDRESS)};

#define OBJECT_COUNT (sizeof(objects) / sizeof(*objects))

/* --- how a wait's object is found */

struct object_name {
	const char *name;
	const struct wait_call *call; /* NULL: the name is a kernel function's */
	const struct wait_object *object;
};

/* Names of all objects, sorted. */
static struct name_index {
	struct object_name *names;
	size_t count, capacity;
} calls, functions;

static int names_compare(const void *a, const void *b)
{
	return strcmp(((const struct object_name *)a)->name, ((const struct object_name *)b)->name);
}

static void names_add(struct name_index *index, const char *name, const struct wait_call *call,
		      const struct wait_object *object)
{
	index->names = memory_grow(index->names, &index->capacity, index->count + 1,
				   sizeof(*index->names));
	index->names[index->count++] = (struct object_name){name, call, object};
}

static void names_sort(void)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++) {
		const char *const *function = objects[i]->functions;

		for (const struct wait_call *call = objects[i]->calls; call && call->name; call++)
			names_add(&calls, call->name, call, objects[i]);
		while (function && *function)
			names_add(&functions, *function++, NULL, objects[i]);
	}
	qsort(calls.names, calls.count, sizeof(*calls.names), names_compare);
	qsort(functions.names, functions.count, sizeof(*functions.names), names_compare);
}

static const struct object_name *name_find(const struct name_index *index, const char *name)
{
	const struct object_name key = {.name = name};

	if (!calls.count)
		names_sort();
	return bsearch(&key, index->names, index->count, sizeof(*index->names), names_compare);
}

const struct wait_call *wait_call_find(const char *name, const struct wait_object **object)
{
	const struct object_name *found = name_find(&calls, name);

	*object = found ? found->object : NULL;
	return found ? found->call : NULL;
}

bool wait_has_limit(const struct sample *sample)
{
	const struct wait_object *object;
	const struct wait_call *call = wait_call_find(sample->call.name, &object);

	return call && call->limit && sample->call.arg[call->limit];
}

const struct wait_object *wait_object_of_function(const char *function)
{
	char name[64];
	const struct object_name *found;

	/* compilers add .isra.0, .constprop.0 and others */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(function, "."), function);
	found = name_find(&functions, name);
	return found ? found->object : NULL;
}

const struct wait_object *wait_object_of_link(const char *link, const struct wait_link **found)
{
	const struct wait_object *object = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < OBJECT_COUNT; i++)
		for (const struct wait_link *row = objects[i]->links; row && row->beginning;
		     row++) {
			size_t length = strlen(row->beginning);

			if ((object && length <= longest) || strncmp(link, row->beginning, length))
				continue;
			object = objects[i];
			*found = row;
			longest = length;
		}
	return object;
}

static bool wait_is_for(struct wait *wait, const struct wait_object *object)
{
	wait->facts.object = object;
	wait->facts.kind = object->kind;
	return true;
}

bool wait_describe_of_stack(struct wait *wait, const char *stack, bool runs)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++)
		if (objects[i]->of_stack && objects[i]->of_stack(wait, stack, runs))
			return wait_is_for(wait, objects[i]);
	return false;
}

bool wait_describe_of_sleeper(struct wait *wait)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++)
		if (objects[i]->of_sleeper && objects[i]->of_sleeper(wait))
			return wait_is_for(wait, objects[i]);
	return false;
}

bool wait_describe_of_idle_set(struct wait *wait)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++)
		if (objects[i]->of_idle_set && objects[i]->of_idle_set(wait))
			return wait_is_for(wait, objects[i]);
	return false;
}

void wait_describe(struct wait *wait, const struct wait_object *object, wait_describer *describe)
{
	wait->facts.object = object;
	wait->facts.kind = object->kind;
	describe(wait);
}

void file_describe(struct wait *wait)
{
	const struct wait_object *object;
	const struct wait_link *row;
	const char *type = NULL;

	wait->facts.object = NULL;
	wait->facts.kind = WAIT_UNKNOWN;
	if (!wait->link)
		return;
	object = wait_object_of_link(wait->link, &row);
	if (*wait->link == '/' && wait->fd >= 0)
		type = file_type_word(wait->waits->root, wait->pid, wait->tid, wait->fd);
	for (size_t i = 0; type && i < OBJECT_COUNT; i++)
		if (objects[i]->file_type && !strcmp(objects[i]->file_type, type))
			object = objects[i];
	wait_describe(wait, object, object->describe);
}

bool descriptor_describe(struct wait *wait, int fd)
{
	char name[32], target[PATH_MAX];
	struct wait part = *wait;
	const struct wait_link *row = NULL;
	const struct wait_object *object;

	snprintf(name, sizeof(name), "fd/%d", fd);
	part.fd = fd;
	part.link = target;
	if (proc_link_read(wait->waits->root, wait->pid, wait->tid, name, target, sizeof(target)) <=
	    0) {
		text_add_format(wait->text, "fd %d", fd);
		return false;
	}
	if (wait_object_of_link(target, &row)->nests)
		text_add_string(wait->text, row->word);
	else
		file_describe(&part);
	wait->facts = part.facts;
	wait->socket = part.socket;
	wait->pending |= part.pending;
	object = part.facts.object;
	return object && object->is_own && object->is_own(&part);
}

bool wait_is_own(const struct wait *wait)
{
	(void)wait;
	return true;
}

uint64_t wait_end(enum edge_kind kind, int64_t inode)
{
	return hash_u64((uint64_t)inode ^ (uint64_t)kind << 56) | 1;
}

uint64_t wait_end_of_link(const char *link)
{
	const struct wait_link *row;
	const struct wait_object *object = link ? wait_object_of_link(link, &row) : NULL;

	return object && object->ends != EDGE_NONE
		       ? wait_end(object->ends, atoll(link + strlen(row->beginning)))
		       : 0;
}

void edge_to_end(enum edge_kind kind, const struct wait_facts *facts, const struct sample *sample,
		 struct edge *edge)
{
	edge->kind = kind;
	if (facts->pid == ABSENT || facts->pid == sample->thread.pid)
		return;
	edge->pid = facts->pid;
	edge->tid = facts->tid;
	edge->to_end = true;
	edge->inode = facts->inode;
	edge->sure = SURE_LIKELY;
}

/* --- for describers */

bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size)
{
	return user_memory_read_again(&wait->waits->memory, wait->waits->root, wait->pid, wait->tid,
				      wait->now_ns, address, bytes, size) == (ssize_t)size;
}

const char *wait_fdinfo(const struct wait *wait, bool *cut)
{
	return proc_fdinfo_read(wait->waits->root, wait->pid, wait->tid, wait->fd, cut);
}

int64_t wait_fdinfo_number(const struct wait *wait, const char *key, int base)
{
	const char *at = strstr(wait_fdinfo(wait, NULL), key);

	return at ? strtoll(at + strlen(key), NULL, base) : ABSENT;
}

uint64_t wait_address(const struct wait *wait, int arg)
{
	return wait->compat ? (uint32_t)wait->arg[arg] : (uint64_t)wait->arg[arg];
}

bool wait_shares_namespace(const struct wait *wait, const char *kind, int64_t pid)
{
	char name[16], own[64], other[64];

	snprintf(name, sizeof(name), "ns/%s", kind);
	return proc_link_read(wait->waits->root, wait->pid, wait->tid, name, own, sizeof(own)) >
		       0 &&
	       proc_link_read(wait->waits->root, 0, pid ? pid : proc_own_pid(wait->waits->root),
			      name, other, sizeof(other)) > 0 &&
	       !strcmp(own, other);
}

void wait_add_thread(struct wait *wait, const char *before, int64_t tid)
{
	const char *comm;

	if (wait->numbers_only)
		return;
	comm = comm_find(wait->waits->comms, wait->waits->root, tid, wait->now_ns);
	text_add_format(wait->text, "%s%lld%s%s", before, (long long)tid, comm ? " " : "",
			comm ? comm : "");
}

bool wait_mount(const struct wait *wait, struct mount_facts *mount)
{
	return mount_find(wait->waits->root, wait->pid, wait->tid, wait->fd, wait->link, mount);
}

int64_t wait_find_file(struct wait *wait, const struct holder_file *file, const char *which)
{
	uint32_t count = 0;
	int64_t pid = holders_find_file(&wait->waits->holders, file, which, wait->pid, wait->now_ns,
					&count, &wait->pending);

	if (pid)
		wait->facts.count = count;
	return pid;
}

void wait_on_server(struct wait *wait, const char *before, int64_t pid)
{
	if (pid <= 0)
		return;
	wait->facts.pid = pid;
	wait_add_thread(wait, before, pid);
}

void server_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge)
{
	if (facts->pid == ABSENT || facts->pid == sample->thread.pid)
		return;
	edge->kind = EDGE_SERVER;
	edge->pid = facts->pid;
	edge->sure = facts->count > 1 ? SURE_LIKELY : SURE_CERTAIN;
}

/* --- threads of other pid namespaces */

#define TASKS_MAX 256 /* limit of threads of a process that are read; each costs some 10 us */
#define OUTER_MAX 131072

/* A thread and whether it has ids of another pid namespace. A thread never leaves its pid
 * namespace: setns(2) and unshare(2) change that of children only, pid_namespaces(7). */
struct outer_thread {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	bool known; /* the thread has no other ids than those that /proc shows */
};

static struct cache outer_threads = {.entry_bytes = sizeof(struct outer_thread),
				     .entries_max = OUTER_MAX};

/* The thread's id in its own pid namespace; 0: the thread is gone. nested: its id or its process's
 * differs from the one that /proc shows. */
static int64_t inner_id(const struct wait *wait, int64_t tid, bool *nested)
{
	int64_t inner_pid = wait->pid, inner_tid = tid;
	int err =
		proc_namespace_ids_read(wait->waits->root, wait->pid, tid, &inner_pid, &inner_tid);

	/* -EINVAL: the kernel does not show these ids (before 4.1) */
	*nested = inner_pid != wait->pid || inner_tid != tid;
	return err && err != -EINVAL ? 0 : inner_tid;
}

int64_t thread_of_inner(const struct wait *wait, int64_t inner)
{
	int64_t tid, found = 0;
	bool nested, added;
	DIR *tasks;
	struct outer_thread *outer =
		cache_get(&outer_threads, (uint64_t)wait->tid, wait->now_ns, &added);

	if (outer->known && outer->start_ns == wait->start_ns)
		return inner;
	outer->known = false;
	if (!inner_id(wait, wait->tid, &nested))
		return 0;
	if (!nested) {
		outer->start_ns = wait->start_ns;
		outer->known = true;
		return inner;
	}
	tasks = proc_dir_open(wait->waits->root, wait->pid, "task");
	for (int i = 0; i < TASKS_MAX && !found && (tid = proc_dir_next(tasks)) >= 0; i++)
		if (inner_id(wait, tid, &nested) == inner)
			found = tid;
	if (tasks)
		closedir(tasks);
	return found;
}

void wait_objects_sweep(int64_t now_ns, int64_t idle_ns)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++) {
		if (objects[i]->known)
			cache_sweep(objects[i]->known, now_ns,
				    objects[i]->known_ns ? objects[i]->known_ns : idle_ns);
		if (objects[i]->sweep)
			objects[i]->sweep(now_ns, idle_ns);
	}
	cache_sweep(&outer_threads, now_ns, idle_ns);
}

void wait_objects_done(void)
{
	for (size_t i = 0; i < OBJECT_COUNT; i++) {
		if (objects[i]->known)
			cache_done(objects[i]->known);
		if (objects[i]->done)
			objects[i]->done();
	}
	cache_done(&outer_threads);
	free(calls.names);
	free(functions.names);
	calls = functions = (struct name_index){0};
}
