/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/layout_validate.h"
#include "kernel/bpf_call.h"
#include "kernel/registers.h"
#include "base/host_file.h"
#include "kernel/own_switch.h"
#include "kernel/record.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 40

/* Copy that the program makes, within a BPF stack. */
struct switch_copy {
	uint64_t pid_tgid, uid_gid; /* returned by the helpers of these names */
	uint64_t task, stack_end;
	char comm[THREAD_COMM_SIZE]; /* returned by a helper */
	char parent_comm[THREAD_COMM_SIZE];
	uint64_t words[WORDS_MAX]; /* those of each proof row, one row behind the other */
};

#define COPY_AT (-(int)sizeof(struct switch_copy))
#define KEY_AT (COPY_AT - 8)
#define AT(member) (COPY_AT + (int)offsetof(struct switch_copy, member))
_Static_assert(-KEY_AT <= 512, "the stack of a BPF program");

struct trial {
	const struct field_layout *layout;
	const char *parent_name;
	struct switch_copy copy;
	bool other_user, same_user; /* the sleep has euid uid + 1; euid is uid */
	long nvcsw_before;
	bool stat_known, start_known; /* stat was read; its start time can be compared */
	uint64_t flags, start_ticks, suspended_ns;
	uint32_t priority, nice, exit_signal, realtime; /* as /proc/PID/stat has them */
	size_t rows_held;				/* rows that the best value held */
};

/* --- what each field must be. at: the field's word, and words before and behind it; value: the
 * field's bytes of at[0]. A neighbour shows which of several equal members a field is: kernels from
 * 3.10 on have these members in the same order. */

static bool is_pid(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)at;
	return value == (uint32_t)trial->copy.pid_tgid;
}

static bool is_tgid(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)at;
	return value == trial->copy.pid_tgid >> 32;
}

static bool is_comm(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)value;
	return !strncmp((const char *)at, trial->copy.comm, THREAD_COMM_SIZE);
}

/* TASK_INTERRUPTIBLE; 6.1 adds TASK_FREEZABLE above the low byte. Behind it is the rest of a long
 * (until 5.13), padding, or saved_state, which is zero in a system call. */
static bool is_asleep(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)trial;
	return (value & 0xff) == 1 && at[0] == value;
}

/* exit_code, zero as well, and exit_signal follow. */
static bool is_exit_state(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	return !value && (!trial->stat_known || (!at[0] && (uint32_t)at[1] == trial->exit_signal));
}

/* PF_EXITING, PF_FORKNOEXEC, PF_KTHREAD, PF_RANDOMIZE: the same bits since 3.10, and they stay as
 * they are while a thread sleeps. */
static bool is_flags(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	const uint64_t stable = 0x4 | 0x40 | 0x200000 | 0x400000;

	(void)at;
	return !trial->stat_known || !((value ^ trial->flags) & stable);
}

/* __schedule() counts before the event of the switch. */
static bool is_nvcsw(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)at;
	return value > (uint64_t)trial->nvcsw_before && value <= (uint64_t)own_switch_voluntary();
}

/* Before the start time by the boot clock is that by the monotonic clock, which lacks the time in
 * suspend; they are taken one after the other. The start time is a timespec in 3.10 (RHEL 7): the
 * first word counts seconds. */
static bool is_start(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);

	if (!trial->start_known || value == trial->start_ticks / ticks_per_second)
		return true;
	return value / (1000000000 / ticks_per_second) == trial->start_ticks &&
	       value - at[-1] - trial->suspended_ns + 1000000000 < 2000000000;
}

static bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

/* STACK_END_MAGIC lies at the stack's low end, since 3.18; before 4.9 (arm64: 4.10) above other
 * things. */
static bool is_stack(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	uint32_t offset;
	unsigned int kept;

	(void)at;
	return is_kernel_address(value) && !(value & 0xfff) &&
	       (trial->copy.stack_end == 0x57ac6e9d ||
		!calibrate_registers(trial->layout, &offset, &kept));
}

static bool is_address(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)trial;
	(void)at;
	return is_kernel_address(value);
}

/* Before it is real_cred: the same outside of calls that act for another. */
static bool is_cred(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	return is_address(trial, at, value) && at[-1] == value;
}

static bool is_euid(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	uint32_t uid = (uint32_t)trial->copy.uid_gid;

	(void)at;
	return !trial->same_user || value == uid + trial->other_user;
}

/* Behind it are the parent for ptrace(2), and the children: an empty list, or one of tasks. */
static bool is_parent(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	return is_address(trial, at, value) && is_kernel_address(at[1]) &&
	       is_kernel_address(at[2]) && (at[1] == value || at[2] == at[3]) &&
	       (!*trial->parent_name ||
		!strncmp(trial->copy.parent_comm, trial->parent_name, THREAD_COMM_SIZE - 1));
}

/* The group leader is the task itself: the child has no other thread. */
static bool is_task(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)at;
	return value == trial->copy.task;
}

/* The first struct upid: the number in the first pid namespace, and that namespace. */
static bool is_numbers(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	return (uint32_t)value == (uint32_t)trial->copy.pid_tgid && is_address(trial, at, at[1]);
}

/* MAX_PID_NS_LEVEL of include/linux/pid_namespace.h */
static bool is_level(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	(void)trial;
	(void)at;
	return value <= 32;
}

/* Then come static_prio, normal_prio and rt_priority. MAX_RT_PRIO is 100, and is subtracted in
 * /proc/PID/stat. */
static bool is_priority(const struct trial *trial, const uint64_t *at, uint64_t value)
{
	return !trial->stat_known ||
	       (value == trial->priority + 100 && at[0] >> 32 == trial->nice + 120 &&
		(uint32_t)at[1] == value && at[1] >> 32 == trial->realtime);
}

/* Checks in their order: what a row relies on comes before it. */
static const struct proof_row {
	const char *of, *name;
	unsigned int before, behind; /* words that are read beside the field's own */
	bool (*holds)(const struct trial *trial, const uint64_t *at, uint64_t value);
} proof_rows[] = {
	{"task_struct", "pid", 0, 0, is_pid},
	{"task_struct", "tgid", 0, 0, is_tgid},
	{"task_struct", "comm", 0, 1, is_comm},
	{"task_struct", "flags", 0, 0, is_flags},
	{"task_struct", "start_boottime", 1, 0, is_start},
	{"task_struct", "cred", 1, 0, is_cred},
	{"cred", "euid", 0, 0, is_euid},
	{"task_struct", "real_parent", 0, 3, is_parent},
	{"task_struct", "group_leader", 0, 0, is_task},
	{"task_struct", "thread_pid", 0, 0, is_address},
	{"pid", "numbers", 0, 1, is_numbers},
	{"pid", "level", 0, 0, is_level},
	{"task_struct", "__state", 0, 0, is_asleep},
	{"task_struct", "exit_state", 0, 1, is_exit_state},
	{"task_struct", "nvcsw", 0, 0, is_nvcsw},
	{"task_struct", "stack", 0, 0, is_stack},
	{"task_struct", "prio", 0, 1, is_priority},
	{"task_struct", "sched_task_group", 0, 0, is_address},
};

#define PROOF_ROWS (sizeof(proof_rows) / sizeof(proof_rows[0]))

static size_t row_field(const struct proof_row *row)
{
	return field_index(row->of, row->name);
}

/* Returns the index in switch_copy.words of the field's own word. */
static size_t row_word(size_t row)
{
	size_t at = 0;

	for (size_t i = 0; i < row; i++)
		at += proof_rows[i].before + 1 + proof_rows[i].behind;
	return at + proof_rows[row].before;
}

static bool row_holds(const struct trial *trial, size_t row)
{
	const uint64_t *at = &trial->copy.words[row_word(row)];
	size_t field = row_field(&proof_rows[row]);
	bool half = field_rows[field].bytes == 4;

	return !field_there(trial->layout, field) ||
	       proof_rows[row].holds(trial, at, half ? (uint32_t)at[0] : at[0]);
}

/* --- the program */

struct program {
	struct bpf_insn insns[512];
	size_t count;
};

static void program_add(struct program *program, const struct bpf_insn *insns, size_t count)
{
	for (size_t i = 0; i < count && program->count < 512; i++)
		program->insns[program->count++] = insns[i];
}

#define ADD(program, ...)                                            \
	program_add(program, (const struct bpf_insn[]){__VA_ARGS__}, \
		    sizeof((const struct bpf_insn[]){__VA_ARGS__}) / sizeof(struct bpf_insn))

static void read_add(struct program *program, int to, int base, int offset, size_t bytes)
{
	ADD(program, BPF_STACK_(BPF_REG_1, to), BPF_SET_(BPF_REG_2, (int)bytes),
	    BPF_COPY_(BPF_REG_3, base), BPF_ADD_(BPF_REG_3, offset),
	    BPF_CALL_(BPF_FUNC_probe_read));
}

/* Adds reads of the words of a struct's rows. base: a register that points to the struct. */
static void rows_add(struct program *program, const struct field_layout *layout, const char *of,
		     int base)
{
	for (size_t i = 0; i < PROOF_ROWS; i++) {
		const struct proof_row *row = &proof_rows[i];
		size_t field = row_field(row);
		int from = (int)layout->offset[field] - 8 * (int)row->before;

		if (strcmp(row->of, of) != 0 || !field_there(layout, field))
			continue;
		if (layout->name[field] && !strcmp(row->name, "thread_pid"))
			from += PIDS_LINK_BYTES;
		read_add(program, AT(words[row_word(i) - row->before]), base, from,
			 8 * ((size_t)row->before + 1 + row->behind));
	}
}

/* Adds a load of a row's value, an address. */
static void pointer_add(struct program *program, int to, const char *name)
{
	for (size_t i = 0; i < PROOF_ROWS; i++)
		if (!strcmp(proof_rows[i].name, name))
			ADD(program, BPF_LOAD_(to, BPF_REG_10, AT(words[row_word(i)])));
}

static void program_write(struct program *program, const struct field_layout *layout, int map)
{
	const int task = BPF_REG_6, other = BPF_REG_7;
	const uint32_t comm = layout->offset[field_index("task_struct", "comm")];

	for (int at = COPY_AT; at < 0; at += 8)
		ADD(program, BPF_STORE_IMM_(BPF_REG_10, at, 0));
	ADD(program, BPF_CALL_(BPF_FUNC_get_current_task), BPF_COPY_(task, BPF_REG_0),
	    BPF_STORE_(BPF_REG_10, AT(task), BPF_REG_0));
	rows_add(program, layout, "task_struct", task);
	pointer_add(program, other, "thread_pid");
	rows_add(program, layout, "pid", other);
	pointer_add(program, other, "cred");
	rows_add(program, layout, "cred", other);
	pointer_add(program, other, "stack");
	read_add(program, AT(stack_end), other, 0, 8);
	pointer_add(program, other, "real_parent");
	read_add(program, AT(parent_comm), other, (int)comm, THREAD_COMM_SIZE);
	ADD(program, BPF_CALL_(BPF_FUNC_get_current_pid_tgid),
	    BPF_STORE_(BPF_REG_10, AT(pid_tgid), BPF_REG_0),
	    BPF_CALL_(BPF_FUNC_get_current_uid_gid), BPF_STORE_(BPF_REG_10, AT(uid_gid), BPF_REG_0),
	    BPF_STACK_(BPF_REG_1, AT(comm)), BPF_SET_(BPF_REG_2, THREAD_COMM_SIZE),
	    BPF_CALL_(BPF_FUNC_get_current_comm));
	ADD(program, OWN_SWITCH_END_(map, KEY_AT, COPY_AT));
}

bool layout_validate_knows(size_t field)
{
	for (size_t i = 0; i < PROOF_ROWS; i++)
		if (!strcmp(proof_rows[i].of, field_rows[field].of) &&
		    !strcmp(proof_rows[i].name, field_rows[field].names[0]))
			return true;
	return false;
}

/* --- what this thread knows of itself */

static void stat_read(struct trial *trial)
{
	char text[1024], *at;
	unsigned long long flags, start;
	int priority, nice, exit_signal;
	unsigned int realtime;

	if (host_file_read("/proc/self/stat", text, sizeof(text)) <= 0)
		return; /* no /proc, or another pid namespace's */
	at = strrchr(text, ')');
	/* fields 9, 18, 19, 22, 38 and 40, proc(5) */
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %llu %*u %*u %*u %*u %*u %*u %*d %*d %d %d "
			  "%*d %*d %llu %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u "
			  "%*u %d %*d %u",
			  &flags, &priority, &nice, &start, &exit_signal, &realtime) != 6)
		return;
	trial->stat_known = true;
	trial->flags = flags;
	trial->start_ticks = start;
	trial->priority = (uint32_t)priority;
	trial->nice = (uint32_t)nice;
	trial->exit_signal = (uint32_t)exit_signal;
	trial->realtime = realtime;
}

/* A time namespace (5.6) moves the start time that /proc shows. */
static bool clock_is_moved(void)
{
	char text[256];
	long long seconds, ns;
	char *line;

	if (host_file_read("/proc/self/timens_offsets", text, sizeof(text)) <= 0)
		return false;
	line = strstr(text, "boottime");
	return line && sscanf(line, "boottime %lld %lld", &seconds, &ns) == 2 && (seconds || ns);
}

/* True outside of user namespaces: in one, the kernel's number of the next user is another. */
static bool users_are_plain(void)
{
	char text[256];
	unsigned long inside, outside, count;

	return host_file_read("/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%lu %lu %lu", &inside, &outside, &count) == 3 && !inside && !outside &&
	       count == UINT32_MAX;
}

static void trial_begin(struct trial *trial)
{
	uid_t uid, euid, suid;

	stat_read(trial);
	trial->start_known = trial->stat_known && !clock_is_moved();
	trial->suspended_ns = (uint64_t)(clock_boot_ns() - clock_monotonic_ns());
	trial->same_user = !getresuid(&uid, &euid, &suid) && uid == euid;
	/* root's user ids are all the same: another one shows which is the effective one */
	trial->other_user = trial->same_user && !uid && !suid && users_are_plain();
}

/* True if all rows hold. If there are several values, the one that passes the most rows is that of
 * the sleep. */
static bool trial_fits(void *of)
{
	struct trial *trial = of;
	size_t row = 0;

	while (row < PROOF_ROWS && row_holds(trial, row))
		row++;
	if (row > trial->rows_held)
		trial->rows_held = row;
	return row == PROOF_ROWS;
}

/* Two sleeps must fit: counters must have gone on in the second one. */
static int sleeps_look(struct trial *trial, struct own_switch *own)
{
	int result = 1;

	for (int sleep = 0; sleep < 2 && result == 1; sleep++) {
		trial->rows_held = 0;
		trial->nvcsw_before = own_switch_voluntary();
		own->other_user = trial->other_user;
		result = own_switch_run(own);
		if (result < 0 && trial->other_user) {
			own->other_user = trial->other_user = false; /* it may be refused */
			result = own_switch_run(own);
		}
	}
	return result;
}

static int program_validate(struct trial *trial, int map, struct layout_validation *proof,
			    const char **what)
{
	struct own_switch own = {
		.map = map, .value = &trial->copy, .fits = trial_fits, .of = trial};
	struct program program = {.count = 0};
	int result;

	program_write(&program, trial->layout, map);
	*what = "bpf(BPF_PROG_LOAD)";
	own.program = bpf_call_load(BPF_PROG_TYPE_PERF_EVENT, program.insns, program.count);
	if (own.program < 0)
		return own.program;
	result = sleeps_look(trial, &own);
	close(own.program);
	*what = own.what;
	if (!result)
		proof->field = row_field(&proof_rows[trial->rows_held]);
	return result;
}

int layout_validate(const struct field_layout *layout, const char *parent_name,
		    struct layout_validation *proof)
{
	struct trial trial = {.layout = layout, .parent_name = parent_name};
	const char *what = "bpf(BPF_MAP_CREATE)";
	int map = own_switch_map(sizeof(trial.copy)), result = map;

	if (map >= 0) {
		trial_begin(&trial);
		result = program_validate(&trial, map, proof, &what);
		close(map);
	}
	if (result < 0) {
		snprintf(proof->why, sizeof(proof->why), "%s: %s", what, strerror(-result));
		return result;
	}
	return !result;
}
