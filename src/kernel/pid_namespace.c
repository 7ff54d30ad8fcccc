/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/pid_namespace.h"
#include "kernel/bpf_call.h"
#include "kernel/own_switch.h"
#include "kernel/record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define NUMBER_WORDS 40	   /* words of numbers: 19 levels; 9 where they are 32 bytes each */
#define PID_MAX (1u << 22) /* PID_MAX_LIMIT of include/linux/threads.h */

/* Output of the program below. */
struct own_pid {
	uint32_t level, parent_tid;
	uint64_t numbers[NUMBER_WORDS];
};

static uint32_t field_offset(const struct field_layout *layout, const char *of, const char *name)
{
	size_t field = field_index(of, name);
	bool in_pids = layout->name[field] && !strcmp(name, "thread_pid");

	return layout->offset[field] + (in_pids ? PIDS_LINK_BYTES : 0);
}

/* Reads from the address that lies at the stack's offset `slot`, offset bytes above it. */
#define READ_(to, bytes, slot, offset)                                                        \
	BPF_STACK_(BPF_REG_1, (to)), BPF_SET_(BPF_REG_2, (bytes)),                            \
		BPF_LOAD_(BPF_REG_3, BPF_REG_10, (slot)), BPF_ADD_(BPF_REG_3, (int)(offset)), \
		BPF_CALL_(BPF_FUNC_probe_read)

/* Loads a program that copies the numbers of the thread it runs in into the map, as an own_switch
 * does. */
static int look_load(enum bpf_prog_type type, int map, const struct field_layout *layout)
{
	enum { KEY = -8, TASK = -16, PID = -24, OWN = -24 - (int)sizeof(struct own_pid) };
	const int parent_at = OWN + (int)offsetof(struct own_pid, parent_tid),
		  numbers_at = OWN + (int)offsetof(struct own_pid, numbers);
	const struct bpf_insn insns[] = {
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_STORE_(BPF_REG_10, TASK, BPF_REG_0),
		READ_(PID, 8, TASK, field_offset(layout, "task_struct", "real_parent")),
		READ_(parent_at, 4, PID, field_offset(layout, "task_struct", "pid")),
		READ_(PID, 8, TASK, field_offset(layout, "task_struct", "thread_pid")),
		READ_(OWN, 4, PID, field_offset(layout, "pid", "level")),
		READ_(numbers_at, 8 * NUMBER_WORDS, PID, field_offset(layout, "pid", "numbers")),
		OWN_SWITCH_END_(map, KEY, OWN),
	};

	return bpf_call_load(type, insns, sizeof(insns) / sizeof(insns[0]));
}

static bool own_fits(void *of)
{
	return ((struct own_pid *)of)->parent_tid != 0;
}

/* Runs the program once, by a call (5.10) or when this thread is switched. */
static int look_with(enum bpf_prog_type type, int map, const struct field_layout *layout,
		     struct own_pid *own)
{
	struct own_switch run = {.map = map, .value = own, .fits = own_fits, .of = own};
	int result;

	run.program = look_load(type, map, layout);
	if (run.program < 0)
		return run.program;
	if (type == BPF_PROG_TYPE_PERF_EVENT)
		result = own_switch_run(&run);
	else
		result = bpf_call_run(run.program, 0) ? -ETIME : own_switch_take(&run);
	close(run.program);
	return result == 1 ? 0 : result < 0 ? result : -ETIME;
}

static int look(const struct field_layout *layout, struct own_pid *own)
{
	int map = own_switch_map(sizeof(*own)), result;

	if (map < 0)
		return map;
	result = look_with(BPF_PROG_TYPE_RAW_TRACEPOINT, map, layout, own);
	if (result)
		result = look_with(BPF_PROG_TYPE_PERF_EVENT, map, layout, own);
	close(map);
	return result;
}

/* True if the words read well as numbers of that many bytes each, one for each level. */
static bool numbers_fit(const uint64_t *words, unsigned int count, uint32_t level, uint32_t own_pid,
			uint32_t bytes)
{
	const size_t step = bytes / 8;

	if (level >= count / step)
		return false;
	for (size_t i = 0; i <= level; i++) {
		uint32_t number = (uint32_t)words[i * step]; /* an int, then padding */

		if (!number || number > PID_MAX || !words[i * step + 1])
			return false;
	}
	return (uint32_t)words[level * step] == own_pid;
}

int pid_namespace_decode(const uint64_t *words, unsigned int count, uint32_t level,
			 uint32_t own_pid, int depth, struct pid_namespace *namespace)
{
	/* sizes of a struct upid, which has a list node at its end until 4.14 */
	static const uint32_t sizes[] = {16, 32};

	if (depth < 1 || level >= count || (uint32_t)depth > level + 1)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t shown = level + 1 - (uint32_t)depth;

		if (!numbers_fit(words, count, level, own_pid, sizes[i]))
			continue;
		namespace->translated = shown > 0;
		namespace->address = words[shown * sizes[i] / 8 + 1];
		namespace->level = shown;
		namespace->number_bytes = sizes[i];
		return 0;
	}
	return -EINVAL;
}

int pid_namespace_find(const struct field_layout *layout, const struct host *host,
		       struct pid_namespace *namespace, struct error *e)
{
	struct own_pid own = {0};
	int result;

	*namespace = (struct pid_namespace){.parent_tid = (uint32_t)host->own_pid};
	if (host_pids_first(host))
		return 0;
	result = look(layout, &own);
	if (!result)
		result = pid_namespace_decode(own.numbers, NUMBER_WORDS, own.level,
					      (uint32_t)getpid(), host->pid_depth, namespace);
	if (result)
		return error_set(e, -result, EXIT_HOST_CANNOT,
				 "tsnap runs in a pid namespace of its own (a container), and a "
				 "program that looks how it numbers threads did not work (%s): run "
				 "tsnap in the host's pid namespace (--pid=host), or allow "
				 "perf_event_open",
				 strerror(-result));
	namespace->parent_tid = own.parent_tid;
	return 0;
}
