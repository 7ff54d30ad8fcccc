/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/layout_validate.h"
#include "kernel/bpf_call.h"
#include "kernel/calibrate.h"
#include "kernel/host_file.h"
#include "kernel/own_switch.h"
#include "kernel/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copy that the program makes, within a BPF stack. */
struct switch_copy {
	uint64_t pid_tgid, uid_gid; /* returned by the helpers of these names */
	uint64_t task, stack_end;
	char comm[THREAD_COMM_SIZE]; /* returned by a helper */
	char parent_comm[THREAD_COMM_SIZE];
	struct {
		uint64_t words[2];
	} field[FIELD_MAX];
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
	uint64_t flags, start_ticks;
	size_t rows_held; /* rows that the best value held */
};

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

/* Adds a read of a field. bytes: 0: the first 16 of an array of any length. */
static void read_add(struct program *program, int to, int base, uint32_t offset, uint32_t bytes)
{
	ADD(program, BPF_STACK_(BPF_REG_1, to), BPF_SET_(BPF_REG_2, (int)(bytes ? bytes : 16)),
	    BPF_COPY_(BPF_REG_3, base), BPF_ADD_(BPF_REG_3, (int)offset),
	    BPF_CALL_(BPF_FUNC_probe_read));
}

static size_t task_field(const char *name)
{
	return field_index("task_struct", name);
}

/* base: a register that points to the struct. */
static void fields_add(struct program *program, const struct field_layout *layout, const char *of,
		       int base)
{
	for (size_t i = 0; i < field_count; i++)
		if (!field_rows[i].sets && !strcmp(field_rows[i].of, of))
			read_add(program, AT(field[i]), base, layout->offset[i],
				 field_rows[i].bytes);
}

static void program_write(struct program *program, const struct field_layout *layout, int map)
{
	const int task = BPF_REG_6, other = BPF_REG_7;
	const size_t pid = task_field("thread_pid");

	for (int at = COPY_AT; at < 0; at += 8)
		ADD(program, BPF_STORE_IMM_(BPF_REG_10, at, 0));
	ADD(program, BPF_CALL_(BPF_FUNC_get_current_task), BPF_COPY_(task, BPF_REG_0),
	    BPF_STORE_(BPF_REG_10, AT(task), BPF_REG_0));
	fields_add(program, layout, "task_struct", task);
	if (layout->name[pid])
		read_add(program, AT(field[pid]), task, layout->offset[pid] + PIDS_LINK_BYTES, 8);
	ADD(program, BPF_LOAD_(other, BPF_REG_10, AT(field[pid])));
	fields_add(program, layout, "pid", other);
	ADD(program, BPF_LOAD_(other, BPF_REG_10, AT(field[task_field("cred")])));
	fields_add(program, layout, "cred", other);
	ADD(program, BPF_LOAD_(other, BPF_REG_10, AT(field[task_field("stack")])));
	read_add(program, AT(stack_end), other, 0, 8);
	ADD(program, BPF_LOAD_(other, BPF_REG_10, AT(field[task_field("real_parent")])));
	read_add(program, AT(parent_comm), other, layout->offset[task_field("comm")],
		 THREAD_COMM_SIZE);
	ADD(program, BPF_CALL_(BPF_FUNC_get_current_pid_tgid),
	    BPF_STORE_(BPF_REG_10, AT(pid_tgid), BPF_REG_0),
	    BPF_CALL_(BPF_FUNC_get_current_uid_gid), BPF_STORE_(BPF_REG_10, AT(uid_gid), BPF_REG_0),
	    BPF_STACK_(BPF_REG_1, AT(comm)), BPF_SET_(BPF_REG_2, THREAD_COMM_SIZE),
	    BPF_CALL_(BPF_FUNC_get_current_comm));
	ADD(program, OWN_SWITCH_END_(map, KEY_AT, COPY_AT));
}

/* --- what each field must be */

static uint64_t number(const struct trial *trial, size_t field)
{
	return trial->copy.field[field].words[0]; /* the rest of it was zero */
}

static bool is_pid(const struct trial *trial, size_t field)
{
	return number(trial, field) == (uint32_t)trial->copy.pid_tgid;
}

static bool is_tgid(const struct trial *trial, size_t field)
{
	return number(trial, field) == trial->copy.pid_tgid >> 32;
}

static bool is_comm(const struct trial *trial, size_t field)
{
	return !strncmp((const char *)trial->copy.field[field].words, trial->copy.comm,
			THREAD_COMM_SIZE);
}

/* TASK_INTERRUPTIBLE; 6.1 adds TASK_FREEZABLE above the low byte */
static bool is_asleep(const struct trial *trial, size_t field)
{
	return (number(trial, field) & 0xff) == 1;
}

static bool is_zero(const struct trial *trial, size_t field)
{
	return !number(trial, field);
}

/* PF_EXITING, PF_FORKNOEXEC, PF_KTHREAD, PF_RANDOMIZE: the same bits since 3.10, and they stay as
 * they are while a thread sleeps. */
static bool is_flags(const struct trial *trial, size_t field)
{
	const uint64_t stable = 0x4 | 0x40 | 0x200000 | 0x400000;

	return !trial->stat_known || !((number(trial, field) ^ trial->flags) & stable);
}

/* __schedule() counts before the event of the switch. */
static bool is_nvcsw(const struct trial *trial, size_t field)
{
	return number(trial, field) > (uint64_t)trial->nvcsw_before &&
	       number(trial, field) <= (uint64_t)own_switch_voluntary();
}

/* The start time is a timespec in 3.10 (RHEL 7): the first word counts seconds. */
static bool is_start(const struct trial *trial, size_t field)
{
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK), start = number(trial, field);

	return !trial->start_known ||
	       start / (1000000000 / ticks_per_second) == trial->start_ticks ||
	       start == trial->start_ticks / ticks_per_second;
}

static bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

/* STACK_END_MAGIC lies at the stack's low end, since 3.18; before 4.9 (arm64: 4.10) above other
 * things. */
static bool is_stack(const struct trial *trial, size_t field)
{
	uint32_t offset;
	unsigned int kept;

	return is_kernel_address(number(trial, field)) && !(number(trial, field) & 0xfff) &&
	       (trial->copy.stack_end == 0x57ac6e9d ||
		!calibrate_registers(trial->layout, &offset, &kept));
}

static bool is_address(const struct trial *trial, size_t field)
{
	return is_kernel_address(number(trial, field));
}

static bool is_euid(const struct trial *trial, size_t field)
{
	uint32_t uid = (uint32_t)trial->copy.uid_gid;

	return !trial->same_user || number(trial, field) == uid + trial->other_user;
}

static bool is_parent(const struct trial *trial, size_t field)
{
	return is_address(trial, field) &&
	       (!*trial->parent_name ||
		!strncmp(trial->copy.parent_comm, trial->parent_name, THREAD_COMM_SIZE - 1));
}

/* The group leader is the task itself: the child has no other thread. */
static bool is_task(const struct trial *trial, size_t field)
{
	return number(trial, field) == trial->copy.task;
}

/* The first struct upid: the number in the first pid namespace, and that namespace. */
static bool is_numbers(const struct trial *trial, size_t field)
{
	return (uint32_t)number(trial, field) == (uint32_t)trial->copy.pid_tgid &&
	       is_kernel_address(trial->copy.field[field].words[1]);
}

/* MAX_PID_NS_LEVEL of include/linux/pid_namespace.h */
static bool is_level(const struct trial *trial, size_t field)
{
	return number(trial, field) <= 32;
}

/* Checks in their order: what a row relies on comes before it. */
static const struct proof_row {
	const char *of, *name;
	bool (*holds)(const struct trial *trial, size_t field);
} proof_rows[] = {
	{"task_struct", "pid", is_pid},
	{"task_struct", "tgid", is_tgid},
	{"task_struct", "comm", is_comm},
	{"task_struct", "flags", is_flags},
	{"task_struct", "start_boottime", is_start},
	{"task_struct", "cred", is_address},
	{"cred", "euid", is_euid},
	{"task_struct", "real_parent", is_parent},
	{"task_struct", "group_leader", is_task},
	{"task_struct", "thread_pid", is_address},
	{"pid", "numbers", is_numbers},
	{"pid", "level", is_level},
	{"task_struct", "__state", is_asleep},
	{"task_struct", "exit_state", is_zero},
	{"task_struct", "nvcsw", is_nvcsw},
	{"task_struct", "stack", is_stack},
};

#define PROOF_ROWS (sizeof(proof_rows) / sizeof(proof_rows[0]))

static size_t row_field(const struct proof_row *row)
{
	return field_index(row->of, row->name);
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

	if (host_file_read("/proc/self/stat", text, sizeof(text)) <= 0)
		return; /* no /proc, or another pid namespace's */
	at = strrchr(text, ')');
	/* fields 9 and 22, proc(5) */
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %llu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			  "%*d %*d %llu",
			  &flags, &start) != 2)
		return;
	trial->stat_known = true;
	trial->flags = flags;
	trial->start_ticks = start;
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

	while (row < PROOF_ROWS && proof_rows[row].holds(trial, row_field(&proof_rows[row])))
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
