/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/task_stacks.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_ids.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* Row that the program writes for each thread. */
struct task_stack {
	uint64_t tid, stack;
};

/* The context is struct bpf_iter__task: a struct bpf_iter_meta *, whose first member is the
 * seq_file, and the task, NULL at the end. */
static int program_load(const struct field_layout *layout)
{
	const short pid_at = (short)layout->offset[field_index("task_struct", "pid")],
		    stack_at = (short)layout->offset[field_index("task_struct", "stack")];
	const struct bpf_insn program[] = {
		BPF_COPY_(BPF_REG_6, BPF_REG_1),
		BPF_LOAD_(BPF_REG_7, BPF_REG_6, 8),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 10, 0),
		BPF_OP_(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_8, BPF_REG_7, pid_at, 0),
		BPF_STORE_(BPF_REG_10, -16, BPF_REG_8),
		BPF_LOAD_(BPF_REG_8, BPF_REG_7, stack_at),
		BPF_STORE_(BPF_REG_10, -8, BPF_REG_8),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, 0),
		BPF_LOAD_(BPF_REG_1, BPF_REG_1, 0),
		BPF_STACK_(BPF_REG_2, -(int)sizeof(struct task_stack)),
		BPF_SET_(BPF_REG_3, sizeof(struct task_stack)),
		BPF_CALL_(BPF_FUNC_seq_write),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};
	int id = btf_iterator_id("task");

	return id < 0 ? id
		      : bpf_call_load_iterator(program, sizeof(program) / sizeof(program[0]), id);
}

int task_stacks_read(const struct field_layout *layout, struct index *stacks)
{
	struct task_stack tasks[256];
	int program = program_load(layout), iterator;
	ssize_t got;

	if (program < 0)
		return program;
	iterator = bpf_call_iterator(program);
	close(program);
	if (iterator < 0)
		return iterator;
	/* rows come whole: the kernel keeps those that do not fit */
	while ((got = read(iterator, tasks, sizeof(tasks))) > 0 || (got < 0 && errno == EAGAIN))
		for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(tasks[0]); i++)
			*index_put(stacks, tasks[i].tid, NULL) = tasks[i].stack;
	got = got < 0 ? -errno : 0;
	close(iterator);
	return (int)got;
}
