/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/lock_search.h"
#include "base/index.h"
#include "base/memory.h"
#include "kernel/btf_types.h"
#include "kernel/field_table.h"
#include "kernel/kernel_lock.h"
#include "kernel/kernel_memory.h"
#include "kernel/lock_symbols.h"
#include "kernel/task_find.h"
#include "kernel/task_query.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_RUNS 16  /* runs for one list: it may be longer, then its lock is not found */
#define WAITER_TASK 2 /* the task's word in a waiter: after the two links (kernel/locking) */
#define KINDS 3	      /* of locks whose waiters have their own structs */
/* struct wait_queue_entry (include/linux/wait.h) of whoever waits for a percpu_rw_semaphore, in
 * words: the task, the function that wakes it, and the links. */
#define QUEUE_TASK 1
#define QUEUE_WAKE 2
#define QUEUE_LINKS 3

/* The word that says that somebody waits (kernel/locking): the owner's of a mutex, from 4.10 on,
 * and the count of an rwsem, from 5.3 on. */
#define MUTEX_WAITERS 1
#define RWSEM_WAITERS 2
#define RWSEM_WRITER_LOCKED 1
#define RWSEM_READERS_SHIFT 8
/* Owner's word of an rwsem before 5.3: it has readers; only 1 until 4.19 */
#define RWSEM_READERS_OWN 3

struct layout {
	int waiters, owner, count; /* members of the lock; -1: it has none */
};

struct lock_search {
	struct kernel_memory *memory;
	struct task_finder *finder; /* NULL: task_query.h finds tasks */
	struct layout kinds[KINDS];
	bool old_mutex; /* until 4.9: a count, and the owner's word is just its task */
	bool old_rwsem; /* until 5.2: the count's halves are those who have it, and who waits */
	int pid, tgid;	/* of a task, one after the other */
	/* of a percpu_rw_semaphore, from 5.7 on; head -1: not known */
	int percpu_head, percpu_readers, percpu_writer, percpu_block;
	struct lock_symbols symbols;
	struct index heads; /* where lists of waiters may begin: to a bit for each kind */
};

static bool offset_find(const struct btf_types *btf, const char *of, const char *member,
			unsigned int bytes, int *offset)
{
	*offset = (int)btf_offset_find(btf, of, member, bytes);
	return *offset >= 0;
}

/* Finds where a percpu_rw_semaphore (include/linux/percpu-rwsem.h) has what its waiters lead to. */
static void percpu_find(struct lock_search *search, const struct btf_types *btf)
{
	int head;

	if (offset_find(btf, "percpu_rw_semaphore", "waiters", 0, &search->percpu_head) &&
	    offset_find(btf, "wait_queue_head", "head", 16, &head) &&
	    offset_find(btf, "percpu_rw_semaphore", "read_count", 8, &search->percpu_readers) &&
	    offset_find(btf, "percpu_rw_semaphore", "writer", 8, &search->percpu_writer) &&
	    offset_find(btf, "percpu_rw_semaphore", "block", 4, &search->percpu_block))
		search->percpu_head += head;
	else
		search->percpu_head = -1;
}

static int layout_find(struct lock_search *search)
{
	struct layout *mutex = &search->kinds[KERNEL_LOCK_MUTEX],
		      *semaphore = &search->kinds[KERNEL_LOCK_SEMAPHORE],
		      *rwsem = &search->kinds[KERNEL_LOCK_RWSEM];
	const struct btf_types *btf;
	int result = btf_kernel(&btf, NULL), task;

	if (result)
		return result;
	mutex->count = semaphore->count = -1;
	percpu_find(search, btf);
	offset_find(btf, "semaphore", "last_holder", 8, &semaphore->owner); /* from 6.16 on */
	/* a kernel with PREEMPT_RT has other locks */
	result = offset_find(btf, "mutex", "wait_list", 16, &mutex->waiters) &&
				 offset_find(btf, "mutex", "owner", 8, &mutex->owner) &&
				 offset_find(btf, "rw_semaphore", "wait_list", 16,
					     &rwsem->waiters) &&
				 offset_find(btf, "rw_semaphore", "owner", 8, &rwsem->owner) &&
				 offset_find(btf, "rw_semaphore", "count", 8, &rwsem->count) &&
				 offset_find(btf, "semaphore", "wait_list", 16,
					     &semaphore->waiters) &&
				 offset_find(btf, "mutex_waiter", "task", 8, &task) &&
				 task == 8 * WAITER_TASK &&
				 offset_find(btf, "rwsem_waiter", "task", 8, &task) &&
				 task == 8 * WAITER_TASK &&
				 offset_find(btf, "task_struct", "pid", 4, &search->pid) &&
				 offset_find(btf, "task_struct", "tgid", 4, &search->tgid) &&
				 search->tgid == search->pid + 4
			 ? 0
			 : -ENOENT;
	btf_kernel_forget();
	return result;
}

/* The same by the layout that the probes were compiled with. */
static int layout_of_fields(struct lock_search *search, const struct field_layout *layout)
{
	static const struct {
		const char *of;
		int kind;
	} rows[KINDS] = {{"mutex", KERNEL_LOCK_MUTEX},
			 {"rw_semaphore", KERNEL_LOCK_RWSEM},
			 {"semaphore", KERNEL_LOCK_SEMAPHORE}};
	bool known = true;

	for (int i = 0; i < KINDS; i++) {
		struct layout *to = &search->kinds[rows[i].kind];

		to->waiters = field_offset_find(layout, rows[i].of, "wait_list");
		to->owner = to->count = -1;
		known &= to->waiters >= 0;
		if (rows[i].kind == KERNEL_LOCK_SEMAPHORE)
			continue;
		to->owner = field_offset_find(layout, rows[i].of, "owner");
		to->count = field_offset_find(layout, rows[i].of, "count");
	}
	search->old_mutex = search->kinds[KERNEL_LOCK_MUTEX].count >= 0;
	/* 5.3 has put the owner before the list, for all configurations */
	search->old_rwsem =
		search->kinds[KERNEL_LOCK_RWSEM].owner < 0 ||
		search->kinds[KERNEL_LOCK_RWSEM].owner > search->kinds[KERNEL_LOCK_RWSEM].waiters;
	search->percpu_head = -1;
	search->pid = field_offset_find(layout, "task_struct", "pid");
	search->tgid = field_offset_find(layout, "task_struct", "tgid");
	return known && search->kinds[KERNEL_LOCK_RWSEM].count >= 0 && search->pid >= 0 &&
			       search->tgid == search->pid + 4
		       ? 0
		       : -ENOENT;
}

int lock_search_open(struct lock_search **search)
{
	struct lock_search *opened = memory_get(sizeof(*opened));
	int result = task_query_has_stacks() ? layout_find(opened) : -ENOENT;

	if (!result)
		result = kernel_memory_open(&opened->memory, false);
	if (result) {
		lock_search_close(opened);
		return result;
	}
	*search = opened;
	return 0;
}

int lock_search_open_by_faults(struct lock_search **search, const struct field_layout *layout)
{
	struct lock_search *opened = memory_get(sizeof(*opened));
	int result = layout_of_fields(opened, layout);

	if (!result)
		result = kernel_memory_open(&opened->memory, true);
	if (!result)
		result = task_finder_open(&opened->finder, opened->memory, layout);
	if (result) {
		lock_search_close(opened);
		return result;
	}
	*search = opened;
	return 0;
}

void lock_search_close(struct lock_search *search)
{
	if (!search)
		return;
	task_finder_close(search->finder);
	kernel_memory_close(search->memory);
	index_clear(&search->heads);
	lock_symbols_done(&search->symbols);
	free(search);
}

static bool stack_get(struct lock_search *search, uint32_t tid, struct task_stack *stack)
{
	return search->finder ? task_find_stack(search->finder, tid, stack)
			      : task_query_stack(tid, stack);
}

static bool is_task_of(struct lock_search *search, uint32_t tid, uint64_t task)
{
	struct task_stack stack;

	if (search->finder)
		return task_find(search->finder, tid) == task;
	return task_query_stack(tid, &stack) && stack.task == task;
}

/* Reads 64 bytes of the kernel's memory; zeros where it can't be read. They stay until the next
 * call. */
static const char *bytes_at(struct lock_search *search, uint64_t address)
{
	return (const char *)kernel_memory_words(search->memory, address);
}

static uint64_t word_in(const char *bytes, int at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static uint64_t word_at(struct lock_search *search, uint64_t address)
{
	return word_in(bytes_at(search, address), 0);
}

uint64_t lock_search_word(struct lock_search *search, uint64_t address)
{
	return word_at(search, address);
}

struct lock_words {
	uint64_t owner, count;
};

/* Gives the words the meaning that they have from 4.10 and 5.3 on. */
static void words_renew(const struct lock_search *search, uint64_t blocker,
			struct lock_words *words)
{
	const uint64_t owner = words->owner, count = words->count;

	if ((blocker & KERNEL_LOCK_KIND) == KERNEL_LOCK_MUTEX && search->old_mutex) {
		words->owner |= (int32_t)count < 0 ? MUTEX_WAITERS : 0;
	} else if ((blocker & KERNEL_LOCK_KIND) == KERNEL_LOCK_RWSEM && search->old_rwsem) {
		words->count = (int64_t)count < 0 ? RWSEM_WAITERS : 0;
		if (owner & RWSEM_READERS_OWN)
			words->count |= (count & INT32_MAX) << RWSEM_READERS_SHIFT;
		else if (owner)
			words->count |= RWSEM_WRITER_LOCKED;
	}
}

static void words_read(struct lock_search *search, uint64_t blocker, struct lock_words *words)
{
	const struct layout *layout = &search->kinds[blocker & KERNEL_LOCK_KIND];
	const char *bytes = bytes_at(search, blocker & ~(uint64_t)KERNEL_LOCK_KIND);

	words->count = layout->count >= 0 ? word_in(bytes, layout->count) : 0;
	words->owner = layout->owner >= 0 ? word_in(bytes, layout->owner) : 0;
	words_renew(search, blocker, words);
}

/* True if a lock says itself that somebody waits for it. */
static bool has_waiters(uint64_t blocker, const struct lock_words *words)
{
	switch (blocker & KERNEL_LOCK_KIND) {
	case KERNEL_LOCK_MUTEX:
		return words->owner & MUTEX_WAITERS;
	case KERNEL_LOCK_RWSEM:
		return words->count & RWSEM_WAITERS;
	default:
		return true;
	}
}

static bool is_kernel_address(uint64_t word)
{
	return word >> 63 && !(word & 7);
}

/* Collects where the lists of the locks may begin whose addresses are on the stack: whoever sleeps
 * for a lock has its address in a register, which the switch has saved there. */
static void heads_collect(struct lock_search *search, const struct task_stack *stack)
{
	index_empty(&search->heads);
	for (size_t i = 0; i < KERNEL_STACK_WORDS; i++)
		for (int kind = 0; kind < KINDS && is_kernel_address(stack->words[i]); kind++)
			*index_put(&search->heads,
				   stack->words[i] + (uint64_t)search->kinds[kind].waiters, NULL) |=
				1u << kind;
}

/* Returns the lock whose list begins there, with its kind in the low bits; 0: it is not known. */
static uint64_t lock_of_head(struct lock_search *search, uint64_t head, uint64_t kinds)
{
	const uint64_t semaphore = 1u << KERNEL_LOCK_SEMAPHORE;
	uint64_t others = kinds & ~semaphore, said = 0;
	int kind;

	/* lists of several kinds lie at the same place before 5.3: the words tell which it is */
	for (int i = 0; others & (others - 1) && i < KINDS; i++) {
		uint64_t lock = (head - (uint64_t)search->kinds[i].waiters) | (uint64_t)i;
		struct lock_words words;

		if (!(others >> i & 1))
			continue;
		words_read(search, lock, &words);
		said |= has_waiters(lock, &words) ? 1u << i : 0;
	}
	if (others & (others - 1))
		others = said;
	/* the spinlock in a mutex, whose address is on stacks, too, is where a semaphore's would be
	 */
	kinds = others ? others : kinds & semaphore;
	if (!kinds || kinds & (kinds - 1))
		return 0;
	kind = __builtin_ctzll(kinds);
	return (head - (uint64_t)search->kinds[kind].waiters) | (uint64_t)kind;
}

/* Follows a list from one of its entries until it comes to its head. Returns the lock, as above. */
static uint64_t lock_of_list(struct lock_search *search, uint64_t entry)
{
	uint64_t at = entry;

	for (int run = 0; run < LIST_RUNS; run++) {
		const uint64_t *links = kernel_memory_links(search->memory, at);

		for (int i = 0; i < MEMORY_LINKS; i++) {
			const uint64_t *kinds;

			at = links[i];
			if (!is_kernel_address(at) || at == entry)
				return 0;
			kinds = index_find(&search->heads, at);
			if (kinds)
				return lock_of_head(search, at, *kinds);
		}
	}
	return 0;
}

static bool is_linked(struct lock_search *search, const struct task_stack *stack, size_t i)
{
	uint64_t next = stack->words[i], before = stack->words[i + 1], at = stack->sp + 8 * i;

	return is_kernel_address(next) && is_kernel_address(before) && next != at &&
	       word_at(search, next + 8) == at && word_at(search, before) == at;
}

/* The percpu_rw_semaphore whose queue has these links: of all entries only the head is not in a
 * waiter, before whose links its function stands. */
static uint64_t percpu_of_queue(struct lock_search *search, uint64_t entry)
{
	uint64_t at = entry;

	for (int i = 0; i < MEMORY_LINKS * LIST_RUNS; i++) {
		at = word_at(search, at);
		if (!is_kernel_address(at) || at == entry)
			return 0;
		if (word_at(search, at - 8) != search->symbols.wake)
			return (at - (uint64_t)search->percpu_head) | KERNEL_LOCK_PERCPU;
	}
	return 0;
}

/* The percpu_rw_semaphore that the task will write when its readers have left: the task is its
 * writer, and its address is on the stack of percpu_down_write(). */
static uint64_t percpu_of_writer(struct lock_search *search, const struct task_stack *stack)
{
	const struct lock_symbols *symbols = &search->symbols;
	const uint64_t *words = stack->words;
	bool writes = false;

	for (size_t i = 0; i < KERNEL_STACK_WORDS; i++)
		writes |= words[i] > symbols->write && words[i] <= symbols->write_end;
	for (size_t i = 0; writes && i < KERNEL_STACK_WORDS; i++)
		if (is_kernel_address(words[i]) && words[i] - stack->sp > sizeof(stack->words) &&
		    word_at(search, words[i] + (uint64_t)search->percpu_writer) == stack->task)
			return words[i] | KERNEL_LOCK_PERCPU | 1;
	return 0;
}

/* Finds the percpu_rw_semaphore that the task waits for; *listed: as lock_of_stack(). */
static uint64_t percpu_of_stack(struct lock_search *search, const struct task_stack *stack,
				bool *listed)
{
	uint64_t lock;

	if (search->percpu_head < 0)
		return 0;
	lock_symbols_read(&search->symbols, "/proc/kallsyms");
	for (size_t i = 0; search->symbols.wake && i + QUEUE_LINKS + 1 < KERNEL_STACK_WORDS; i++) {
		if (stack->words[i + QUEUE_TASK] != stack->task ||
		    stack->words[i + QUEUE_WAKE] != search->symbols.wake ||
		    !is_linked(search, stack, i + QUEUE_LINKS))
			continue;
		*listed = true;
		lock = percpu_of_queue(search, stack->sp + 8 * (i + QUEUE_LINKS));
		if (lock)
			return lock;
	}
	lock = search->symbols.write ? percpu_of_writer(search, stack) : 0;
	*listed |= lock != 0;
	return lock;
}

/* Finds the lock whose list the task is in, by an entry on its stack that is linked in a list.
 * *listed: there is such an entry; its list may change while it is followed, or be too long. */
static uint64_t lock_of_stack(struct lock_search *search, const struct task_stack *stack,
			      bool *listed)
{
	for (size_t i = 0; i + WAITER_TASK < KERNEL_STACK_WORDS; i++) {
		uint64_t lock;

		if (stack->words[i + WAITER_TASK] != stack->task || !is_linked(search, stack, i))
			continue;
		*listed = true;
		heads_collect(search, stack);
		lock = lock_of_list(search, stack->sp + 8 * i);
		if (lock)
			return lock;
	}
	return 0;
}

/* Fills who owns a lock, by its task. */
static void owner_fill(struct lock_search *search, struct kernel_lock *lock, uint64_t task,
		       bool sure)
{
	const char *bytes = bytes_at(search, task + (uint64_t)search->pid);
	uint64_t ids = word_in(bytes, 0);

	/* the task may be gone, and its memory another's */
	if (!(uint32_t)ids || !is_task_of(search, (uint32_t)ids, task))
		return;
	lock->owner_tid = (uint32_t)ids;
	lock->owner_pid = (uint32_t)(ids >> 32);
	lock->sure = sure;
}

/* Number of readers of a percpu_rw_semaphore: each CPU counts its own. 0: not known. */
static uint32_t percpu_count(struct lock_search *search, uint64_t counts)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int32_t sum = 0;

	for (long cpu = 0; search->symbols.cpu_offsets && cpu < cpus; cpu++)
		sum += (int32_t)word_at(
			search,
			counts + word_at(search, search->symbols.cpu_offsets + 8 * (uint64_t)cpu));
	return sum > 0 ? (uint32_t)sum : 0;
}

/* A percpu_rw_semaphore knows its writer only while that waits for readers to leave. All others
 * wait for the writer then, and it for the readers. */
static void percpu_read(struct lock_search *search, struct kernel_lock *lock, uint64_t waiter)
{
	const uint64_t at = lock->blocker & ~(uint64_t)KERNEL_LOCK_KIND;
	uint64_t writer = word_at(search, at + (uint64_t)search->percpu_writer);

	if (!(uint32_t)word_at(search, at + (uint64_t)search->percpu_block)) {
		*lock = (struct kernel_lock){0};
		return;
	}
	lock->owner_word = writer;
	if (writer == waiter)
		lock->readers = percpu_count(
			search, word_at(search, at + (uint64_t)search->percpu_readers));
	else if (writer)
		owner_fill(search, lock, writer, true);
}

/* Reads who owns a lock, if it is one. */
static void owner_read(struct lock_search *search, struct kernel_lock *lock)
{
	struct lock_words words;
	uint64_t task;

	words_read(search, lock->blocker, &words);
	lock->owner_word = words.owner;
	if (!has_waiters(lock->blocker, &words)) {
		*lock = (struct kernel_lock){0};
		return;
	}
	lock->readers = kernel_lock_readers(lock->blocker, words.owner, words.count);
	task = words.owner & ~(uint64_t)KERNEL_LOCK_FLAGS;
	if (task)
		owner_fill(search, lock, task,
			   kernel_lock_is_held(lock->blocker, words.owner, words.count));
}

static bool slept_on(const struct task_stack *before, const struct task_stack *after)
{
	return before->task == after->task && !before->running && !after->running &&
	       before->switches == after->switches && before->preempted == after->preempted;
}

const struct lock_symbols *lock_search_symbols(struct lock_search *search)
{
	lock_symbols_read(&search->symbols, "/proc/kallsyms");
	return &search->symbols;
}

int lock_search_read(struct lock_search *search, uint32_t tid, bool interruptible,
		     struct kernel_lock *lock)
{
	struct task_stack before, after;
	bool listed = false;

	*lock = (struct kernel_lock){0};
	if (!stack_get(search, tid, &before))
		return -ESRCH;
	lock->blocker = before.running ? 0 : lock_of_stack(search, &before, &listed);
	if (!listed && !before.running && !interruptible)
		lock->blocker = percpu_of_stack(search, &before, &listed);
	if (!listed)
		return 0;
	if (lock->blocker & KERNEL_LOCK_PERCPU)
		percpu_read(search, lock, before.task);
	else if (lock->blocker)
		owner_read(search, lock);
	if (!stack_get(search, tid, &after) || !slept_on(&before, &after))
		return -EAGAIN;
	return lock->blocker ? 0 : -EAGAIN;
}
