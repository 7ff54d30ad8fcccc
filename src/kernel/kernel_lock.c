/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/kernel_lock.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"

#include <errno.h>
#include <stddef.h>

/* Constants of include/uapi/linux/bpf.h, which is older on some hosts where tsnap is built. */
#define PROGRAM_TYPE_SYSCALL 31 /* BPF_PROG_TYPE_SYSCALL, 5.14 */
#define SLEEPABLE (1u << 4)	/* BPF_F_SLEEPABLE, which this type must be */

/* kernel/locking/mutex.h: an owner with this bit has not taken the mutex yet */
#define MUTEX_PICKUP 4
/* kernel/locking/rwsem.c */
#define RWSEM_READER_OWNED 1
#define RWSEM_WRITER_LOCKED 1
#define RWSEM_READERS 8 /* the lowest bit of their number in count, from 5.3 on */

/* Input and output of the program. */
struct look {
	uint64_t tid;
	uint64_t blocker, owner_word;
	uint64_t count;			/* count of an rwsem */
	uint64_t owner_tid;		/* tid in the owner's task, which may be gone */
	uint64_t owner_task, owner_pid; /* task of the thread that has this tid now */
};

#define LOOK(member) ((short)offsetof(struct look, member))

/* Offsets of the members and ids of the functions of the running kernel that the program uses. */
struct offsets {
	short blocker, pid, tgid;
	short mutex_owner, rwsem_owner, rwsem_count, semaphore_holder;
	int task_from_pid, task_release; /* functions */
};

static bool offset_find(const struct btf_types *btf, const char *of, const char *member,
			unsigned int bytes, short *offset)
{
	int64_t at = btf_offset_find(btf, of, member, bytes);

	*offset = (short)at;
	return at >= 0 && at <= INT16_MAX;
}

static int offsets_find(struct offsets *offsets)
{
	const struct btf_types *btf;
	int result = btf_kernel(&btf, NULL);

	if (result)
		return result;
	offsets->task_from_pid = (int)btf_function_find(btf, "bpf_task_from_pid");
	offsets->task_release = (int)btf_function_find(btf, "bpf_task_release");
	return offset_find(btf, "task_struct", "blocker", 8, &offsets->blocker) &&
			       offset_find(btf, "task_struct", "pid", 4, &offsets->pid) &&
			       offset_find(btf, "task_struct", "tgid", 4, &offsets->tgid) &&
			       offset_find(btf, "mutex", "owner", 8, &offsets->mutex_owner) &&
			       offset_find(btf, "rw_semaphore", "owner", 8,
					   &offsets->rwsem_owner) &&
			       offset_find(btf, "rw_semaphore", "count", 8,
					   &offsets->rwsem_count) &&
			       offset_find(btf, "semaphore", "last_holder", 8,
					   &offsets->semaphore_holder) &&
			       offsets->task_from_pid && offsets->task_release
		       ? 0
		       : -ENOENT;
}

/* Reads that many bytes at base + at, and puts them into the context: nine instructions. */
#define READ_(base, at, bytes, to)                                                                \
	BPF_STORE_IMM_(BPF_REG_10, -8, 0), BPF_STACK_(BPF_REG_1, -8), BPF_SET_(BPF_REG_2, bytes), \
		BPF_COPY_(BPF_REG_3, base), BPF_ADD_(BPF_REG_3, at),                              \
		BPF_CALL_(BPF_FUNC_probe_read_kernel), BPF_LOAD_(BPF_REG_1, BPF_REG_10, -8),      \
		BPF_STORE_(BPF_REG_6, to, BPF_REG_1)
/* Jumps by indexes of instructions in the program; the first is 0. */
#define JUMP_IF_(here, condition, reg, value, there) \
	BPF_OP_(BPF_JMP | (condition) | BPF_K, (reg), 0, (there) - (here)-1, (value))
#define JUMP_(here, there) BPF_OP_(BPF_JMP | BPF_JA, 0, 0, (there) - (here)-1, 0)
#define AND_(reg, value) BPF_OP_(BPF_ALU64 | BPF_AND | BPF_K, (reg), 0, 0, (value))
#define SUM_(reg, other) BPF_OP_(BPF_ALU64 | BPF_ADD | BPF_X, (reg), (other), 0, 0)
#define LOAD_WORD_(dst, src, off) BPF_OP_(BPF_LDX | BPF_MEM | BPF_W, (dst), (src), (off), 0)

enum { NO_MUTEX = 14, NO_SEMAPHORE = 17, OWNER = 18, RELEASE = 56, END = 58 };

/* Register 6: the context, 7: the thread's task, 8: the lock, 9: where its owner is, and the owner.
 */
static int program_load(const struct offsets *at)
{
	const struct bpf_insn program[] = {
		BPF_COPY_(BPF_REG_6, BPF_REG_1),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, LOOK(tid)),
		BPF_CALL_KERNEL_(at->task_from_pid),
		JUMP_IF_(3, BPF_JEQ, BPF_REG_0, 0, END),
		BPF_COPY_(BPF_REG_7, BPF_REG_0),
		BPF_LOAD_(BPF_REG_8, BPF_REG_7, at->blocker),
		BPF_STORE_(BPF_REG_6, LOOK(blocker), BPF_REG_8),
		JUMP_IF_(7, BPF_JEQ, BPF_REG_8, 0, RELEASE),
		BPF_COPY_(BPF_REG_9, BPF_REG_8),
		AND_(BPF_REG_9, KERNEL_LOCK_KIND),
		AND_(BPF_REG_8, ~KERNEL_LOCK_KIND),
		JUMP_IF_(11, BPF_JNE, BPF_REG_9, KERNEL_LOCK_MUTEX, NO_MUTEX),
		BPF_SET_(BPF_REG_9, at->mutex_owner),
		JUMP_(13, OWNER),
		JUMP_IF_(14, BPF_JNE, BPF_REG_9, KERNEL_LOCK_SEMAPHORE, NO_SEMAPHORE),
		BPF_SET_(BPF_REG_9, at->semaphore_holder),
		JUMP_(16, OWNER),
		BPF_SET_(BPF_REG_9, at->rwsem_owner),
		SUM_(BPF_REG_9, BPF_REG_8),
		READ_(BPF_REG_8, at->rwsem_count, 8, LOOK(count)),
		READ_(BPF_REG_9, 0, 8, LOOK(owner_word)),
		BPF_COPY_(BPF_REG_9, BPF_REG_1),
		AND_(BPF_REG_9, ~KERNEL_LOCK_FLAGS),
		JUMP_IF_(39, BPF_JEQ, BPF_REG_9, 0, RELEASE),
		READ_(BPF_REG_9, at->pid, 4, LOOK(owner_tid)),
		BPF_CALL_KERNEL_(at->task_from_pid),
		JUMP_IF_(50, BPF_JEQ, BPF_REG_0, 0, RELEASE),
		BPF_STORE_(BPF_REG_6, LOOK(owner_task), BPF_REG_0),
		LOAD_WORD_(BPF_REG_1, BPF_REG_0, at->tgid),
		BPF_STORE_(BPF_REG_6, LOOK(owner_pid), BPF_REG_1),
		BPF_COPY_(BPF_REG_1, BPF_REG_0),
		BPF_CALL_KERNEL_(at->task_release),
		BPF_COPY_(BPF_REG_1, BPF_REG_7),
		BPF_CALL_KERNEL_(at->task_release),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load_described(
		&(struct bpf_load){.type = (enum bpf_prog_type)PROGRAM_TYPE_SYSCALL,
				   .name = "ts_kernel_lock",
				   .instructions = program,
				   .count = sizeof(program) / sizeof(program[0]),
				   .flags = SLEEPABLE});
}

int kernel_lock_load(void)
{
	struct offsets offsets;
	int result = offsets_find(&offsets);

	btf_kernel_forget();
	return result ? result : program_load(&offsets);
}

bool kernel_lock_is_held(uint64_t blocker, uint64_t owner_word, uint64_t count)
{
	switch (blocker & KERNEL_LOCK_KIND) {
	case KERNEL_LOCK_MUTEX:
		return !(owner_word & MUTEX_PICKUP);
	case KERNEL_LOCK_SEMAPHORE:
	case KERNEL_LOCK_PERCPU:
	case KERNEL_LOCK_PERCPU + 1:
		return false;
	default:
		return !(owner_word & RWSEM_READER_OWNED) && count & RWSEM_WRITER_LOCKED;
	}
}

uint32_t kernel_lock_readers(uint64_t blocker, uint64_t owner_word, uint64_t count)
{
	return (blocker & KERNEL_LOCK_RWSEM) && owner_word & RWSEM_READER_OWNED &&
			       (int64_t)count > 0
		       ? (uint32_t)(count >> RWSEM_READERS)
		       : 0;
}

int kernel_lock_read(int program, uint32_t tid, struct kernel_lock *lock)
{
	struct look look = {.tid = tid};
	int result = bpf_call_run_with(program, &look, sizeof(look));

	if (result < 0)
		return result;
	*lock = (struct kernel_lock){
		.blocker = look.blocker,
		.owner_word = look.owner_word,
		.readers = kernel_lock_readers(look.blocker, look.owner_word, look.count)};
	/* it was one task at both looks: nothing was read of a task that is gone */
	if (look.blocker && look.owner_task &&
	    look.owner_task == (look.owner_word & ~(uint64_t)KERNEL_LOCK_FLAGS)) {
		lock->owner_tid = (uint32_t)look.owner_tid;
		lock->owner_pid = (uint32_t)look.owner_pid;
		lock->sure = kernel_lock_is_held(look.blocker, look.owner_word, look.count);
	}
	return 0;
}
