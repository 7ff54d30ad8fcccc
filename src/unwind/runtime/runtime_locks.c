/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_locks.h"
#include "base/clock.h"
#include "base/cache.h"
#include "base/index.h"
#include "base/memory.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"
#include "unwind/function_name.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/python_memory.h"
#include "unwind/runtime/runtime_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4		     /* files with such names that are read, of one process */
#define LOOK_SHARE 1000		     /* divisor of the time for looking in one process */
#define LOOK_SCAN_NS (2 * NS_PER_MS) /* time in one scan, for all processes; others come later */
#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (120 * NS_PER_SECOND)
/* Time after which a process without such a runtime is looked at again. */
#define OTHER_OLD_NS (60 * NS_PER_SECOND)

/* A process in which a runtime is looked for: the first member of what a module knows of it. */
struct runtime_process {
	struct cache_entry entry; /* key: pid */
	int64_t next_look_ns;
	bool known; /* runtime that was found at the last look */
	uint64_t distance;
	struct runtime_exports exports;
	struct runtime_standing standing;
};

/* Processes in which runtimes of a kind were looked for. */
struct runtime_finder {
	const struct runtime_kind *kind;
	struct runtime_reader reader;
	struct cache processes;
	int64_t scan_ns, spent_ns; /* time that looking took in a scan, of all processes */
};

struct runtime_kind {
	enum edge_kind lock;
	/* Beginnings of the names of its files, with "/" before them; NULL at the end */
	const char *names[3];
	/* True if a file with these exports is such a runtime. */
	bool (*is)(const struct runtime_exports *exports);
	/* True if a process that has such a runtime is one whose locks can be read. */
	bool (*take)(struct runtime_finder *finder, struct runtime_process *process,
		     const struct stack_thread *thread);
	/* Fills lock if the thread waits for one, in a process whose locks can be read. */
	bool (*find)(struct runtime_finder *finder, struct runtime_process *process,
		     const struct stack_thread *thread, const struct runtime_waiter *waiter,
		     struct runtime_lock *lock);
	int64_t old_ns;	      /* time after which a process that has one is looked at again */
	size_t process_bytes; /* of what is known of a process */
	void (*drop)(void *process);
};

static bool has_name(const struct mapping *mapping, const struct runtime_kind *kind)
{
	const char *name = mapping->path ? strrchr(mapping->path, '/') : NULL;

	if (!name || !mapping->inode)
		return false;
	for (const char *const *begin = kind->names; *begin; begin++)
		if (!strncmp(name, *begin, strlen(*begin)))
			return true;
	return false;
}

static bool mapping_take(struct runtime_finder *finder, struct runtime_process *process,
			 const struct mapping *mapping, int fd)
{
	struct elf_file elf = {.fd = fd};
	struct stat file;
	uint64_t address;

	if (fstat(fd, &file))
		return false;
	elf.bytes = (uint64_t)file.st_size;
	if (file_head_request(finder->reader.parser, &elf) ||
	    file_exports_request(finder->reader.parser, &elf, &process->exports) ||
	    !elf_address_of(&elf, mapping->offset, &address))
		return false;
	process->distance = mapping->start - address;
	return finder->kind->is(&process->exports);
}

/* Has a parser read the process' files with such names, until one is such a runtime. */
static bool runtime_find(struct runtime_finder *finder, struct runtime_process *process,
			 const struct stack_thread *thread)
{
	unsigned int files = 0;
	struct process_maps *maps;
	struct cache processes;
	bool found = false;
	int err;

	if (!finder->reader.parser)
		return false;
	process_maps_cache_init(&processes);
	maps = process_maps_get(&processes, finder->reader.proc_root, thread, &err);
	for (size_t i = 0; maps && i < maps->count && !found && files < FILES_MAX; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		int fd = has_name(mapping, finder->kind)
				 ? mapping_open(mapping, finder->reader.proc_root, thread->tid)
				 : -1;

		files += fd >= 0;
		found = fd >= 0 && mapping_take(finder, process, mapping, fd);
		if (fd >= 0)
			close(fd);
	}
	cache_done(&processes);
	return found;
}

/* Returns what is known of the thread's process, which is looked at now if that is due and the scan
 * has time for it. */
static struct runtime_process *runtime_process_get(struct runtime_finder *finder,
						   const struct stack_thread *thread)
{
	int64_t now_ns = thread->now_ns, start_ns, took_ns;
	bool added;
	struct runtime_process *process =
		cache_get(&finder->processes, (uint64_t)thread->pid, now_ns, &added);

	if (finder->scan_ns != now_ns)
		finder->spent_ns = 0;
	finder->scan_ns = now_ns;
	if (now_ns < process->next_look_ns || finder->spent_ns >= LOOK_SCAN_NS)
		return process;
	start_ns = clock_monotonic_ns();
	process->known = runtime_find(finder, process, thread) &&
			 finder->kind->take(finder, process, thread);
	took_ns = clock_monotonic_ns() - start_ns;
	finder->spent_ns += took_ns;
	process->next_look_ns = now_ns + took_ns * LOOK_SHARE +
				(process->known ? finder->kind->old_ns : OTHER_OLD_NS);
	return process;
}

/* True if the scan had no time to look at the thread's process, so that nothing is known of it yet.
 */
static bool runtime_process_due(struct runtime_finder *finder, const struct stack_thread *thread)
{
	const struct runtime_process *process =
		cache_find(&finder->processes, (uint64_t)thread->pid);

	return !process || thread->now_ns >= process->next_look_ns;
}

/* Makes a request about a thread and the runtime of its process, both of which are put into
 * request. Fills that many bytes of answer and returns 0; or returns -errno. */
static int runtime_process_request(struct runtime_finder *finder, struct runtime_process *process,
				   const struct stack_thread *thread,
				   struct runtime_request *request, void *answer, size_t bytes)
{
	ssize_t got;

	request->pid = thread->pid;
	request->tid = thread->tid;
	request->now_ns = thread->now_ns;
	request->distance = process->distance;
	request->exports = process->exports;
	got = runtime_request(&finder->reader, &process->standing, request, NULL, answer, bytes);
	return parser_answer_check(got, bytes);
}

/* --- threads that wait for no lock of a runtime: there are many of them, and no request is made
 * for them again in the same episode, or not soon */

#define RESTING_MAX 65536
/* Times after which a thread is looked at again that may wait for one: as long as it has done so,
 * within these. */
#define LATER_LEAST_NS (1 * NS_PER_SECOND)
#define LATER_MOST_NS (30 * NS_PER_SECOND)

struct resting {
	uint64_t episode;
	int64_t since_ns, until_ns;
};

static bool is_resting(const struct keyed *all, const struct stack_thread *thread, uint64_t episode)
{
	const struct resting *resting = keyed_find(all, sizeof(*resting), (uint64_t)thread->tid);

	return resting && resting->episode == episode && thread->now_ns < resting->until_ns;
}

/* later: the thread may begin to wait for a monitor or lock in this episode. */
static void resting_put(struct keyed *all, const struct stack_thread *thread, uint64_t episode,
			bool later)
{
	struct resting *resting;
	int64_t rest_ns;
	bool added;

	if (all->count >= RESTING_MAX)
		keyed_empty(all);
	resting = keyed_put(all, sizeof(*resting), (uint64_t)thread->tid, &added);
	if (added || resting->episode != episode)
		*resting = (struct resting){.episode = episode, .since_ns = thread->now_ns};
	rest_ns = thread->now_ns - resting->since_ns;
	rest_ns = rest_ns > LATER_LEAST_NS ? rest_ns : LATER_LEAST_NS;
	rest_ns = rest_ns < LATER_MOST_NS ? rest_ns : LATER_MOST_NS;
	resting->until_ns = later ? thread->now_ns + rest_ns : INT64_MAX;
}

/* --- Finds the holder of the GIL that a thread of CPython 3.11 to 3.14 waits for, or of a
 * threading.RLock (3.11 to 3.13).
 *
 * take_gil() and drop_gil() of Python/ceval_gil.c wait on the two condition variables of struct
 * _gil_runtime_state (Include/internal/pycore_gil.h), so that the futex of such a wait lies in one
 * of them; nothing else waits there. `locked` and `last_holder` beside them have its state and its
 * holder. Both are written with `mutex` held, and switch_number counts each change of the holder:
 * if that mutex is free and a second look finds the same number, the holder is right.
 *
 * An RLock knows its owner, but the semaphore that its waiters sleep on does not lead to it: the
 * function does that waits, as it works on the lock.
 */

#define GIL_OLD_NS (5 * NS_PER_SECOND) /* an exec or a new interpreter may have passed unseen */

struct gil_process {
	struct runtime_process process;
	struct gils_answer known;
	struct keyed resting; /* threads that wait for no lock that knows its owner */
	/* Last GIL that was read with its holder's location, for all threads that wait for it in a
	 * scan. */
	int64_t reported_ns;
	uint64_t reported_at;
	struct python_gil reported;
};

static void gils_drop(void *entry)
{
	keyed_done(&((struct gil_process *)entry)->resting);
}

static bool is_interpreter(const struct runtime_exports *exports)
{
	return exports->python[MODULE_PYTHON_RUNTIME];
}

static bool gils_take(struct runtime_finder *gils, struct runtime_process *process,
		      const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_GILS, .anew = true};
	struct gils_answer *known = &((struct gil_process *)process)->known;

	return !runtime_process_request(gils, process, thread, &request, known, sizeof(*known)) &&
	       known->known && known->count <= GILS_MAX;
}

static bool is_within(uint64_t address, uint64_t condition)
{
	return address - condition < sizeof(pthread_cond_t);
}

static bool gil_read(struct runtime_finder *gils, struct gil_process *process,
		     const struct stack_thread *thread, uint64_t address, bool with_location,
		     struct python_gil *gil)
{
	struct runtime_request request = {
		.kind = RUNTIME_GIL, .address = address, .with_location = with_location};
	struct gil_answer answer = {.found = false};

	if (runtime_process_request(gils, &process->process, thread, &request, &answer,
				    sizeof(answer)) ||
	    !answer.found)
		return false;
	*gil = answer.gil;
	gil->location[PYTHON_LOCATION_SIZE - 1] = '\0';
	function_name_clean(gil->location);
	return true;
}

/* Fills gil as of this scan: what was read last is kept. */
static bool gil_describe(struct runtime_finder *gils, struct gil_process *process,
			 const struct stack_thread *thread, uint64_t address,
			 struct python_gil *gil)
{
	if (process->reported_ns != thread->now_ns || process->reported_at != address) {
		process->reported_ns = 0;
		if (!gil_read(gils, process, thread, address, true, &process->reported))
			return false;
		process->reported_ns = thread->now_ns;
		process->reported_at = address;
	}
	*gil = process->reported;
	return true;
}

static bool rlock_find(struct runtime_finder *gils, struct gil_process *process,
		       const struct stack_thread *thread, const struct runtime_waiter *waiter,
		       struct runtime_lock *lock)
{
	struct runtime_request request = {.kind = RUNTIME_PYTHON_LOCK,
					  .address = waiter->futex,
					  .with_location = waiter->with_location};
	struct python_lock_answer answer;

	if (is_resting(&process->resting, thread, waiter->episode))
		return false;
	request.id = (uint64_t)thread_inner_tid(gils->reader.proc_root, thread->tid);
	if (runtime_process_request(gils, &process->process, thread, &request, &answer,
				    sizeof(answer)))
		return false;
	if (answer.requested && !answer.found)
		resting_put(&process->resting, thread, waiter->episode, false);
	if (!answer.found)
		return false;
	lock->kind = EDGE_PYTHON_LOCK;
	lock->address = answer.address;
	lock->holder = (int64_t)answer.holder;
	lock->lost = answer.lost;
	lock->turn = (int64_t)(hash_u64(answer.owner ^ hash_u64(answer.address)) & INT64_MAX);
	snprintf(lock->class, sizeof(lock->class), "RLock");
	answer.location[PYTHON_LOCATION_SIZE - 1] = '\0';
	function_name_clean(answer.location);
	snprintf(lock->location, sizeof(lock->location), "%s", answer.location);
	return true;
}

static bool gil_find(struct runtime_finder *gils, struct runtime_process *process,
		     const struct stack_thread *thread, const struct runtime_waiter *waiter,
		     struct runtime_lock *lock)
{
	struct gil_process *of = (struct gil_process *)process;
	struct python_gil gil;
	uint64_t at = 0;

	for (uint32_t i = 0; !at && i < of->known.count; i++) {
		uint64_t locked = of->known.gils[i] + of->known.locked;

		if (is_within(waiter->futex, locked + CONDITION_AT) ||
		    is_within(waiter->futex, locked + SWITCH_AT))
			at = of->known.gils[i];
	}
	if (!at)
		return rlock_find(gils, of, thread, waiter, lock);
	if (!(waiter->with_location ? gil_describe(gils, of, thread, at, &gil)
				    : gil_read(gils, of, thread, at, false, &gil)))
		return false;
	lock->holder = (int64_t)gil.holder;
	lock->free = !gil.holder;
	lock->turn = (int64_t)(gil.switches & INT64_MAX);
	lock->changing = gil.changing;
	snprintf(lock->location, sizeof(lock->location), "%s", gil.location);
	return true;
}

/* --- Finds the monitor ("synchronized") that a thread of HotSpot, Java 8 and later, waits to
 * enter, or the lock of java.util.concurrent (java_locks.h), and the thread that has it.
 *
 * JavaThread::_current_pending_monitor points to the monitor for all of that wait
 * (ObjectMonitor::enter() in src/hotspot/share/runtime/objectMonitor.cpp), and
 * ObjectMonitor::_owner has the owner: before Java 24 the JavaThread, or an address on its stack if
 * it locked the object there before anybody waited (inflate() in synchronizer.cpp); since 24 the
 * thread's JavaThread::_monitor_owner_id; since 21 it may be ANONYMOUS_OWNER, and the owner is the
 * thread that has the object in its LockStack. java_memory finds the fields.
 */

#define JVM_OLD_NS (30 * NS_PER_SECOND) /* an exec may have passed unseen */
#define LIST_OLD_NS (5 * NS_PER_SECOND) /* threads come and go */

struct monitor_process {
	struct runtime_process process; /* known: a parser knows the layout */
	int64_t next_list_ns;
	bool nested;	      /* the process knows its threads by other ids */
	struct keyed resting; /* threads that wait for no monitor */
};

static void monitors_drop(void *entry)
{
	keyed_done(&((struct monitor_process *)entry)->resting);
}

static bool is_jvm(const struct runtime_exports *exports)
{
	return exports->java[MODULE_JAVA_TYPES];
}

static bool layout_request(struct runtime_finder *monitors, struct runtime_process *process,
			   const struct stack_thread *thread)
{
	struct runtime_request request = {.kind = RUNTIME_JAVA_LAYOUT};
	struct java_layout_answer answer;

	((struct monitor_process *)process)->nested =
		thread_inner_tid(monitors->reader.proc_root, thread->tid) != thread->tid;
	return !runtime_process_request(monitors, process, thread, &request, &answer,
					sizeof(answer)) &&
	       answer.has_monitors;
}

/* Writes "monitor of Order"; nothing: the class of its object is not known. */
static void monitor_name(struct java_monitor *monitor, char *to, size_t bytes)
{
	monitor->object[sizeof(monitor->object) - 1] = '\0';
	function_name_clean(monitor->object);
	if (*monitor->object)
		snprintf(to, bytes, "monitor of %s", monitor->object);
}

static bool monitor_find(struct runtime_finder *monitors, struct runtime_process *process,
			 const struct stack_thread *thread, const struct runtime_waiter *waiter,
			 struct runtime_lock *lock)
{
	struct monitor_process *of = (struct monitor_process *)process;
	struct runtime_request request = {.kind = RUNTIME_JAVA_MONITOR, .episode = waiter->episode};
	struct java_monitor_answer answer;

	if (is_resting(&of->resting, thread, waiter->episode))
		return false;
	request.id =
		(uint64_t)(of->nested ? thread_inner_tid(monitors->reader.proc_root, thread->tid)
				      : thread->tid);
	request.anew = thread->now_ns >= of->next_list_ns;
	if (runtime_process_request(monitors, process, thread, &request, &answer, sizeof(answer)))
		return false;
	if (request.anew)
		of->next_list_ns = thread->now_ns + LIST_OLD_NS;
	if (!answer.known) /* the parser is a new one */
		process->next_look_ns = 0;
	if (answer.requested && !answer.waits)
		resting_put(&of->resting, thread, waiter->episode, answer.later);
	lock->address = answer.monitor.address;
	lock->holder = answer.monitor.holder;
	lock->turn =
		(int64_t)(hash_u64(answer.monitor.owner ^ hash_u64(lock->address)) & INT64_MAX);
	if (answer.waits && *answer.monitor.class) {
		lock->kind = EDGE_JAVA_LOCK;
		answer.monitor.class[sizeof(answer.monitor.class) - 1] = '\0';
		snprintf(lock->class, sizeof(lock->class), "%s", answer.monitor.class);
		function_name_clean(lock->class);
		/* its address changes while it is held */
		lock->turn = (int64_t)(hash_u64(answer.monitor.owner) & INT64_MAX);
	} else {
		lock->free = !answer.monitor.owner;
		monitor_name(&answer.monitor, lock->class, sizeof(lock->class));
	}
	return answer.waits;
}

/* --- all kinds */

static const struct runtime_kind runtime_kinds[] = {
	{
		.lock = EDGE_GIL,
		.names = {"/python", "/libpython"},
		.is = is_interpreter,
		.take = gils_take,
		.find = gil_find,
		.old_ns = GIL_OLD_NS,
		.process_bytes = sizeof(struct gil_process),
		.drop = gils_drop,
	},
	{
		.lock = EDGE_MONITOR,
		.names = {"/libjvm.so"},
		.is = is_jvm,
		.take = layout_request,
		.find = monitor_find,
		.old_ns = JVM_OLD_NS,
		.process_bytes = sizeof(struct monitor_process),
		.drop = monitors_drop,
	},
};

#define KIND_COUNT (sizeof(runtime_kinds) / sizeof(runtime_kinds[0]))

void runtime_locks_init(struct runtime_locks *locks, const char *proc_root, struct parser *parser)
{
	locks->finders = memory_get(KIND_COUNT * sizeof(*locks->finders));
	for (size_t i = 0; i < KIND_COUNT; i++)
		locks->finders[i] = (struct runtime_finder){
			.kind = &runtime_kinds[i],
			.reader = {.proc_root = proc_root, .parser = parser},
			.processes = {.entry_bytes = runtime_kinds[i].process_bytes,
				      .entries_max = PROCESSES_MAX,
				      .drop = runtime_kinds[i].drop},
		};
}

void runtime_locks_done(struct runtime_locks *locks)
{
	for (size_t i = 0; locks->finders && i < KIND_COUNT; i++)
		cache_done(&locks->finders[i].processes);
	free(locks->finders);
	locks->finders = NULL;
}

void runtime_locks_sweep(struct runtime_locks *locks, int64_t now_ns)
{
	for (size_t i = 0; locks->finders && i < KIND_COUNT; i++)
		cache_sweep(&locks->finders[i].processes, now_ns, PROCESS_IDLE_NS);
}

bool runtime_lock_find(void *finder, const struct runtime_waiter *waiter, struct runtime_lock *lock)
{
	const struct runtime_locks *locks = finder;
	const struct stack_thread thread = {
		.pid = waiter->pid, .tid = waiter->tid, .now_ns = waiter->now_ns};

	*lock = (struct runtime_lock){.address = 0};
	for (size_t i = 0; locks->finders && i < KIND_COUNT; i++) {
		struct runtime_finder *runtime = &locks->finders[i];
		struct runtime_process *process = runtime_process_get(runtime, &thread);

		lock->kind = runtime->kind->lock;
		if (process->known && runtime->kind->find(runtime, process, &thread, waiter, lock))
			return true;
		lock->later |= runtime_process_due(runtime, &thread);
	}
	return false;
}
