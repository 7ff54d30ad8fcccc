/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/task_list.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROW(member) (-(int)sizeof(struct task_row) + (int)offsetof(struct task_row, member))

/* Offsets in struct task_struct; -1: not known. */
struct offsets {
	short pid, stack, cpu, ran, arrived;
};

/* Finds a member of a member of task_struct. */
static short nested_find(const struct btf_types *btf, const char *outer, const char *of,
			 const char *member, unsigned int bytes)
{
	int64_t at = btf_offset_find(btf, "task_struct", outer, 0);
	int64_t within = btf_offset_find(btf, of, member, bytes);

	return at < 0 || within < 0 ? -1 : (short)(at + within);
}

static void times_find(const struct btf_types *btf, struct offsets *at)
{
	at->ran = nested_find(btf, "se", "sched_entity", "exec_start", 8);
	at->arrived = nested_find(btf, "sched_info", "sched_info", "last_arrival", 8);
	at->cpu = nested_find(btf, "thread_info", "thread_info", "cpu", 4);
	if (at->cpu < 0) /* until 5.15 on x86 */
		at->cpu = (short)btf_offset_find(btf, "task_struct", "cpu", 4);
}

/* The context is struct bpf_iter__task: a struct bpf_iter_meta *, whose first member is the
 * seq_file, and the task, NULL at the end. */
static int program_load(const struct btf_types *btf, const struct offsets *at)
{
	bool times = at->cpu >= 0 && at->ran >= 0 && at->arrived >= 0;
	const struct bpf_insn program[] = {
		BPF_COPY_(BPF_REG_6, BPF_REG_1),
		BPF_LOAD_(BPF_REG_7, BPF_REG_6, 8),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 16, 0),
		BPF_OP_(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_8, BPF_REG_7, at->pid, 0),
		BPF_STORE_(BPF_REG_10, ROW(tid), BPF_REG_8),
		BPF_LOAD_(BPF_REG_8, BPF_REG_7, at->stack),
		BPF_STORE_(BPF_REG_10, ROW(stack), BPF_REG_8),
		BPF_OP_(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_8, BPF_REG_7, times ? at->cpu : at->pid,
			0),
		BPF_STORE_(BPF_REG_10, ROW(cpu), BPF_REG_8),
		BPF_LOAD_(BPF_REG_8, BPF_REG_7, times ? at->ran : at->stack),
		BPF_STORE_(BPF_REG_10, ROW(ran_ns), BPF_REG_8),
		BPF_LOAD_(BPF_REG_8, BPF_REG_7, times ? at->arrived : at->stack),
		BPF_STORE_(BPF_REG_10, ROW(arrived_ns), BPF_REG_8),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, 0),
		BPF_LOAD_(BPF_REG_1, BPF_REG_1, 0),
		BPF_STACK_(BPF_REG_2, -(int)sizeof(struct task_row)),
		BPF_SET_(BPF_REG_3, sizeof(struct task_row)),
		BPF_CALL_(BPF_FUNC_seq_write),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};
	/* DEFINE_BPF_ITER_FUNC of include/linux/bpf.h */
	int id = (int)btf_function_find(btf, "bpf_iter_task");

	return id ? bpf_call_load_described(
			    &(struct bpf_load){.type = BPF_PROG_TYPE_TRACING,
					       .attach_type = BPF_TRACE_ITER,
					       .btf_id = (uint32_t)id,
					       .instructions = program,
					       .count = sizeof(program) / sizeof(program[0])})
		  : -ENOENT;
}

/* Finds how far the clocks of tasks are behind. A thread that arrives on a CPU has the time of both
 * clocks then; the clock of tasks goes on while it runs. So each thread shows how far that is
 * behind at least. */
static void times_compare(struct task_list *list)
{
	list->behind_ns = memory_get(TASK_CPUS_MAX * sizeof(*list->behind_ns));
	for (size_t i = 0; i < list->rows.count; i++) {
		const struct task_row *row = (const struct task_row *)list->rows.rows + i;
		int64_t behind_ns = (int64_t)(row->arrived_ns - row->ran_ns);

		if (!row->arrived_ns || !row->ran_ns)
			continue;
		if ((int64_t)row->arrived_ns > list->now_ns)
			list->now_ns = (int64_t)row->arrived_ns;
		if (row->cpu < TASK_CPUS_MAX && behind_ns > list->behind_ns[row->cpu])
			list->behind_ns[row->cpu] = behind_ns;
	}
}

int task_list_read(struct task_list *list, const struct field_layout *layout)
{
	const struct btf_types *btf;
	const struct timespec nap = {0, 1000};
	struct offsets at = {.pid = (short)layout->offset[field_index("task_struct", "pid")],
			     .stack = (short)layout->offset[field_index("task_struct", "stack")]};
	struct task_row rows[128];
	int program, iterator, result = btf_kernel(&btf, NULL);
	ssize_t got;

	if (result)
		return result;
	times_find(btf, &at);
	program = program_load(btf, &at);
	if (program < 0)
		return program;
	iterator = bpf_call_iterator(program);
	close(program);
	if (iterator < 0)
		return iterator;
	nanosleep(&nap, NULL); /* this thread arrives on its CPU now */
	/* rows come whole: the kernel keeps those that do not fit */
	while ((got = read(iterator, rows, sizeof(rows))) > 0 || (got < 0 && errno == EAGAIN))
		for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(rows[0]); i++)
			*(struct task_row *)keyed_put(&list->rows, sizeof(rows[i]), rows[i].tid,
						      NULL) = rows[i];
	got = got < 0 ? -errno : 0;
	close(iterator);
	if (at.cpu >= 0 && at.ran >= 0 && at.arrived >= 0)
		times_compare(list);
	return (int)got;
}

const struct task_row *task_list_find(struct task_list *list, int64_t tid)
{
	return keyed_find(&list->rows, sizeof(struct task_row), (uint64_t)tid);
}

int64_t task_slept_ns(const struct task_list *list, const struct task_row *row)
{
	int64_t since_ns;

	if (!list->now_ns || !row->ran_ns || row->cpu >= TASK_CPUS_MAX)
		return 0;
	since_ns = (int64_t)row->ran_ns + list->behind_ns[row->cpu];
	return since_ns < list->now_ns ? list->now_ns - since_ns : 0;
}

void task_list_done(struct task_list *list)
{
	keyed_done(&list->rows);
	free(list->behind_ns);
	*list = (struct task_list){0};
}
