/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_seed.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "proc/lookup_hint.h"
#include "maps/task_list.h"
#include "proc/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROC "/proc"
#define NR_NONE (-1)	/* of a thread in no system call */
#define NR_REFUSED (-2) /* it may not be read */
#define CALLS_MAX 65536

struct seed_call {
	int64_t start_ns;
	uint64_t sequence; /* of the record that it was read for */
	const char *comm;  /* name of the thread then */
	uint64_t arg[SAMPLE_ARG_COUNT];
	int32_t nr; /* negative: in no call */
	bool compat;
};

void live_seed_identity(struct thread_identity *identity, int64_t pid, const struct proc_stat *stat)
{
	identity->tid = (uint32_t)stat->tid;
	identity->tgid = (uint32_t)pid;
	identity->parent_tgid = (uint32_t)stat->ppid;
	identity->task_flags = stat->flags;
	identity->start_boot_ns =
		stat->start_ticks * (uint64_t)(NS_PER_SECOND / sysconf(_SC_CLK_TCK));
	memset(identity->comm, 0, sizeof(identity->comm));
	memcpy(identity->comm, stat->comm, strnlen(stat->comm, sizeof(identity->comm) - 1));
	identity->known = IDENTITY_NAME;
}

const struct thread_state *live_seed_waiting(struct live_seed *seed, uint32_t tid)
{
	return keyed_find(&seed->waiting, sizeof(struct thread_state), tid);
}

void live_seed_visit(struct live_seed *seed,
		     void (*visit)(void *to, const struct thread_state *record), void *to)
{
	const struct thread_state *waiting = seed->waiting.rows;

	for (size_t i = 0; i < seed->waiting.count; i++)
		if (waiting[i].identity.tid)
			visit(to, &waiting[i]);
}

void live_seed_remove(struct live_seed *seed, uint32_t tid)
{
	struct thread_state *waiting = keyed_find(&seed->waiting, sizeof(*waiting), tid);

	if (!waiting)
		return;
	waiting->identity.tid = 0;
	index_remove(&seed->waiting.slots, tid);
}

const struct thread_state *live_seed_fill(const struct thread_state *record,
					  struct thread_state *whole)
{
	struct proc_stat stat;
	int64_t uid, tgid;

	if (proc_ids_read(PROC, record->identity.tid, &uid, &tgid) ||
	    proc_stat_read(PROC, tgid, record->identity.tid, &stat))
		return NULL;
	*whole = *record;
	live_seed_identity(&whole->identity, tgid, &stat);
	return whole;
}

/* Task state bits that mean the same as the letter of /proc/TID/stat. */
static uint32_t state_bits(char letter)
{
	switch (letter) {
	case 'S':
		return 0x1;
	case 'D':
		return 0x2;
	case 'T':
		return 0x4;
	case 't':
		return 0x8;
	case 'P':
		return 0x40;
	case 'I':
		return 0x402;
	default:
		return 0;
	}
}

void live_seed_state(struct thread_sched *sched, const struct proc_stat *stat)
{
	sched->state = state_bits(stat->state);
	sched->exit_state = stat->state == 'Z' ? 0x20 : 0;
	sched->cpu = (uint32_t)stat->cpu;
	sched->known = SCHED_SEEDED;
}

struct walk {
	struct live_seed *seed;
	struct kernel *kernel;
	uint64_t now_ns;
	int64_t own_pid;
	bool wants_stacks; /* kernel stacks: registers may be requested */
	struct task_list tasks;
};

static int thread_seed(void *to, int64_t pid, int64_t tid)
{
	struct walk *walk = to;
	struct thread_state record = {0};
	struct proc_stat stat;
	const struct task_row *task;
	char path[64];
	int err;

	if (pid == walk->own_pid || proc_stat_read(PROC, pid, tid, &stat))
		return 0;
	live_seed_identity(&record.identity, pid, &stat);
	record.sched.out_ns = record.sched.in_ns = walk->now_ns;
	live_seed_state(&record.sched, &stat);
	/* A runnable thread may be on a CPU: its switch out comes first then, else that in. */
	record.sched.on_cpu = stat.state == 'R';
	/* the kernel has another id for the thread where ids are translated */
	task = walk->kernel->compiled.pids_translated ? NULL : task_list_find(&walk->tasks, tid);
	/* of a sleeper in_ns is when it fell asleep: out_ns is where its totals begin */
	if (task && stat.state != 'R')
		record.sched.in_ns -= (uint64_t)task_slept_ns(&walk->tasks, task);
	if (walk->kernel->compiled.pids_translated) {
		*(struct thread_state *)keyed_put(&walk->seed->waiting, sizeof(record),
						  record.identity.tid, NULL) = record;
		return 0;
	}
	record.sched.tid = record.identity.tid;
	record.kernel_stack = task && walk->wants_stacks ? task->stack : 0;
	err = thread_table_add(&walk->kernel->table, &record);
	walk->seed->unfit_count += err == -E2BIG;
	if (err)
		return 0;
	/* a thread that ended before its seed was added has no last switch to come that would
	 * remove it */
	snprintf(path, sizeof(path), PROC "/%lld/task/%lld", (long long)pid, (long long)tid);
	if (access(path, F_OK))
		thread_table_remove(&walk->kernel->table, &record);
	return 0;
}

int live_seed_all(struct live_seed *seed, struct kernel *kernel, struct error *e)
{
	struct walk walk = {
		.seed = seed,
		.kernel = kernel,
		.now_ns = (uint64_t)clock_monotonic_ns(),
		.own_pid = proc_own_pid(PROC),
		.wants_stacks = kernel->requester.program >= 0 ||
				kernel->compiled.programs[GROUP_STACK] >= 0,
	};
	int err;

	task_list_read(&walk.tasks, &kernel->compiled.layout);
	err = proc_threads_walk(PROC, thread_seed, &walk);
	task_list_done(&walk.tasks);

	if (err < 0)
		return error_set(e, -err, EXIT_FAILED, "/proc can't be read: %s%s", strerror(-err),
				 err == -ENOENT ? "; is it mounted?" : "");
	return 0;
}

bool live_seed_is_32_bit(int64_t pid)
{
	char path[64], ident[5] = "";
	int fd;

	if (sizeof(long) == 4 || avoids_process(pid))
		return false;
	snprintf(path, sizeof(path), PROC "/%lld/exe", (long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, ident, sizeof(ident)) != sizeof(ident))
		ident[4] = 0;
	close(fd);
	return ident[4] == ELFCLASS32;
}

static struct seed_call *call_read(struct live_seed *seed, const struct sample *sample,
				   uint64_t sequence)
{
	struct seed_call *call;
	struct proc_syscall now;
	bool added, known;
	int err;

	if (seed->calls.count == CALLS_MAX)
		keyed_empty(&seed->calls);
	call = keyed_put(&seed->calls, sizeof(*call), (uint64_t)sample->thread.tid, &added);
	known = !added && call->start_ns == sample->thread.start_ns &&
		call->comm == sample->thread.comm;
	if (known && (call->sequence == sequence || call->nr == NR_REFUSED))
		return call;
	err = proc_syscall_read(PROC, sample->thread.pid, sample->thread.tid, &now);
	if (err == -EPERM || err == -EACCES) /* refused for good */
		now = (struct proc_syscall){.nr = NR_REFUSED};
	else if (err || now.running)
		return NULL;
	/* another program comes with another name */
	if (!known)
		call->compat = live_seed_is_32_bit(sample->thread.pid);
	call->comm = sample->thread.comm;
	call->start_ns = sample->thread.start_ns;
	call->sequence = sequence;
	call->nr = (int32_t)now.nr; /* 32 bits, as the kernel keeps it */
	memcpy(call->arg, now.arg, sizeof(call->arg));
	return call;
}

void live_seed_call(struct live_seed *seed, struct sample *sample, struct lookup_hint *hint)
{
	const struct seed_call *call = call_read(seed, sample, hint->sequence);

	hint->no_call = call && call->nr == NR_NONE;
	if (!call || call->nr < 0)
		return;
	hint->compat = call->compat;
	sample->call.nr = call->nr;
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		sample->call.arg[i] = (int64_t)call->arg[i];
}

void live_seed_done(struct live_seed *seed)
{
	keyed_done(&seed->calls);
	keyed_done(&seed->waiting);
	*seed = (struct live_seed){0};
}
