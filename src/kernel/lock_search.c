/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/lock_search.h"
#include "base/index.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"
#include "kernel/kernel_lock.h"
#include "kernel/lock_symbols.h"
#include "kernel/task_query.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PEEK_WORDS 8
#define LINKS 64      /* entries of a list that one run follows */
#define LIST_RUNS 16  /* runs for one list: it may be longer, then its lock is not found */
#define WAITER_TASK 2 /* the task's word in a waiter: after the two links (kernel/locking) */
#define KINDS 3	      /* of locks whose waiters have their own structs */
/* struct wait_queue_entry (include/linux/wait.h) of whoever waits for a percpu_rw_semaphore, in
 * words: the task, the function that wakes it, and the links. */
#define QUEUE_TASK 1
#define QUEUE_WAKE 2
#define QUEUE_LINKS 3

/* Value of the programs' map. */
struct seen {
	uint64_t words[PEEK_WORDS];
	uint64_t links[LINKS];
};

/* The word that says that somebody waits (kernel/locking): the owner's of a mutex, the count of an
 * rwsem. */
#define MUTEX_WAITERS 1
#define RWSEM_WAITERS 2

struct layout {
	int waiters, owner, count; /* members of the lock; -1: it has none */
};

struct lock_search {
	int peek, follow; /* programs */
	struct layout kinds[KINDS];
	int pid, tgid; /* of a task, one after the other */
	/* of a percpu_rw_semaphore, from 5.7 on; head -1: not known */
	int percpu_head, percpu_readers, percpu_writer, percpu_block;
	struct lock_symbols symbols;
	struct seen *seen;  /* mapped */
	struct index heads; /* where lists of waiters may begin: to a bit for each kind */
};

#define SEEN(member) ((short)offsetof(struct seen, member))

/* Loads a program that gets an address, and begins with register 6 as the map's value, and 7 as the
 * address. The caller's instructions end it. */
#define BEGIN_(map)                                                                  \
	BPF_LOAD_(BPF_REG_7, BPF_REG_1, 0), BPF_STORE_IMM_(BPF_REG_10, -8, 0),       \
		BPF_MAP_(BPF_REG_1, map), BPF_STACK_(BPF_REG_2, -8),                 \
		BPF_CALL_(BPF_FUNC_map_lookup_elem),                                 \
		BPF_OP_(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 1, 0), BPF_EXIT_(), \
		BPF_COPY_(BPF_REG_6, BPF_REG_0)
/* Reads at register 7 into the map's value. */
#define READ_(member, bytes)                                                   \
	BPF_COPY_(BPF_REG_1, BPF_REG_6), BPF_ADD_(BPF_REG_1, SEEN(member)),    \
		BPF_SET_(BPF_REG_2, (bytes)), BPF_COPY_(BPF_REG_3, BPF_REG_7), \
		BPF_CALL_(BPF_FUNC_probe_read_kernel)
#define FOLLOW_(i) READ_(links[i], 8), BPF_LOAD_(BPF_REG_7, BPF_REG_6, SEEN(links[i]))
#define FOLLOW_8_(i)                                                                        \
	FOLLOW_(i), FOLLOW_((i) + 1), FOLLOW_((i) + 2), FOLLOW_((i) + 3), FOLLOW_((i) + 4), \
		FOLLOW_((i) + 5), FOLLOW_((i) + 6), FOLLOW_((i) + 7)
#define END_() BPF_SET_(BPF_REG_0, 0), BPF_EXIT_()

static int peek_load(int map)
{
	const struct bpf_insn program[] = {
		BEGIN_(map),
		READ_(words, sizeof(((struct seen *)0)->words)),
		END_(),
	};

	return bpf_call_load_described(
		&(struct bpf_load){.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
				   .name = "ts_lock_peek",
				   .instructions = program,
				   .count = sizeof(program) / sizeof(program[0])});
}

static int follow_load(int map)
{
	const struct bpf_insn program[] = {
		BEGIN_(map),   FOLLOW_8_(0),  FOLLOW_8_(8),  FOLLOW_8_(16), FOLLOW_8_(24),
		FOLLOW_8_(32), FOLLOW_8_(40), FOLLOW_8_(48), FOLLOW_8_(56), END_(),
	};

	return bpf_call_load_described(
		&(struct bpf_load){.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
				   .name = "ts_lock_follow",
				   .instructions = program,
				   .count = sizeof(program) / sizeof(program[0])});
}

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

int lock_search_open(struct lock_search **search)
{
	struct lock_search *opened = memory_get(sizeof(*opened));
	int map = -1, result = task_query_has_stacks() ? layout_find(opened) : -ENOENT;
	void *seen;

	opened->peek = opened->follow = -1;
	if (!result)
		result = map = bpf_call_map_mappable(sizeof(struct seen), 1);
	if (result >= 0)
		result = bpf_call_map_mapped(map, sizeof(struct seen), &seen);
	if (result >= 0) {
		opened->seen = seen;
		result = opened->peek = peek_load(map);
	}
	if (result >= 0)
		result = opened->follow = follow_load(map);
	if (map >= 0)
		close(map);
	if (result < 0) {
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
	if (search->peek >= 0)
		close(search->peek);
	if (search->follow >= 0)
		close(search->follow);
	if (search->seen)
		munmap(search->seen, sizeof(*search->seen));
	index_clear(&search->heads);
	lock_symbols_done(&search->symbols);
	free(search);
}

/* Reads 64 bytes of the kernel's memory; zeros where it can't be read. They stay until the next
 * call. */
static const char *bytes_at(struct lock_search *search, uint64_t address)
{
	if (bpf_call_run(search->peek, address))
		memset(search->seen->words, 0, sizeof(search->seen->words));
	return (const char *)search->seen->words;
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
static uint64_t lock_of_head(const struct lock_search *search, uint64_t head, uint64_t kinds)
{
	int kind;

	/* the spinlock in a mutex, whose address is on stacks, too, is where a semaphore's would be
	 */
	if (kinds & ~(1u << KERNEL_LOCK_SEMAPHORE))
		kinds &= ~(1u << KERNEL_LOCK_SEMAPHORE);
	if (kinds & (kinds - 1))
		return 0;
	kind = __builtin_ctzll(kinds);
	return (head - (uint64_t)search->kinds[kind].waiters) | (uint64_t)kind;
}

/* Follows a list from one of its entries until it comes to its head. Returns the lock, as above. */
static uint64_t lock_of_list(struct lock_search *search, uint64_t entry)
{
	uint64_t at = entry;

	for (int run = 0; run < LIST_RUNS; run++) {
		if (bpf_call_run(search->follow, at))
			return 0;
		for (int i = 0; i < LINKS; i++) {
			const uint64_t *kinds;

			at = search->seen->links[i];
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

	for (int i = 0; i < LINKS * LIST_RUNS; i++) {
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

/* True if a lock says itself that somebody waits for it. */
static bool has_waiters(uint64_t blocker, uint64_t owner_word, uint64_t count)
{
	switch (blocker & KERNEL_LOCK_KIND) {
	case KERNEL_LOCK_MUTEX:
		return owner_word & MUTEX_WAITERS;
	case KERNEL_LOCK_RWSEM:
		return count & RWSEM_WAITERS;
	default:
		return true;
	}
}

/* Fills who owns a lock, by its task. */
static void owner_fill(struct lock_search *search, struct kernel_lock *lock, uint64_t task,
		       bool sure)
{
	const char *bytes = bytes_at(search, task + (uint64_t)search->pid);
	uint64_t ids = word_in(bytes, 0);
	struct task_stack owner;

	/* the task may be gone, and its memory another's */
	if (!(uint32_t)ids || !task_query_stack((uint32_t)ids, &owner) || owner.task != task)
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
	const struct layout *layout = &search->kinds[lock->blocker & KERNEL_LOCK_KIND];
	const char *bytes = bytes_at(search, lock->blocker & ~(uint64_t)KERNEL_LOCK_KIND);
	uint64_t count = layout->count >= 0 ? word_in(bytes, layout->count) : 0, task;

	lock->owner_word = layout->owner >= 0 ? word_in(bytes, layout->owner) : 0;
	if (!has_waiters(lock->blocker, lock->owner_word, count)) {
		*lock = (struct kernel_lock){0};
		return;
	}
	lock->readers = kernel_lock_readers(lock->blocker, lock->owner_word, count);
	task = lock->owner_word & ~(uint64_t)KERNEL_LOCK_FLAGS;
	if (task)
		owner_fill(search, lock, task,
			   kernel_lock_is_held(lock->blocker, lock->owner_word, count));
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
	if (!task_query_stack(tid, &before))
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
	if (!task_query_stack(tid, &after) || !slept_on(&before, &after))
		return -EAGAIN;
	return lock->blocker ? 0 : -EAGAIN;
}
