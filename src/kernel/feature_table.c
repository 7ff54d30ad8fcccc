/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/feature_table.h"
#include "base/host_file.h"
#include "base/text.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"
#include "kernel/host.h"
#include "kernel/kernel_event.h"
#include "kernel/kernel_lock.h"
#include "kernel/kernel_memory.h"
#include "kernel/lock_search.h"
#include "kernel/task_query.h"
#include "kernel/own_switch.h"
#include "kernel/registers.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* --- trials: each returns 0, or -errno with why filled (FEATURE_WHY_SIZE), and leaves no trace */

#define PROGRAM_LENGTH(program) (sizeof(program) / sizeof((program)[0]))

static const struct bpf_insn nothing[] = {BPF_SET_(0, 0), BPF_EXIT_()};

static int said(char *why, int result, const char *what)
{
	snprintf(why, FEATURE_WHY_SIZE, "%s: %s", what, strerror(-result));
	return result;
}

/* Loads a program of a type that is offered every tracing helper. */
static int try_load(const struct bpf_insn *insns, size_t count, char *why)
{
	int program = bpf_call_load(BPF_PROG_TYPE_TRACEPOINT, insns, count);

	if (program < 0)
		return said(why, program, "loading a program");
	close(program);
	return 0;
}

static int try_bpf(char *why)
{
	int map;

	/* up to 5.10 maps count against RLIMIT_MEMLOCK, 64 KB by default */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	map = bpf_call_map(BPF_MAP_TYPE_HASH, 4, 8, 16);
	if (map < 0)
		return said(why, map, "bpf(BPF_MAP_CREATE)");
	close(map);
	return try_load(nothing, PROGRAM_LENGTH(nothing), why);
}

static int try_raw_tracepoint(char *why)
{
	int program, link;

	program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, nothing, PROGRAM_LENGTH(nothing));
	if (program < 0)
		return said(why, program, "loading a program");
	/* an event that hardly ever happens */
	link = bpf_call_raw_tracepoint(program, "sched_process_exec");
	close(program);
	if (link < 0)
		return said(why, link, "attaching to sched_process_exec");
	close(link);
	return 0;
}

static int try_typed(const char *event, char *why)
{
	int btf_id = btf_tracepoint_id(event), program;

	if (btf_id < 0) {
		snprintf(why, FEATURE_WHY_SIZE, "%s does not have %s", KERNEL_BTF_PATH, event);
		return btf_id;
	}
	program = bpf_call_load_described(&(struct bpf_load){.type = BPF_PROG_TYPE_TRACING,
							     .attach_type = BPF_TRACE_RAW_TP,
							     .btf_id = (uint32_t)btf_id,
							     .instructions = nothing,
							     .count = PROGRAM_LENGTH(nothing)});
	if (program < 0)
		return said(why, program, "loading a program");
	close(program);
	return 0;
}

/* Opens the event on a CPU and has it run a program. */
static int try_event(struct perf_event_attr *attr, enum bpf_prog_type type, char *why)
{
	int event = perf_call_open(attr, -1, 0), program, result;

	if (event < 0)
		return said(why, event, "perf_event_open");
	program = bpf_call_load(type, nothing, PROGRAM_LENGTH(nothing));
	result = program < 0 ? program : perf_call_run(event, program);
	close(event);
	if (program >= 0)
		close(program);
	return result < 0 ? said(why, result, "running a program at the event") : 0;
}

static int try_tracepoint(char *why)
{
	/* an event that hardly ever happens */
	static const char event[] = "sched:sched_process_exec";
	struct host host;
	int program, link;

	host_read(&host);
	if (!host.tracefs[0]) {
		snprintf(why, FEATURE_WHY_SIZE, "tracefs is not mounted or not readable");
		return -ENOENT;
	}
	program = bpf_call_load(BPF_PROG_TYPE_TRACEPOINT, nothing, PROGRAM_LENGTH(nothing));
	if (program < 0)
		return said(why, program, "loading a program");
	link = tracepoint_attach(event, program);
	close(program);
	if (link < 0) {
		snprintf(why, FEATURE_WHY_SIZE, "attaching to sched_process_exec: %s",
			 tracepoint_why(link));
		return link;
	}
	close(link);
	return 0;
}

/* Attaches a program of type kprobe to the begin of a function: a descriptor or -errno. */
static int trial_attach(const char *function, int program, char *why)
{
	char found[128], name[64];
	int event;

	/* libbcc prints why not, onto a standard error that is not ours to write to */
	if (access("/sys/bus/event_source/devices/kprobe/type", R_OK) &&
	    access("/sys/kernel/debug/tracing/kprobe_events", W_OK) &&
	    access("/sys/kernel/tracing/kprobe_events", W_OK)) {
		snprintf(why, FEATURE_WHY_SIZE,
			 "no kprobe event source in /sys and no kprobe_events in tracefs");
		return -ENOENT;
	}
	if (kernel_function_find(function, found, sizeof(found))) {
		snprintf(why, FEATURE_WHY_SIZE, "/proc/kallsyms does not show %s", function);
		return -ENOENT;
	}
	/* named as by probe_attach.c, so that it is found when this process is killed here */
	snprintf(name, sizeof(name), "tsnap_%ld_trial", (long)getpid());
	event = bpf_attach_kprobe(program, BPF_PROBE_ENTRY, name, found, 0, 0);
	if (event >= 0)
		return event;
	snprintf(why, FEATURE_WHY_SIZE, "attaching to %s: %s", function, strerror(EINVAL));
	return -EINVAL;
}

static void trial_detach(int event)
{
	char name[64];

	close(event);
	snprintf(name, sizeof(name), "tsnap_%ld_trial", (long)getpid());
	/* the event has a name only where the kernel has no kprobe PMU (before 4.17) */
	if (access("/sys/bus/event_source/devices/kprobe/type", R_OK))
		bpf_detach_kprobe(name);
}

static int try_kprobe(char *why)
{
	int program = bpf_call_load(BPF_PROG_TYPE_KPROBE, nothing, PROGRAM_LENGTH(nothing)), event;

	if (program < 0)
		return said(why, program, "loading a program");
	event = trial_attach("wake_up_new_task", program, why);
	close(program);
	if (event < 0)
		return event;
	trial_detach(event);
	return 0;
}

static bool task_fits(void *of)
{
	return of;
}

/* Finds the address of this thread's task_struct. */
static int own_task_find(uint64_t *task)
{
	int map = own_switch_map(sizeof(*task)), result;
	const struct bpf_insn insns[] = {
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_STORE_(BPF_REG_10, -24, BPF_REG_0),
		OWN_SWITCH_END_(map, -16, -24),
	};
	struct own_switch own = {.map = map, .value = task, .fits = task_fits, .of = task};

	if (map < 0)
		return map;
	own.program = bpf_call_load(BPF_PROG_TYPE_PERF_EVENT, insns, PROGRAM_LENGTH(insns));
	result = own.program < 0 ? own.program : own_switch_run(&own);
	if (own.program >= 0)
		close(own.program);
	close(map);
	return result < 0 ? result : result ? 0 : -ENOENT;
}

/* Loads a kprobe program for finish_task_switch(), which runs as the arriving thread: where an
 * argument is the task, the map gets its number. */
static int switch_program(int map, uint64_t task)
{
	const struct bpf_insn insns[] = {
		BPF_COPY_(BPF_REG_6, BPF_REG_1),
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_OP_(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_7, 0, 0, (int)(uint32_t)task),
		BPF_OP_(0, 0, 0, 0, (int)(task >> 32)),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_0, BPF_REG_7, 13, 0),
		BPF_STORE_IMM_(BPF_REG_10, -8, 0),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, registers_arguments[0]),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_1, BPF_REG_7, 3, 0),
		BPF_STORE_IMM_(BPF_REG_10, -8, 1),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, registers_arguments[1]),
		BPF_OP_(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_7, 7, 0),
		BPF_MAP_(BPF_REG_1, map),
		BPF_STACK_(BPF_REG_2, -8),
		BPF_COPY_(BPF_REG_3, BPF_REG_2),
		BPF_SET_(BPF_REG_4, BPF_ANY),
		BPF_CALL_(BPF_FUNC_map_update_elem),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load(BPF_PROG_TYPE_KPROBE, insns, PROGRAM_LENGTH(insns));
}

#define SWITCH_SLEEPS 20

/* Tries whether that argument of finish_task_switch() is the leaving thread, by sleeping. The
 * second register may hold a thread that was the first argument of something else: the first
 * counts. */
static int try_switch(uint64_t wanted, char *why)
{
	uint64_t task = 0, first = 0, second = 1, value;
	int map, program, event, result = own_task_find(&task);

	if (result)
		return said(why, result, "reading this thread's own address");
	map = bpf_call_map(BPF_MAP_TYPE_HASH, sizeof(value), sizeof(value), 2);
	program = map < 0 ? map : switch_program(map, task);
	event = program < 0 ? said(why, program, "loading a program")
			    : trial_attach("finish_task_switch", program, why);
	for (int i = 0; event >= 0 && i < SWITCH_SLEEPS; i++)
		nanosleep(&(struct timespec){0, 200000}, NULL);
	if (event >= 0) {
		trial_detach(event);
		result = !bpf_lookup_elem(map, &first, &value)	  ? (int)first
			 : !bpf_lookup_elem(map, &second, &value) ? (int)second
								  : -ENOENT;
		snprintf(why, FEATURE_WHY_SIZE, "its %s argument is the leaving thread",
			 result < 0 ? "third or no"
			 : result   ? "second"
				    : "first");
		result = result == (int)wanted ? 0 : -ENOENT;
	} else {
		result = event;
	}
	if (program >= 0)
		close(program);
	if (map >= 0)
		close(map);
	return result;
}

static int try_run_on_cpu(char *why)
{
	int program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, nothing, PROGRAM_LENGTH(nothing));
	int cpu, result;

	if (program < 0)
		return said(why, program, "loading a program");
	host_cpus_online(&cpu, 1);
	result = bpf_call_run_on_cpu(program, cpu);
	close(program);
	return result < 0 ? said(why, result, "bpf(BPF_PROG_TEST_RUN) on a CPU") : 0;
}

static int try_perf_clock(char *why)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000000,
				       .disabled = 1};

	return try_event(&attr, BPF_PROG_TYPE_PERF_EVENT, why);
}

static int try_cpu_samples(char *why)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000000,
				       .sample_type = PERF_SAMPLE_CALLCHAIN |
						      PERF_SAMPLE_REGS_USER |
						      PERF_SAMPLE_STACK_USER,
				       .sample_regs_user = registers_sample_mask,
				       .sample_stack_user = 8,
				       .use_clockid = 1,
				       .clockid = CLOCK_MONOTONIC,
				       .disabled = 1};
	int cpu = 0, event;

	host_cpus_online(&cpu, 1);
	event = perf_call_open(&attr, -1, cpu);
	if (event < 0)
		return said(why, event, "perf_event_open");
	close(event);
	return 0;
}

static int try_map_batch(char *why)
{
	uint32_t key = 1, out = 0, count = 4, keys[4];
	uint64_t value = 2, values[4];
	int map = bpf_call_map(BPF_MAP_TYPE_HASH, 4, 8, 4), result;

	if (map < 0)
		return said(why, map, "making a map");
	bpf_update_elem(map, &key, &value, BPF_ANY);
	result = bpf_call_lookup_batch(map, NULL, &out, keys, values, &count);
	close(map);
	if ((result == 0 || result == -ENOENT) && count == 1 && keys[0] == 1 && values[0] == 2)
		return 0;
	return said(why, result ? result : -EINVAL, "bpf(BPF_MAP_LOOKUP_BATCH)");
}

/* Tries an array in shared memory, and a stack. */
static int try_thread_slots(char *why)
{
	int array = bpf_call_map_mappable(8, 1), stack, result;
	uint32_t value = 7;
	void *memory;

	if (array < 0)
		return said(why, array, "making an array to be mapped");
	result = bpf_call_map_mapped(array, 8, &memory);
	close(array);
	if (result)
		return said(why, result, "mapping an array");
	munmap(memory, 8);
	stack = bpf_call_map(BPF_MAP_TYPE_STACK, 0, sizeof(value), 1);
	if (stack < 0)
		return said(why, stack, "making a stack");
	bpf_update_elem(stack, NULL, &value, BPF_ANY);
	value = 0;
	result = bpf_call_pop(stack, &value);
	close(stack);
	if (!result && value != 7)
		result = -EINVAL;
	return result ? said(why, result, "popping from a stack") : 0;
}

/* Runs a program with an argument. */
static int try_request_registers(char *why)
{
	const struct bpf_insn insns[] = {
		BPF_LOAD_(BPF_REG_0, BPF_REG_1, 0),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};
	int program, result = try_thread_slots(why);

	if (result)
		return result;
	program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, PROGRAM_LENGTH(insns));
	if (program < 0)
		return said(why, program, "loading a program");
	result = bpf_call_run(program, 1);
	close(program);
	return result < 0 ? said(why, result, "bpf(BPF_PROG_TEST_RUN) with an argument") : 0;
}

/* Loads a program that has a helper read eight bytes into a map value. 4.11 to 4.13 would take
 * that, too, but follow as many ways through programs as 4.9, which the text is made for where this
 * feature is missing: so the program tests a second time whether the address is NULL, and what it
 * then does is refused by a verifier that did not keep the result. */
static int try_read_into_map(char *why)
{
	int map = bpf_call_map(BPF_MAP_TYPE_ARRAY, 4, 16, 1), program;
	struct bpf_insn insns[] = {
		BPF_STORE_IMM_(BPF_REG_10, -8, 0),
		BPF_MAP_(BPF_REG_1, map),
		BPF_STACK_(BPF_REG_2, -8),
		BPF_CALL_(BPF_FUNC_map_lookup_elem),
		BPF_COPY_(BPF_REG_6, BPF_REG_0),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 5, 0),
		BPF_COPY_(BPF_REG_1, BPF_REG_0),
		BPF_SET_(BPF_REG_2, 8),
		BPF_SET_(BPF_REG_3, 0),
		BPF_CALL_(BPF_FUNC_probe_read),
		BPF_SET_(BPF_REG_6, 0),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_6, 0, 1, 0),
		BPF_STORE_IMM_(BPF_REG_6, 0, 0),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	if (map < 0)
		return said(why, map, "making a map");
	program = bpf_call_load(BPF_PROG_TYPE_TRACEPOINT, insns, PROGRAM_LENGTH(insns));
	close(map);
	if (program == -EACCES) {
		/* the verifier's word for an argument of a type that the helper does not take */
		snprintf(why, FEATURE_WHY_SIZE, "the verifier refuses a map value there");
		return -EINVAL;
	}
	if (program < 0)
		return said(why, program, "loading a program");
	close(program);
	return 0;
}

/* Loads a program that calls a helper which reads eight bytes onto the stack. */
static int try_read_helper(int helper, char *why)
{
	const struct bpf_insn insns[] = {
		BPF_STACK_(BPF_REG_1, -8), BPF_SET_(BPF_REG_2, 8), BPF_SET_(BPF_REG_3, 0),
		BPF_CALL_(helper),	   BPF_SET_(BPF_REG_0, 0), BPF_EXIT_(),
	};

	return try_load(insns, PROGRAM_LENGTH(insns), why);
}

/* BPF_MAXINSNS was the limit for everybody before 5.2, and is for the unprivileged since. */
static int try_long_program(char *why)
{
	struct bpf_insn insns[BPF_MAXINSNS + 2];
	const struct bpf_insn set = BPF_SET_(0, 0), end = BPF_EXIT_();

	for (size_t i = 0; i < PROGRAM_LENGTH(insns); i++)
		insns[i] = i + 1 < PROGRAM_LENGTH(insns) ? set : end;
	return try_load(insns, PROGRAM_LENGTH(insns), why);
}

static int try_bpf_stats(char *why)
{
	int stats = bpf_call_stats();

	if (stats < 0)
		return said(why, stats, "bpf(BPF_ENABLE_STATS)");
	close(stats);
	return 0;
}

static int try_pinned_links(char *why)
{
	struct statfs about;
	char path[64];
	int program, link = -1, result;

	if (statfs("/sys/fs/bpf", &about) || (uint32_t)about.f_type != BPF_FS_MAGIC) {
		snprintf(why, FEATURE_WHY_SIZE, "no bpf file system is mounted at /sys/fs/bpf");
		return -ENOENT;
	}
	program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, nothing, PROGRAM_LENGTH(nothing));
	if (program >= 0)
		link = bpf_call_raw_tracepoint(program, "sched_process_exec");
	/* the name has no dot: the kernel keeps names with dots for itself */
	snprintf(path, sizeof(path), "/sys/fs/bpf/tsnap_trial_%ld", (long)getpid());
	result = program < 0 ? program : link < 0 ? link : bpf_call_pin(link, path);
	if (!result)
		unlink(path);
	if (link >= 0)
		close(link);
	if (program >= 0)
		close(program);
	return result ? said(why, result, "pinning a link in /sys/fs/bpf") : 0;
}

/* Tries to attach a program that reads that argument of a raw tracepoint: the kernel knows how many
 * it has (__bpf_probe_register() in kernel/trace/bpf_trace.c). */
static int try_argument(const char *event, int argument, char *why)
{
	const struct bpf_insn insns[] = {
		BPF_LOAD_(BPF_REG_0, BPF_REG_1, 8 * argument),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};
	int program, link;

	program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, PROGRAM_LENGTH(insns));
	if (program < 0)
		return said(why, program, "loading a program");
	link = bpf_call_raw_tracepoint(program, event);
	close(program);
	if (link < 0)
		return said(why, link, "attaching a program");
	close(link);
	return 0;
}

static int try_kernel_locks(char *why)
{
	struct kernel_lock lock;
	int program = kernel_lock_load(), result;

	if (program < 0)
		return said(why, program, "loading a program that reads task_struct.blocker");
	result = kernel_lock_read(program, (uint32_t)getpid(), &lock);
	close(program);
	return result ? said(why, result, "bpf(BPF_PROG_TEST_RUN) with a context") : 0;
}

static int try_lock_search(char *why)
{
	struct lock_search *search;
	int result;

	task_query_begin();
	result = lock_search_open(&search);
	if (result)
		return said(why, result, "loading programs that read lists of waiters");
	lock_search_close(search);
	return 0;
}

static int try_lock_faults(char *why)
{
	struct kernel_memory *memory;
	int result = kernel_memory_open(&memory, true);

	if (result)
		return said(why, result, "running a program by page faults of this thread");
	kernel_memory_close(memory);
	return 0;
}

static int try_file(const char *path, char *why)
{
	if (!access(path, R_OK))
		return 0;
	snprintf(why, FEATURE_WHY_SIZE, "no readable %s", path);
	return -ENOENT;
}

/* clang-format off */
#define TRIAL(name, try, ...) static int name(char *why) { return try(__VA_ARGS__, why); }
TRIAL(try_typed_tracepoint, try_typed, "sched_switch")
TRIAL(try_typed_block_io_start, try_typed, "block_io_start")
TRIAL(try_switch_first, try_switch, 0)
TRIAL(try_switch_second, try_switch, 1)
TRIAL(try_probe_read_kernel, try_read_helper, BPF_FUNC_probe_read_kernel)
TRIAL(try_probe_read_user, try_read_helper, BPF_FUNC_probe_read_user)
TRIAL(try_block_io_start, try_argument, "block_io_start", 0)
TRIAL(try_block_merge, try_argument, "block_rq_merge", 0)
TRIAL(try_block_queue_argument, try_argument, "block_rq_issue", 1)
TRIAL(try_btf, try_file, KERNEL_BTF_PATH)
TRIAL(try_kheaders, try_file, KERNEL_KHEADERS_PATH)
/* clang-format on */

static int try_unwinder(char *why)
{
#ifdef TSNAP_HAS_UNWINDER
	(void)why;
	return 0;
#else
	snprintf(why, FEATURE_WHY_SIZE, "built with -DTSNAP_UNWINDER=OFF");
	return -ENOSYS;
#endif
}

/* --- the table */

#define TRACEPOINT_REMEDY \
	"mount -t tracefs tracefs /sys/kernel/tracing; before 4.15 end what else uses tracepoints"

#define NEEDS(feature) (1u << FEATURE_##feature)

const struct feature_row feature_rows[FEATURE_COUNT] = {
	[FEATURE_BPF] =
		{"bpf", "BPF maps and programs may be made", FEATURE_SINCE(4, 4), 0,
		 "run as root (sudo tsnap), or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE "
		 "(or CAP_SYS_ADMIN)",
		 try_bpf, NULL, 0},
	[FEATURE_RAW_TRACEPOINT] = {"raw_tracepoint", "raw tracepoints, the cheapest probes",
				    FEATURE_SINCE(4, 17), 0, NULL, try_raw_tracepoint, NULL, 0},
	[FEATURE_TYPED_TRACEPOINT] = {"typed_tracepoint",
				      "raw tracepoints whose arguments have types (needs btf)",
				      FEATURE_SINCE(5, 5), NEEDS(RAW_TRACEPOINT) | NEEDS(BTF), NULL,
				      try_typed_tracepoint, NULL, 0},
	[FEATURE_TRACEPOINT] = {"tracepoint", "perf tracepoints, through tracefs",
				FEATURE_SINCE(4, 7), 0, TRACEPOINT_REMEDY, try_tracepoint, NULL, 0},
	[FEATURE_KPROBE] = {"kprobe", "kprobes", FEATURE_SINCE(4, 1), 0, NULL, try_kprobe, NULL, 0},
	[FEATURE_SWITCH_FIRST] =
		{"switch_first",
		 "finish_task_switch() is handed the leaving thread first (needs kprobe)",
		 FEATURE_SINCE(3, 19), NEEDS(KPROBE), NULL, try_switch_first, NULL, 0},
	[FEATURE_SWITCH_SECOND] =
		{"switch_second",
		 "the same with a run queue before the thread (until 3.18; needs kprobe)", 0,
		 NEEDS(KPROBE), "not needed: later kernels hand over the thread alone",
		 try_switch_second, NULL, 0},
	[FEATURE_RUN_ON_CPU] = {"run_on_cpu", "a program can be run on a CPU when it is wanted",
				FEATURE_SINCE(5, 10), 0, NULL, try_run_on_cpu, NULL, 0},
	[FEATURE_PERF_CLOCK] = {"perf_clock", "a perf clock that runs a program on each CPU",
				FEATURE_SINCE(4, 9), 0,
				"sysctl kernel.perf_event_paranoid=2, or run as root",
				try_perf_clock, NULL, 0},
	[FEATURE_CPU_SAMPLES] = {"cpu_samples", "stacks of threads on a CPU, by perf samples",
				 FEATURE_SINCE(4, 1), 0,
				 "sysctl kernel.perf_event_paranoid=0, or run as root",
				 try_cpu_samples, "stacks of threads on a CPU", 0},
	[FEATURE_MAP_BATCH] = {"map_batch", "maps read in batches", FEATURE_SINCE(5, 6), 0, NULL,
			       try_map_batch, NULL, 0},
	[FEATURE_THREAD_SLOTS] =
		{"thread_slots",
		 "the thread state array in shared memory, with stacks of free slots",
		 FEATURE_SINCE(5, 5), 0, NULL, try_thread_slots, NULL, 0},
	[FEATURE_ASK_REGISTERS] =
		{"ask_registers",
		 "registers of sleeping threads can be read on demand (needs thread_slots)",
		 FEATURE_SINCE(5, 10), NEEDS(THREAD_SLOTS), NULL, try_request_registers, NULL, 0},
	[FEATURE_READ_INTO_MAP] = {"read_into_map", "helpers may write to a map value",
				   FEATURE_SINCE(4, 14), 0, NULL, try_read_into_map, NULL, 0},
	[FEATURE_PROBE_READ_KERNEL] = {"probe_read_kernel", "the helper bpf_probe_read_kernel",
				       FEATURE_SINCE(5, 5), 0, NULL, try_probe_read_kernel, NULL,
				       0},
	[FEATURE_PROBE_READ_USER] = {"probe_read_user", "the helper bpf_probe_read_user",
				     FEATURE_SINCE(5, 5), 0, NULL, try_probe_read_user, NULL, 0},
	[FEATURE_LONG_PROGRAM] = {"long_program", "programs of more than 4096 instructions",
				  FEATURE_SINCE(5, 2), 0, NULL, try_long_program, NULL, 0},
	[FEATURE_BPF_STATS] = {"bpf_stats", "runs of programs are counted while tsnap wants it",
			       FEATURE_SINCE(5, 8), 0,
			       "for --self, since 5.1: sysctl kernel.bpf_stats_enabled=1",
			       try_bpf_stats, NULL, 0},
	[FEATURE_PINNED_LINKS] =
		{"pinned_links", "links can be pinned: what --share began outlives its starter",
		 FEATURE_SINCE(5, 7), 0,
		 "needed only to outlive the starter of --share: Linux 5.7 with raw "
		 "tracepoints, and mount -t bpf -o mode=0700 bpf /sys/fs/bpf",
		 try_pinned_links, "a --share that outlives its starter", 0},
	[FEATURE_BLOCK_IO_START] =
		{"block_io_start",
		 "the tracepoint block_io_start, which shows the thread that makes a request",
		 FEATURE_SINCE(6, 5), NEEDS(RAW_TRACEPOINT), NULL, try_block_io_start, NULL, 0},
	[FEATURE_TYPED_BLOCK_IO_START] = {"typed_block_start",
					  "the same with types (needs typed_tracepoint)",
					  FEATURE_SINCE(6, 5),
					  NEEDS(TYPED_TRACEPOINT) | NEEDS(BLOCK_IO_START), NULL,
					  try_typed_block_io_start, NULL, 0},
	[FEATURE_BLOCK_MERGE] = {"block_rq_merge",
				 "the tracepoint block_rq_merge: a request becomes part of another",
				 FEATURE_SINCE(5, 9), NEEDS(RAW_TRACEPOINT), NULL, try_block_merge,
				 NULL, 0},
	[FEATURE_BLOCK_QUEUE_ARGUMENT] =
		{"block_queue_arg",
		 "block tracepoints hand over a queue before the request (until 5.10)",
		 FEATURE_SINCE(4, 17), 0, "not needed: later kernels hand over the request alone",
		 try_block_queue_argument, NULL, 0},
	[FEATURE_KERNEL_LOCKS] =
		{"kernel_locks",
		 "which lock of the kernel a thread waits for, as its task says (needs btf)",
		 FEATURE_SINCE(6, 16), NEEDS(BTF),
		 "a kernel built with CONFIG_DETECT_HUNG_TASK_BLOCKER; lock_search does without",
		 try_kernel_locks, NULL, 0},
	[FEATURE_LOCK_SEARCH] =
		{"lock_search",
		 "which lock of the kernel a thread waits for, by its kernel stack (needs btf)",
		 FEATURE_SINCE(5, 10), NEEDS(BTF), "not needed where there is lock_faults",
		 try_lock_search, NULL, 0},
	[FEATURE_LOCK_FAULTS] =
		{"lock_faults",
		 "the same by programs that page faults of tsnap run (not needed with lock_search)",
		 FEATURE_SINCE(4, 9), 0, "sysctl kernel.perf_event_paranoid=1, or run as root",
		 try_lock_faults, "holders of kernel locks", NEEDS(LOCK_SEARCH)},
	[FEATURE_BTF] = {"btf", "the kernel's own type information", FEATURE_SINCE(5, 2), 0, NULL,
			 try_btf, NULL, 0},
	[FEATURE_KHEADERS] =
		{"kheaders", "the kernel's headers in /sys/kernel", FEATURE_SINCE(5, 2), 0,
		 "as root: --kernel-types kheaders, which loads the module; not needed "
		 "where there is BTF",
		 try_kheaders, NULL, 0},
	[FEATURE_UNWINDER] =
		{"unwinder", "user stacks by the unwind tables of programs; else by frame pointers",
		 0, 0, "a build with libdw of elfutils", try_unwinder,
		 "user stacks of programs without frame pointers", 0},
};

bool feature_has(struct features *features, enum feature feature)
{
	if (features->state[feature] == FEATURE_UNTRIED) {
		int result = feature_rows[feature].try(features->why[feature]);

		features->state[feature] = !result ? FEATURE_THERE
					   : result == -EPERM || result == -EACCES
						   ? FEATURE_FORBIDDEN
						   : FEATURE_MISSING;
	}
	return features->state[feature] == FEATURE_THERE;
}

static int feature_of_name(const char *name, size_t length)
{
	for (int feature = 0; feature < FEATURE_COUNT; feature++)
		if (strlen(feature_rows[feature].name) == length &&
		    !strncmp(feature_rows[feature].name, name, length))
			return feature;
	return -1;
}

static void feature_take_away(struct features *features, int feature)
{
	for (int i = 0; i < FEATURE_COUNT; i++)
		if (feature_rows[i].needs >> feature & 1)
			feature_take_away(features, i);
	features->state[feature] = FEATURE_TAKEN_AWAY;
	snprintf(features->why[feature], FEATURE_WHY_SIZE, "taken away by --without");
}

/* Returns the release of "kernel-4.14" in a list; 0: it is not of that form. */
static uint32_t release_of_name(const char *name, size_t length)
{
	unsigned int major, minor;
	int used = 0;

	if (sscanf(name, "kernel-%3u.%3u%n", &major, &minor, &used) != 2 ||
	    (size_t)used != length || minor > 255)
		return 0;
	return FEATURE_SINCE(major, minor);
}

static int feature_unknown(const char *name, size_t length, struct error *e)
{
	struct text names = {0};
	int err;

	for (int i = 0; i < FEATURE_COUNT; i++)
		text_add_format(&names, "%s, ", feature_rows[i].name);
	err = error_set(e, EINVAL, EXIT_USAGE,
			"--without: no feature is named '%.*s'; there are %sand kernel-4.9 (or any "
			"release) for all that came later",
			(int)(length < 40 ? length : 40), name, text_string(&names));
	text_done(&names);
	return err;
}

int features_take_away(struct features *features, const char *list, struct error *e)
{
	while (list && *list) {
		size_t length = strcspn(list, ",");
		int feature = feature_of_name(list, length);
		uint32_t release = release_of_name(list, length);

		if (feature < 0 && !release)
			return feature_unknown(list, length, e);
		for (int i = 0; i < FEATURE_COUNT; i++)
			if (i == feature || (release && feature_rows[i].since > release))
				feature_take_away(features, i);
		list += length + (list[length] == ',');
	}
	return 0;
}
