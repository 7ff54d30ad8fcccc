/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/task_query.h"
#include "base/clock.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"
#include "kernel/host.h"
#include "keeper/avoid.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* kernel/locking/rwsem.c: a writer has it, others wait, or one of them is next: a reader waits. */
#define RWSEM_WRITER 1
#define RWSEM_BUSY 7
#define OWNER_FLAGS 7 /* flags in the owner's word, also of a mutex (kernel/locking/mutex.h) */

#define UPID_BYTES 16	  /* struct upid { int nr; struct pid_namespace *ns; }, from 4.15 on */
#define LAST_NS 100000	  /* time for which the last answer has a thread's pointer */
#define RETURNS (1 << 30) /* in place of a descriptor: the uretprobes that are pending */
#define RETURNS_MAX 16
#define STACK (1 << 29) /* likewise: the kernel stack */
#define PIECE_BYTES 256 /* of the stack; a piece that reaches beyond its end is not read */
#define NODE_SLOTS 64	/* slots of an xa_node; 16 with CONFIG_BASE_SMALL, which is left out */

/* Answer of the program. */
struct answer {
	uint64_t pid;
	uint64_t memory_count, memory_owner;
	uint64_t exec_count, exec_owner;
	uint64_t memory_state, exec_state; /* state of the owner's task; 0: it runs, or will */
	uint64_t memory, memory_after;	   /* address of the memory map before and after; 0: none */
	uint64_t set_owner, set_state;	   /* of the descriptor's epoll set */
	uint64_t parent_ns; /* of the user namespace of the descriptor's file system */
	uint64_t uid, groups, cpu, policy;
	uint64_t thread_pointer; /* as it was when the task left its CPU */
	struct user_return returns[RETURNS_MAX];
};

/* Value of the program's map. */
struct answers {
	struct answer answer;
	struct task_stack stack;
};

#define ANSWER(member) ((short)offsetof(struct answers, answer.member))
#define STACK_AT(member) ((short)offsetof(struct answers, stack.member))

struct offsets {
	int thread_pid, pid_links, group_leader, mm, signal, state;
	int cred, uid, groups, policy;
	int thread_pointer;
	int cpu, cpu_bytes; /* 0 bytes: the kernel is for one CPU */
	int level, numbers, tasks;
	int ids, node_shift, node_slots;
	int mmap_lock, exec_lock, count, owner;
	int mutex_owner; /* -1: exec_lock is an rwsem */
	int files, table, table_size, descriptors, inode, file_system, user_ns, parent_ns;
	int private_data;
	int set_file, set_owner; /* of an epoll set: its file, and the owner of its mutex */
	int uprobes, instances, return_sp, return_address, next_instance;
	int sp, on_cpu, switches, preempted;
};

static struct {
	pthread_mutex_t mutex;
	int program;
	bool exec_is_mutex, knows_files, knows_returns, knows_pointer, knows_stack;
	struct answers *answers;   /* mapped */
	int64_t last_tid, last_ns; /* of the last answer; 0: there is none */
	uint64_t last_pointer;
} locks = {.mutex = PTHREAD_MUTEX_INITIALIZER, .program = -1};

/* Adds the offset of a member to *offset. */
static bool offset_add(const struct btf_types *btf, const char *of, const char *member,
		       unsigned int bytes, int *offset)
{
	int64_t at = btf_offset_find(btf, of, member, bytes);

	*offset += (int)at;
	return at >= 0;
}

static bool offsets_find(const struct btf_types *btf, struct offsets *at)
{
	*at = (struct offsets){.mutex_owner = -1};
	if (!offset_add(btf, "task_struct", "thread_pid", 8, &at->thread_pid) ||
	    !offset_add(btf, "task_struct", "pid_links", 8, &at->pid_links) ||
	    !offset_add(btf, "task_struct", "group_leader", 8, &at->group_leader) ||
	    !offset_add(btf, "task_struct", "mm", 8, &at->mm) ||
	    !offset_add(btf, "task_struct", "signal", 8, &at->signal) ||
	    !offset_add(btf, "task_struct", "real_cred", 8, &at->cred) ||
	    !offset_add(btf, "cred", "euid", 4, &at->uid) ||
	    !offset_add(btf, "task_struct", "policy", 4, &at->policy) ||
	    !offset_add(btf, "pid", "level", 4, &at->level) ||
	    !offset_add(btf, "pid", "numbers", 0, &at->numbers) ||
	    !offset_add(btf, "pid", "tasks", 8, &at->tasks) ||
	    !offset_add(btf, "pid_namespace", "idr", 8, &at->ids) ||
	    !offset_add(btf, "idr", "idr_rt", 8, &at->ids) ||
	    !offset_add(btf, "xarray", "xa_head", 8, &at->ids) ||
	    !offset_add(btf, "xa_node", "shift", 1, &at->node_shift) ||
	    !offset_add(btf, "xa_node", "slots", 8 * NODE_SLOTS, &at->node_slots) ||
	    !offset_add(btf, "mm_struct", "mmap_lock", 8, &at->mmap_lock) ||
	    !offset_add(btf, "rw_semaphore", "count", 8, &at->count) ||
	    !offset_add(btf, "rw_semaphore", "owner", 8, &at->owner))
		return false;
	at->cpu_bytes = 4;
	if (!offset_add(btf, "task_struct", "cpu", 4, &at->cpu)) { /* until 5.15 */
		at->cpu = 0;
		if (!offset_add(btf, "task_struct", "thread_info", 0, &at->cpu) ||
		    !offset_add(btf, "thread_info", "cpu", 4, &at->cpu))
			at->cpu_bytes = 0;
	}
	/* without cgroups any other word that stays will do */
	if (!offset_add(btf, "task_struct", "cgroups", 8, &at->groups))
		at->groups = at->signal;
	if (!offset_add(btf, "task_struct", "__state", 4, &at->state)) { /* until 5.13 */
		at->state = 0;
		if (!offset_add(btf, "task_struct", "state", 4, &at->state))
			return false;
	}
	if (offset_add(btf, "signal_struct", "exec_update_lock", 8, &at->exec_lock))
		return true;
	at->exec_lock = at->mutex_owner = 0;
	return offset_add(btf, "signal_struct", "exec_update_mutex", 8, &at->exec_lock) &&
	       offset_add(btf, "mutex", "owner", 8, &at->mutex_owner);
}

static bool file_offsets_find(const struct btf_types *btf, struct offsets *at)
{
	return offset_add(btf, "task_struct", "files", 8, &at->files) &&
	       offset_add(btf, "files_struct", "fdt", 8, &at->table) &&
	       offset_add(btf, "fdtable", "max_fds", 4, &at->table_size) &&
	       offset_add(btf, "fdtable", "fd", 8, &at->descriptors) &&
	       offset_add(btf, "file", "f_inode", 8, &at->inode) &&
	       offset_add(btf, "inode", "i_sb", 8, &at->file_system) &&
	       offset_add(btf, "super_block", "s_user_ns", 8, &at->user_ns) &&
	       offset_add(btf, "user_namespace", "parent", 8, &at->parent_ns) &&
	       offset_add(btf, "file", "private_data", 8, &at->private_data) &&
	       offset_add(btf, "eventpoll", "file", 8, &at->set_file) &&
	       offset_add(btf, "eventpoll", "mtx", 8, &at->set_owner) &&
	       offset_add(btf, "mutex", "owner", 8, &at->set_owner);
}

static bool return_offsets_find(const struct btf_types *btf, struct offsets *at)
{
	return offset_add(btf, "task_struct", "utask", 8, &at->uprobes) &&
	       offset_add(btf, "uprobe_task", "return_instances", 8, &at->instances) &&
	       offset_add(btf, "return_instance", "stack", 8, &at->return_sp) &&
	       offset_add(btf, "return_instance", "orig_ret_vaddr", 8, &at->return_address) &&
	       offset_add(btf, "return_instance", "next", 8, &at->next_instance);
}

/* Finds where a task keeps the register that its thread-local storage is found by; on arm64 that is
 * the first member of a struct without a name (arch/arm64/include/asm/processor.h). */
static bool pointer_offset_find(const struct btf_types *btf, struct offsets *at)
{
#if defined(__aarch64__)
	const char *const word = "uw";
	const unsigned int bytes = 0;
#else
	const char *const word = "fsbase";
	const unsigned int bytes = 8;
#endif

	if (offset_add(btf, "task_struct", "thread", 0, &at->thread_pointer) &&
	    offset_add(btf, "thread_struct", word, bytes, &at->thread_pointer))
		return true;
	at->thread_pointer = 0;
	return false;
}

/* Finds where a task keeps its stack pointer while it is on no CPU, and whether it is. */
static bool stack_offsets_find(const struct btf_types *btf, struct offsets *at)
{
	return offset_add(btf, "task_struct", "thread", 0, &at->sp) &&
#if defined(__aarch64__)
	       offset_add(btf, "thread_struct", "cpu_context", 0, &at->sp) &&
	       offset_add(btf, "cpu_context", "sp", 8, &at->sp) &&
#else
	       offset_add(btf, "thread_struct", "sp", 8, &at->sp) &&
#endif
	       offset_add(btf, "task_struct", "on_cpu", 4, &at->on_cpu) &&
	       offset_add(btf, "task_struct", "nvcsw", 8, &at->switches) &&
	       offset_add(btf, "task_struct", "nivcsw", 8, &at->preempted);
}

enum { KEY = -4, WORD = -16, NUMBER = -24, DESCRIPTOR = -32 };

/* Reads that many bytes at base + at into a register: eight instructions. */
#define READ_(to, bytes, base, at)                                                \
	BPF_STORE_IMM_(BPF_REG_10, WORD, 0), BPF_STACK_(BPF_REG_1, WORD),         \
		BPF_SET_(BPF_REG_2, (bytes)), BPF_COPY_(BPF_REG_3, (base)),       \
		BPF_ADD_(BPF_REG_3, (at)), BPF_CALL_(BPF_FUNC_probe_read_kernel), \
		BPF_LOAD_((to), BPF_REG_10, WORD)
#define ANSWER_(member, bytes, base, at) \
	READ_(BPF_REG_1, bytes, base, at), BPF_STORE_(BPF_REG_6, ANSWER(member), BPF_REG_1)
/* Reads the state of the task whose owner's word is in register 1. */
#define OWNER_STATE_(name, state)                                               \
	BY_(BPF_AND, BPF_REG_1, ~OWNER_FLAGS), BPF_COPY_(BPF_REG_5, BPF_REG_1), \
		ANSWER_(name##_state, 4, BPF_REG_5, state)
/* Reads the words of a lock, and the state of the task that has it. */
#define LOCK_(name, base, count, owner, state)                                        \
	ANSWER_(name##_count, 8, base, count), ANSWER_(name##_owner, 8, base, owner), \
		OWNER_STATE_(name, state)
#define JUMP_(condition, reg, value, over) \
	BPF_OP_(BPF_JMP | (condition) | BPF_K, (reg), 0, (over), (value))
#define WITH_(operation, dst, src) BPF_OP_(BPF_ALU64 | (operation) | BPF_X, (dst), (src), 0, 0)
#define BY_(operation, dst, value) BPF_OP_(BPF_ALU64 | (operation) | BPF_K, (dst), 0, 0, (value))

/* Goes from a node of the tree of ids (an xarray) to what it has for the id, unless this is the
 * leaf already: the low bits of a node are 2. */
#define LEVEL_(at)                                                                             \
	BPF_COPY_(BPF_REG_1, BPF_REG_7), BY_(BPF_AND, BPF_REG_1, 3),                           \
		JUMP_(BPF_JNE, BPF_REG_1, 2, 23), BPF_ADD_(BPF_REG_7, -2),                     \
		READ_(BPF_REG_4, 1, BPF_REG_7, (at)->node_shift), BY_(BPF_AND, BPF_REG_4, 63), \
		BPF_COPY_(BPF_REG_1, BPF_REG_9), WITH_(BPF_RSH, BPF_REG_1, BPF_REG_4),         \
		BY_(BPF_AND, BPF_REG_1, NODE_SLOTS - 1), BY_(BPF_LSH, BPF_REG_1, 3),           \
		WITH_(BPF_ADD, BPF_REG_7, BPF_REG_1),                                          \
		READ_(BPF_REG_7, 8, BPF_REG_7, (at)->node_slots)

/* Reads the pending uretprobe at register 7, and goes to the one of the caller next further out: 26
 * instructions. */
#define RETURN_(i, at)                                                           \
	ANSWER_(returns[i].sp, 8, BPF_REG_7, (at)->return_sp),                   \
		ANSWER_(returns[i].address, 8, BPF_REG_7, (at)->return_address), \
		READ_(BPF_REG_7, 8, BPF_REG_7, (at)->next_instance)
#define RETURNS_4_(i, at) \
	RETURN_(i, at), RETURN_((i) + 1, at), RETURN_((i) + 2, at), RETURN_((i) + 3, at)

/* Reads a word of the task into the answer about its stack: nine instructions. */
#define TASK_(member, bytes, at) \
	READ_(BPF_REG_1, bytes, BPF_REG_8, at), BPF_STORE_(BPF_REG_6, STACK_AT(member), BPF_REG_1)
/* Reads a piece of the stack, whose pointer is register 7: six instructions. */
#define PIECE_(i)                                                                                \
	BPF_COPY_(BPF_REG_1, BPF_REG_6), BPF_ADD_(BPF_REG_1, STACK_AT(words) + (i)*PIECE_BYTES), \
		BPF_SET_(BPF_REG_2, PIECE_BYTES), BPF_COPY_(BPF_REG_3, BPF_REG_7),               \
		BPF_ADD_(BPF_REG_3, (i)*PIECE_BYTES), BPF_CALL_(BPF_FUNC_probe_read_kernel)
_Static_assert(KERNEL_STACK_WORDS * 8 == 4 * PIECE_BYTES, "four pieces");

/* Loads a program that gets a thread's id, as /proc shows it, as the low half of its argument, and
 * 0, 1 + one of its descriptors, RETURNS or STACK as the high half. It finds the thread as the
 * kernel does, in the ids of /proc's pid namespace: an ancestor of tsnap's own, `up` levels above
 * it. It runs in an RCU read section, in which no task, struct pid or table of descriptors is
 * freed.
 *
 * Register 6: the answer; 7: an address on the way; 8: the thread's task; 9: the id, then the
 * memory map, then the descriptor. */
static int program_load(const struct offsets *at, int map, int up)
{
	const int exec_count = at->exec_lock + (at->mutex_owner < 0 ? at->count : at->mutex_owner),
		  exec_owner = at->exec_lock + (at->mutex_owner < 0 ? at->owner : at->mutex_owner);
	const struct bpf_insn program[] = {
		BPF_LOAD_(BPF_REG_9, BPF_REG_1, 0),
		BPF_COPY_(BPF_REG_1, BPF_REG_9),
		BY_(BPF_RSH, BPF_REG_1, 32),
		BPF_STORE_(BPF_REG_10, DESCRIPTOR, BPF_REG_1),
		BY_(BPF_AND, BPF_REG_9, INT32_MAX),
		BPF_STORE_IMM_(BPF_REG_10, -8, 0),
		BPF_MAP_(BPF_REG_1, map),
		BPF_STACK_(BPF_REG_2, KEY),
		BPF_CALL_(BPF_FUNC_map_lookup_elem),
		JUMP_(BPF_JNE, BPF_REG_0, 0, 1),
		BPF_EXIT_(),
		BPF_COPY_(BPF_REG_6, BPF_REG_0),
		/* the namespace, and where a struct pid has its number in it */
		BPF_CALL_(BPF_FUNC_get_current_task),
		READ_(BPF_REG_7, 8, BPF_REG_0, at->thread_pid),
		READ_(BPF_REG_8, 4, BPF_REG_7, at->level),
		BPF_ADD_(BPF_REG_8, -up),
		BY_(BPF_MUL, BPF_REG_8, UPID_BYTES),
		BPF_ADD_(BPF_REG_8, at->numbers),
		BPF_STORE_(BPF_REG_10, NUMBER, BPF_REG_8),
		WITH_(BPF_ADD, BPF_REG_7, BPF_REG_8),
		READ_(BPF_REG_7, 8, BPF_REG_7, 8),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->ids),
		LEVEL_(at),
		LEVEL_(at),
		LEVEL_(at),
		LEVEL_(at),
		/* the task, if the struct pid is of this id */
		READ_(BPF_REG_8, 8, BPF_REG_7, at->tasks),
		BPF_ADD_(BPF_REG_8, -at->pid_links),
		BPF_LOAD_(BPF_REG_1, BPF_REG_10, NUMBER),
		WITH_(BPF_ADD, BPF_REG_7, BPF_REG_1),
		READ_(BPF_REG_1, 4, BPF_REG_7, 0),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_1, BPF_REG_9, 2, 0),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->cred),
		ANSWER_(uid, 4, BPF_REG_7, at->uid),
		ANSWER_(groups, 8, BPF_REG_8, at->groups),
		ANSWER_(cpu, at->cpu_bytes, BPF_REG_8, at->cpu),
		ANSWER_(policy, 4, BPF_REG_8, at->policy),
		ANSWER_(thread_pointer, 8, BPF_REG_8, at->thread_pointer),
		READ_(BPF_REG_9, 8, BPF_REG_8, at->mm),
		BPF_STORE_(BPF_REG_6, ANSWER(memory), BPF_REG_9),
		LOCK_(memory, BPF_REG_9, at->mmap_lock + at->count, at->mmap_lock + at->owner,
		      at->state),
		ANSWER_(memory_after, 8, BPF_REG_8, at->mm),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->signal),
		LOCK_(exec, BPF_REG_7, exec_count, exec_owner, at->state),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->group_leader),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->thread_pid),
		BPF_LOAD_(BPF_REG_1, BPF_REG_10, NUMBER),
		WITH_(BPF_ADD, BPF_REG_7, BPF_REG_1),
		READ_(BPF_REG_1, 4, BPF_REG_7, 0),
		BPF_STORE_(BPF_REG_6, ANSWER(pid), BPF_REG_1),
		BPF_LOAD_(BPF_REG_9, BPF_REG_10, DESCRIPTOR),
		JUMP_(BPF_JNE, BPF_REG_9, STACK, 1 + 3 * 9 + 9 + 4 * 6 + 2),
		BPF_STORE_(BPF_REG_6, STACK_AT(task), BPF_REG_8),
		TASK_(running, 4, at->on_cpu),
		TASK_(switches, 8, at->switches),
		TASK_(preempted, 8, at->preempted),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->sp),
		BPF_STORE_(BPF_REG_6, STACK_AT(sp), BPF_REG_7),
		PIECE_(0),
		PIECE_(1),
		PIECE_(2),
		PIECE_(3),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
		JUMP_(BPF_JNE, BPF_REG_9, RETURNS, 16 + RETURNS_MAX * 26 + 2),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->uprobes),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->instances),
		RETURNS_4_(0, at),
		RETURNS_4_(4, at),
		RETURNS_4_(8, at),
		RETURNS_4_(12, at),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
		/* the file of the descriptor, if there is one */
		JUMP_(BPF_JEQ, BPF_REG_9, 0, 115),
		BPF_ADD_(BPF_REG_9, -1),
		READ_(BPF_REG_7, 8, BPF_REG_8, at->files),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->table),
		READ_(BPF_REG_1, 4, BPF_REG_7, at->table_size),
		BPF_OP_(BPF_JMP | BPF_JGE | BPF_X, BPF_REG_9, BPF_REG_1, 89, 0),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->descriptors),
		BY_(BPF_LSH, BPF_REG_9, 3),
		WITH_(BPF_ADD, BPF_REG_7, BPF_REG_9),
		READ_(BPF_REG_7, 8, BPF_REG_7, 0),
		BPF_COPY_(BPF_REG_9, BPF_REG_7),
		/* a user namespace but the first has a parent */
		READ_(BPF_REG_7, 8, BPF_REG_9, at->inode),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->file_system),
		READ_(BPF_REG_7, 8, BPF_REG_7, at->user_ns),
		ANSWER_(parent_ns, 8, BPF_REG_7, at->parent_ns),
		READ_(BPF_REG_7, 8, BPF_REG_9, at->private_data),
		/* an epoll set knows its file */
		READ_(BPF_REG_1, 8, BPF_REG_7, at->set_file),
		BPF_OP_(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_9, 20, 0),
		ANSWER_(set_owner, 8, BPF_REG_7, at->set_owner),
		OWNER_STATE_(set, at->state),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load_described(
		&(struct bpf_load){.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
				   .name = "ts_locks",
				   .instructions = program,
				   .count = sizeof(program) / sizeof(program[0])});
}

/* True if a reader would wait for a lock, and not just for its owner to get a CPU. */
static bool rwsem_blocks(uint64_t count, uint64_t state)
{
	return count & RWSEM_WRITER ? state != 0 : count & RWSEM_BUSY;
}

static bool exec_blocks(const struct answer *answer)
{
	return locks.exec_is_mutex
		       ? answer->exec_owner & ~(uint64_t)OWNER_FLAGS && answer->exec_state
		       : rwsem_blocks(answer->exec_count, answer->exec_state);
}

static const char *set_why(const struct answer *answer)
{
	return answer->set_owner & ~(uint64_t)OWNER_FLAGS && answer->set_state
		       ? "an epoll set that is locked"
		       : NULL;
}

/* Runs the program for a thread, and a descriptor of it, -1 or RETURNS. False: there is no such
 * thread, or no program. */
static bool answer_get(int64_t tid, int fd, struct answer *answer)
{
	uint64_t set = fd == RETURNS	   ? (uint64_t)RETURNS << 32
		       : locks.knows_files ? (uint64_t)(fd + 1) << 32
					   : 0;

	if (locks.program < 0)
		return false;
	pthread_mutex_lock(&locks.mutex);
	locks.answers->answer.pid = 0;
	locks.answers->answer.set_owner = locks.answers->answer.parent_ns = 0;
	*answer = (struct answer){0};
	if (!bpf_call_run(locks.program, (uint64_t)tid | set))
		*answer = locks.answers->answer;
	locks.last_tid = answer->pid ? tid : 0;
	locks.last_pointer = answer->thread_pointer;
	locks.last_ns = clock_monotonic_ns();
	pthread_mutex_unlock(&locks.mutex);
	return answer->pid;
}

static void locks_read(int64_t id, int fd, struct avoid_state *state)
{
	struct answer answer;
	bool memory;

	*state = (struct avoid_state){0};
	if (!answer_get(id, fd, &answer))
		return;
	/* a memory map that the process has left may be another's by now */
	memory = answer.memory && answer.memory == answer.memory_after &&
		 rwsem_blocks(answer.memory_count, answer.memory_state);
	state->pid = (int64_t)answer.pid;
	state->map_only = memory && !exec_blocks(&answer) && !set_why(&answer);
	state->why = memory		    ? "its memory map is locked"
		     : exec_blocks(&answer) ? "an exec that has not ended"
					    : set_why(&answer);
	state->user_mount = answer.parent_ns;
	state->holder = memory ? answer.memory_count ^ answer.memory_owner
			       : answer.exec_count ^ answer.exec_owner;
}

bool task_query_ids(int64_t tid, int64_t *uid, uint64_t *groups)
{
	struct answer answer;

	if (!answer_get(tid, -1, &answer))
		return false;
	*uid = (int64_t)answer.uid;
	*groups = answer.groups;
	return true;
}

bool task_query_queue(int64_t tid, int64_t *cpu, int64_t *policy)
{
	struct answer answer;

	if (!answer_get(tid, -1, &answer))
		return false;
	*cpu = (int64_t)answer.cpu;
	*policy = (int64_t)answer.policy;
	return true;
}

bool task_query_thread_pointer(int64_t tid, uint64_t *pointer)
{
	struct answer answer;
	bool known;

	if (!locks.knows_pointer)
		return false;
	/* who reads a thread's memory has asked just now whether that is locked */
	pthread_mutex_lock(&locks.mutex);
	known = locks.last_tid == tid && clock_monotonic_ns() - locks.last_ns < LAST_NS;
	*pointer = locks.last_pointer;
	pthread_mutex_unlock(&locks.mutex);
	if (known)
		return true;
	if (!answer_get(tid, -1, &answer))
		return false;
	*pointer = answer.thread_pointer;
	return true;
}

bool task_query_has_thread_pointer(void)
{
	return locks.program >= 0 && locks.knows_pointer;
}

size_t task_query_returns(int64_t tid, struct user_return *returns, size_t most)
{
	struct answer answer;
	size_t count = 0;

	if (!locks.knows_returns || !answer_get(tid, RETURNS, &answer))
		return 0;
	for (; count < most && count < RETURNS_MAX && answer.returns[count].address; count++)
		returns[count] = answer.returns[count];
	return count;
}

bool task_query_has_stacks(void)
{
	return locks.program >= 0 && locks.knows_stack;
}

bool task_query_stack(int64_t tid, struct task_stack *stack)
{
	bool found;

	if (!task_query_has_stacks())
		return false;
	pthread_mutex_lock(&locks.mutex);
	locks.answers->answer.pid = 0;
	found = !bpf_call_run(locks.program, (uint64_t)tid | (uint64_t)STACK << 32) &&
		locks.answers->answer.pid;
	if (found)
		*stack = locks.answers->stack;
	pthread_mutex_unlock(&locks.mutex);
	return found;
}

void task_query_begin(void)
{
	struct avoid_state own;
	const struct btf_types *btf;
	struct offsets offsets;
	struct host host;
	void *answers;
	bool found;
	int map;

	if (locks.program >= 0)
		return;
	map = bpf_call_map_mappable(sizeof(struct answers), 1);
	if (map < 0)
		return;
	found = !btf_kernel(&btf, NULL) && offsets_find(btf, &offsets);
	locks.knows_files = found && file_offsets_find(btf, &offsets);
	locks.knows_returns = found && return_offsets_find(btf, &offsets);
	locks.knows_pointer = found && pointer_offset_find(btf, &offsets);
	locks.knows_stack = found && stack_offsets_find(btf, &offsets);
	btf_kernel_forget(); /* what forks parsers must stay small */
	host_read(&host);
	if (found && !bpf_call_map_mapped(map, sizeof(struct answers), &answers)) {
		locks.answers = answers;
		locks.exec_is_mutex = offsets.mutex_owner >= 0;
		locks.program = program_load(&offsets, map, host.pid_depth - 1);
		locks_read(host.own_pid, -1, &own);
		/* the way to a process must lead to this one */
		if (own.pid == host.own_pid) {
			avoid_ask_with(locks_read);
		} else if (locks.program >= 0) {
			close(locks.program);
			locks.program = -1;
		}
	}
	close(map);
}

int task_query_program(void)
{
	return locks.program;
}
