/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/compile_work.h"
#include "kernel/btf_ids.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/calibrate.h"
#include "kernel/child_message.h"
#include "kernel/pid_namespace.h"
#include "kernel/kernel_thread.h"
#include "kernel/program_text.h"
#include "kernel/record.h"
#include "kernel/type_source.h"
#include "kernel/version_code.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const struct kernel_map_row kernel_map_rows[KERNEL_MAP_COUNT] = {
	[KERNEL_MAP_THREADS] = {"ts_threads", sizeof(struct thread_state)},
	[KERNEL_MAP_SLOTS] = {"ts_slots", sizeof(__u32)},
	[KERNEL_MAP_FREE] = {"ts_free", sizeof(__u32)},
	[KERNEL_MAP_NEAR] = {"ts_near", sizeof(__u32)},
	[KERNEL_MAP_COUNTERS] = {"ts_counters", sizeof(struct probe_counters)},
	[KERNEL_MAP_SAMPLING] = {"ts_sampling", sizeof(struct sampling)},
	[KERNEL_MAP_CHANGED] = {"ts_changed", sizeof(struct changed_ring)},
	[KERNEL_MAP_SCAN_TIME] = {"ts_scan_time", sizeof(struct scan_time_ring)},
	[KERNEL_MAP_TICKS] = {"ts_ticks", sizeof(struct cpu_tick)},
	[KERNEL_MAP_REQUESTS] = {"ts_requests", sizeof(struct registers_request)},
	[KERNEL_MAP_LATENCY] = {"ts_latency", sizeof(struct latency_control)},
	[KERNEL_MAP_LATENCY_ONE] = {"ts_latency_one", sizeof(struct latency)},
	[KERNEL_MAP_LATENCY_TWO] = {"ts_latency_two", sizeof(struct latency)},
	[KERNEL_MAP_PROCESSES] = {"ts_processes", sizeof(struct process_totals)},
	[KERNEL_MAP_STACK_REQUESTS] = {"ts_stack_reqs", sizeof(struct stack_request)},
	[KERNEL_MAP_BLOCK] = {"ts_block", sizeof(struct block_request)},
	[KERNEL_MAP_SLOTS_ONE] = {"ts_slots_one", sizeof(struct latency_slot)},
	[KERNEL_MAP_SLOTS_TWO] = {"ts_slots_two", sizeof(struct latency_slot)},
	[KERNEL_MAP_EVENTS] = {"ts_events", sizeof(struct event_ring)},
	[KERNEL_MAP_KEPT] = {"ts_kept", sizeof(__u32)},
	[KERNEL_MAP_WINDOW] = {"ts_window", sizeof(struct capture_window)},
	[KERNEL_MAP_LOOKED] = {"ts_looked", sizeof(__u32)},
	[KERNEL_MAP_WAKES] = {"ts_wakes", sizeof(struct wake_ring)},
};

/* Returns the sets of fields that the plan's programs read; without a plan all, for an offsets
 * file. */
static unsigned int fields_wanted(const struct probe_plan *plan)
{
	unsigned int sets = plan ? 0 : FIELDS_ALL;

	for (int group = 0; plan && group < GROUP_COUNT; group++)
		if (plan->chosen[group] && plan->chosen[group]->kind != PROBE_TRACEPOINT)
			sets |= probe_group_rows[group].fields;
	return sets;
}

static int fields_check(const struct compile_request *request, const struct field_layout *layout,
			struct error *e)
{
	/* programs do less without the fields of FIELDS_QUOTA */
	if (!request->plan ||
	    field_sets_there(layout, fields_wanted(request->plan) & ~FIELDS_QUOTA))
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
			 "the kernel types lack struct request, which --trace block and "
			 "io columns need: give another source, or --without raw_tracepoint where "
			 "tracefs is mounted");
}

static int types_find(const struct compile_request *request, const struct bcc_library *bcc,
		      const char *work_dir, int socket, int output, struct field_layout *layout,
		      struct error *e)
{
	const struct type_request types = {.choice = request->types_choice,
					   .btf_file = request->btf_file,
					   .offsets_file = request->offsets_file,
					   .host = request->host,
					   .features = request->features,
					   .bcc = bcc,
					   .work_dir = work_dir,
					   .parent_name = request->parent_name,
					   .fields = fields_wanted(request->plan),
					   .output = output};
	struct child_message message = {.kind = MESSAGE_TRIED};
	struct type_found found = {0};
	struct error unsent = {0};
	struct text tried = {0};
	int result = type_source_find(&types, &found, &tried, e);

	snprintf(message.text, sizeof(message.text), "%s", text_string(&tried));
	text_done(&tried);
	if (!result)
		result = child_message_send(socket, &message, -1, e);
	else
		child_message_send(socket, &message, -1, &unsent); /* the first failure counts */
	error_done(&unsent);
	if (result)
		return result;
	message.kind = MESSAGE_LAYOUT;
	message.layout = *layout = found.layout;
	snprintf(message.text, sizeof(message.text), "%s", found.source->name);
	return child_message_send(socket, &message, -1, e);
}

#define LOG_BYTES ((16u << 20) - 1) /* the most that kernels before 5.2 take */
#define LOG_SHOWN_BYTES 4096	    /* the log's end has the verifier's complaint */

/* Loads a program. log: buffer of LOG_BYTES for the verifier's log, or NULL. Descriptor or
 * -errno. */
static int program_try(const struct bcc_library *bcc, void *module, const struct probe_row *row,
		       char *log)
{
	struct bpf_load load = {.type = probe_program_types[row->kind],
				.name = row->name,
				.instructions = bcc->bpf_function_start(module, row->function),
				.count = bcc->bpf_function_size(module, row->function) /
					 sizeof(struct bpf_insn),
				.log = log,
				.log_size = LOG_BYTES};

	if (row->kind == PROBE_TYPED_TRACEPOINT) {
		int id = btf_tracepoint_id(row->event);

		if (id < 0)
			return id;
		load.attach_type = BPF_TRACE_RAW_TP;
		load.btf_id = (uint32_t)id;
	}
	return bpf_call_load_described(&load);
}

/* Words for an errno: the kernel has one for many things. */
static const char *refusal_words(int error)
{
	switch (error) {
	case E2BIG:
		return "its verifier gave up: too many instructions, or too many ways through them";
	case EACCES:
		return "its verifier found an access that it can't prove to be safe";
	case EPERM:
		return "not permitted";
	case ENOMEM:
		return "memory is short";
	}
	return strerror(error);
}

/* Prints the verifier's log, which is requested only when it refused, because it costs time; a log
 * that does not fit makes an error of its own, which is ignored. */
static void refusal_print(const struct bcc_library *bcc, void *module, const struct probe_row *row)
{
	char *log = memory_get(LOG_BYTES);
	int fd = program_try(bcc, module, row, log);
	size_t length = strlen(log);

	if (length > LOG_SHOWN_BYTES)
		printf("... the end of the verifier's log, of %zu bytes:\n%s\n", length,
		       log + length - LOG_SHOWN_BYTES);
	else
		printf("%s\n", log);
	if (fd >= 0)
		close(fd);
	free(log);
}

static int program_load(const struct bcc_library *bcc, void *module, const struct probe_row *row,
			struct error *e)
{
	int fd;

	if (!bcc->bpf_function_start(module, row->function))
		return error_set(e, EINVAL, EXIT_FAILED, "libbcc found no program %s in its text",
				 row->function);
	fd = program_try(bcc, module, row, NULL);
	if (fd >= 0)
		return fd;
	refusal_print(bcc, module, row);
	return error_set(e, -fd, EXIT_FAILED, "the kernel refused the BPF program %s (%s): %s%s",
			 row->name, probe_kind_names[row->kind], refusal_words(-fd),
			 fd == -EMFILE ? "" : "; -v shows the end of the verifier's log");
}

/* Replaces the module's control map by the shared one: programs name maps by descriptor until they
 * are loaded. */
static void control_share(const struct bcc_library *bcc, void *module, int control)
{
	int fd = bcc->bpf_table_fd(module, kernel_map_rows[KERNEL_MAP_LATENCY].name);

	if (fd >= 0 && control >= 0)
		dup2(control, fd);
}

static int maps_send(const struct bcc_library *bcc, void *module, int socket, struct error *e)
{
	for (uint32_t i = 0; i < KERNEL_MAP_COUNT; i++) {
		struct child_message message = {.kind = MESSAGE_MAP, .number = i};
		int fd = bcc->bpf_table_fd(module, kernel_map_rows[i].name), err;

		if (fd < 0)
			continue; /* the map's fragment was not chosen */
		if (bcc->bpf_table_leaf_size(module, kernel_map_rows[i].name) !=
		    kernel_map_rows[i].leaf_bytes)
			return error_set(
				e, EINVAL, EXIT_FAILED,
				"libbcc and the C compiler lay out the record of %s differently; "
				"please report this with tsnap --version and --check",
				kernel_map_rows[i].name);
		err = child_message_send(socket, &message, fd, e);
		if (err)
			return err;
	}
	return 0;
}

static int programs_send(const struct bcc_library *bcc, void *module, const struct probe_plan *plan,
			 int socket, struct error *e)
{
	for (uint32_t group = 0; group < GROUP_COUNT; group++) {
		struct child_message message = {.kind = MESSAGE_PROGRAM, .number = group};
		int fd, err;

		if (!plan->chosen[group])
			continue;
		fd = program_load(bcc, module, plan->chosen[group], e);
		if (fd < 0)
			return fd;
		err = child_message_send(socket, &message, fd, e);
		if (err)
			return err;
	}
	return 0;
}

static int registers_find(const struct field_layout *layout, int socket,
			  struct program_knobs *knobs, struct error *e)
{
	struct child_message message = {.kind = MESSAGE_REGISTERS};

	message.code = calibrate_registers(layout, &knobs->stack_registers, &knobs->registers_kept);
	if (message.code)
		knobs->stack_registers = 0;
	message.number = knobs->stack_registers;
	message.flag = knobs->registers_kept;
	return child_message_send(socket, &message, -1, e);
}

static int pids_find(const struct field_layout *layout, const struct host *host, int socket,
		     struct pid_namespace *pids, struct error *e)
{
	struct child_message message = {.kind = MESSAGE_PIDS};
	int result = pid_namespace_find(layout, host, pids, e);

	if (result)
		return result;
	message.number = pids->parent_tid;
	message.flag = pids->translated;
	return child_message_send(socket, &message, -1, e);
}

/* Reads the end of the output. */
static void output_end_read(int output, char *text, size_t size)
{
	off_t end = lseek(output, 0, SEEK_END), most = (off_t)size - 1;
	ssize_t got = pread(output, text, size - 1, end > most ? end - most : 0);

	text[got > 0 ? got : 0] = '\0';
}

/* Explains why there is no module, libbcc's only answer to failures of the compiler and of maps.
 * output: what it has printed. */
static int module_explain(const struct compile_request *request, int output, struct error *e)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	char printed[4096], line[512];
	int err;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY && request->host->kernel_code < KERNEL_CODE(5, 11))
		return error_set(e, EPERM, EXIT_HOST_CANNOT,
				 "the kernel made no maps for %u threads: before 5.11 they count "
				 "against the memory limit (ulimit -l), which is %llu KB, and "
				 "which only CAP_SYS_RESOURCE lets tsnap raise; -v says more",
				 request->threads_max, (unsigned long long)limit.rlim_cur / 1024);
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS_LEAST)
		return error_set(e, EMFILE, EXIT_FAILED, "libbcc could not make tsnap's maps: %s",
				 strerror(EMFILE));
	fflush(NULL);
	output_end_read(output, printed, sizeof(printed));
	err = error_of_output(printed, line, sizeof(line));
	return error_set(e, err ? err : EINVAL, EXIT_FAILED,
			 "libbcc could not compile tsnap's BPF text, or make its maps for %u "
			 "threads%s%s",
			 request->threads_max, *line ? ": " : "; -v shows its output", line);
}

int compile_work(const struct compile_request *request, const char *work_dir, int socket,
		 int output, struct error *e)
{
	struct program_knobs knobs = {.threads_max = request->threads_max,
				      .cpus_max = (uint32_t)request->host->cpus_possible,
				      .read_into_map = request->read_into_map,
				      .thread_slots = request->thread_slots,
				      .parts = request->parts,
				      .latency_kinds = request->latency_kinds,
				      .turn_first = request->turn_first,
				      .thread_flags =
					      kernel_thread_flags_of(request->host->kernel_code),
				      .trace_pids = request->trace_pids,
				      .trace_tids = request->trace_tids,
				      .process_totals = request->process_totals,
				      .block_argument = request->block_argument,
				      .slower_ns = request->slower_ns,
				      .probe_read_kernel = request->probe_read_kernel};
	struct field_layout layout;
	struct bcc_library bcc;
	struct text text = {0};
	void *module;
	int result = bcc_library_open(&bcc, e);

	if (!result)
		result = types_find(request, &bcc, work_dir, socket, output, &layout, e);
	if (!result)
		result = fields_check(request, &layout, e);
	if (!result && request->plan)
		result = pids_find(&layout, request->host, socket, &knobs.pids, e);
	if (result || !request->plan)
		return result;
	if (knobs.parts >> PART_REGISTERS & 1 || knobs.latency_kinds)
		result = registers_find(&layout, socket, &knobs, e);
	if (!result)
		result = program_headers_write(work_dir, request->host->kernel_code, e);
	if (result)
		return result;
	program_text_write(request->plan, &layout, &knobs, &text);
	module = program_compile(&bcc, &knobs, &text);
	text_done(&text);
	if (!module)
		return module_explain(request, output, e);
	control_share(&bcc, module, request->latency_control);
	result = maps_send(&bcc, module, socket, e);
	return result ? result : programs_send(&bcc, module, request->plan, socket, e);
}
