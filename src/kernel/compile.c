/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/compile.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/priority.h"
#include "base/progress.h"
#include "base/signals.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"
#include "kernel/registers.h"
#include "kernel/host.h"
#include "kernel/own_switch.h"
#include "kernel/pid_namespace.h"
#include "kernel/program_text.h"
#include "kernel/record.h"
#include "kernel/type_source.h"
#include "kernel/work_dir.h"
#include "parser/parser_message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
#define OUTPUT_BYTES_MAX (4 << 20)
#define WATCH_MS 250 /* interval at which the child is looked after */

/* --- messages from the child to its parent, over a SOCK_SEQPACKET pair */

enum child_message_kind {
	MESSAGE_TRIED,	   /* text: a line on a type source */
	MESSAGE_LAYOUT,	   /* layout, text: the source */
	MESSAGE_REGISTERS, /* number: stack_registers, flag: marked, code: why not */
	MESSAGE_PIDS,	   /* number: the parent's tid to the kernel, flag: ids are translated */
	MESSAGE_PROGRAM,   /* number: the group, with a descriptor */
	MESSAGE_MAP,	   /* number: enum kernel_map, with a descriptor */
	MESSAGE_ERROR,	   /* text, code: errno, number: exit code */
	MESSAGE_DONE,
};

struct child_message {
	enum child_message_kind kind;
	int32_t code;
	uint32_t number;
	uint32_t flag;
	struct field_layout layout;
	char text[ERROR_LINE_SIZE];
};

/* Sends a message. descriptor: -1 for none. 0, or -errno with e. */
static int child_message_send(int socket, const struct child_message *message, int descriptor,
			      struct error *e)
{
	const struct parser_message sent = {.head = message,
					    .head_bytes = sizeof(*message),
					    .fds = {descriptor},
					    .fd_count = descriptor >= 0};
	int err = parser_message_send(socket, &sent);

	return err ? error_set(e, -err, EXIT_FAILED, "the compile child can't send its result: %s",
			       strerror(-err))
		   : 0;
}

/* Receives a message. 1, 0 at the other side's end, or -errno (-EMFILE: this process may open no
 * more descriptors). *descriptor gets -1 or a descriptor to close. */
static int child_message_receive(int socket, struct child_message *message, int *descriptor)
{
	struct parser_request got;
	int result = parser_message_receive(socket, message, sizeof(*message), &got);

	*descriptor = got.fd_count ? got.fds[0] : -1;
	return result > 0 ? got.count == sizeof(*message) : result;
}

/* --- work of the child */

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
		return error_set(e, EINVAL, EXIT_FAILED, "the compiled BPF text has no program %s",
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
				 request->knobs.threads_max,
				 (unsigned long long)limit.rlim_cur / 1024);
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS_LEAST)
		return error_set(e, EMFILE, EXIT_FAILED, "libbcc could not make tsnap's maps: %s",
				 strerror(EMFILE));
	fflush(NULL);
	output_end_read(output, printed, sizeof(printed));
	err = error_of_output(printed, line, sizeof(line));
	return error_set(e, err ? err : EINVAL, EXIT_FAILED,
			 "libbcc could not compile tsnap's BPF text, or make its maps for %u "
			 "threads%s%s",
			 request->knobs.threads_max, *line ? ": " : "; -v shows its output", line);
}

/* Sends what it finds and loads to socket. output: the descriptor that standard output and error go
 * to. 0, or -errno with e filled. */
static int compile_work(struct compile_request *request, const char *work_dir, int socket,
			int output, struct error *e)
{
	struct program_knobs *knobs = &request->knobs;
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
		result = pids_find(&layout, request->host, socket, &knobs->pids, e);
	if (result || !request->plan)
		return result;
	if (knobs->parts >> PART_REGISTERS & 1 || knobs->latency_kinds)
		result = registers_find(&layout, socket, knobs, e);
	if (!result)
		result = program_headers_write(work_dir, request->host->kernel_code, e);
	if (result)
		return result;
	program_text_write(request->plan, &layout, knobs, &text);
	module = program_compile(&bcc, knobs, &text);
	text_done(&text);
	if (!module)
		return module_explain(request, output, e);
	control_share(&bcc, module, request->latency_control);
	result = maps_send(&bcc, module, socket, e);
	return result ? result : programs_send(&bcc, module, request->plan, socket, e);
}

static void child_main(const struct compile_request *request, const char *work_dir, int socket,
		       int output, pid_t parent)
{
	struct child_message message = {.kind = MESSAGE_DONE};
	struct compile_request own = *request;
	struct error e = {0};
	char here[PATH_MAX];
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_GET_NAME, own.parent_name);
	prctl(PR_SET_NAME, "tsnap-compile");
	if (getppid() != parent)
		_exit(1);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	/* libbcc gives up where the working directory has no path: deleted, or of another mount
	 * namespace */
	if (!getcwd(here, sizeof(here)) && chdir("/"))
		_exit(1);
	/* libbcc and tsnap unpack kheaders below TMPDIR, and run modprobe and tar for that. The
	 * caller's PATH may be anybody's. */
	setenv("TMPDIR", work_dir, 1);
	setenv("PATH", COMMAND_PATH, 1);
	result = compile_work(&own, work_dir, socket, output, &e);
	if (result) {
		message.kind = MESSAGE_ERROR;
		message.code = -result;
		message.number = e.exit_code;
		snprintf(message.text, sizeof(message.text), "%s", e.line);
	}
	fflush(NULL);
	/* should this fail, the parent sees how the child ends, and what it has printed */
	result = child_message_send(socket, &message, -1, &e);
	if (result)
		dprintf(STDERR_FILENO, "%s\n", e.line);
	/* no destructors: LLVM's take time, and the parent cleans up */
	_exit(result ? 1 : 0);
}

/* --- the parent */

/* Handles a message. 1: go on; 0: the child is done; -errno: it failed, with its words in e. */
static int message_take(const struct child_message *message, int descriptor,
			struct compile_result *result, struct error *e)
{
	switch (message->kind) {
	case MESSAGE_TRIED:
		text_add_string(&result->types_tried, message->text);
		return 1;
	case MESSAGE_LAYOUT:
		result->layout = message->layout;
		snprintf(result->types_source, sizeof(result->types_source), "%.31s",
			 message->text);
		progress_step("compiling its BPF programs");
		return 1;
	case MESSAGE_REGISTERS:
		result->stack_registers = message->number;
		result->registers_kept = message->flag;
		result->calibration = message->code;
		return 1;
	case MESSAGE_PIDS:
		result->own_tid = message->number;
		result->pids_translated = message->flag;
		return 1;
	case MESSAGE_PROGRAM:
		result->programs[message->number % GROUP_COUNT] = descriptor;
		return 1;
	case MESSAGE_MAP:
		progress_step("loading its BPF programs");
		result->maps[message->number % KERNEL_MAP_COUNT] = descriptor;
		return 1;
	case MESSAGE_ERROR:
		return error_set(e, message->code ? message->code : EINVAL,
				 (enum exit_code)message->number, "%s", message->text);
	case MESSAGE_DONE:
		return 0;
	}
	return 1;
}

static int listen_fail(int err, struct error *e)
{
	if (err == -EINTR)
		return error_set(e, EINTR, EXIT_FAILED, "interrupted by a signal");
	return error_set(e, -err, EXIT_FAILED, "the result of the compile child did not arrive: %s",
			 strerror(-err));
}

/* Reads the child's messages. 0, -ECHILD where the child ended early, or another -errno with e. */
static int child_listen(int socket, pid_t child, struct compile_result *result, struct error *e)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	struct child_message message;
	int descriptor, got;

	do {
		while (poll(&answer, 1, WATCH_MS) <= 0) {
			if (signals_stop())
				return listen_fail(-EINTR, e);
			priority_watch(child);
		}
		got = child_message_receive(socket, &message, &descriptor);
		if (got > 0)
			got = message_take(&message, descriptor, result, e);
		else
			return got ? listen_fail(got, e) : -ECHILD;
	} while (got > 0);
	return got;
}

static void output_take(int output, struct text *to)
{
	char part[4096];
	ssize_t got;

	lseek(output, 0, SEEK_SET);
	while (to->length < OUTPUT_BYTES_MAX && (got = read(output, part, sizeof(part))) > 0)
		text_add(to, part, (size_t)got);
}

/* output: what the child has printed. */
static int child_end_explain(int status, const char *output, struct error *e)
{
	char line[256];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return error_set(e, ENOMEM, EXIT_FAILED,
				 "the compile child was killed by signal 9 (Killed); was memory "
				 "short? it needs about 150 MB for a moment");
	if (WIFSIGNALED(status))
		return error_set(
			e, ECHILD, EXIT_FAILED,
			"the compile child was killed by signal %d (%s); -v shows its output",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	error_of_output(output, line, sizeof(line));
	return error_set(e, ECHILD, EXIT_FAILED,
			 "the compile child ended with status %d%s%s; -v shows its output",
			 WEXITSTATUS(status), *line ? ": " : "", line);
}

void compile_result_init(struct compile_result *result, uint32_t threads_max)
{
	*result = (struct compile_result){.threads_max = threads_max};
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		result->maps[map] = -1;
	for (int group = 0; group < GROUP_COUNT; group++)
		result->programs[group] = -1;
}

int compile_child_run(const struct compile_request *request, struct compile_result *result,
		      struct error *e)
{
	struct work_dir work_dir = {.path = ""};
	int sockets[2] = {-1, -1}, output, event, status = 0, failed;
	struct compile_result made;
	pid_t child, parent = getpid();

	compile_result_init(&made, request->knobs.threads_max);
	output = memfd_create("tsnap-compile", MFD_CLOEXEC);
	if (output < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		failed = error_set(e, errno, EXIT_FAILED,
				   "no descriptors for the compile child: %s: %s",
				   output < 0 ? "memfd_create" : "socketpair", strerror(errno));
	else
		failed = work_dir_make(&work_dir, e);
	if (failed)
		goto out;
	fflush(NULL);
	progress_step("finding the layout of kernel types");
	child = fork();
	if (child < 0) {
		failed =
			error_set(e, errno, EXIT_FAILED,
				  "the compile child can't be forked (clone): %s", strerror(errno));
		goto out;
	}
	if (!child)
		child_main(request, work_dir.path, sockets[1], output, parent);
	priority_pass_on(child);
	close(sockets[1]);
	sockets[1] = -1;
	event = own_switch_event(); /* the child will open such events */
	failed = child_listen(sockets[0], child, &made, e);
	if (event >= 0)
		close(event);
	if (failed && failed != -ECHILD)
		kill(child, SIGKILL); /* nobody listens to it any more */
	if (!failed)
		work_dir_remove(&work_dir); /* meanwhile the child frees its memory */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	output_take(output, &made.output);
	if (failed == -ECHILD)
		failed = child_end_explain(status, text_string(&made.output), e);
	if (failed && made.output.length)
		error_take_detail(e, text_take(&made.output));
out:
	work_dir_remove(&work_dir);
	for (int i = 0; i < 2; i++)
		if (sockets[i] >= 0)
			close(sockets[i]);
	if (output >= 0)
		close(output);
	if (failed)
		compile_result_done(&made);
	else
		*result = made;
	return failed;
}

void compile_result_done(struct compile_result *result)
{
	text_done(&result->types_tried);
	text_done(&result->output);
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		if (result->maps[map] >= 0)
			close(result->maps[map]);
	for (int group = 0; group < GROUP_COUNT; group++)
		if (result->programs[group] >= 0)
			close(result->programs[group]);
	compile_result_init(result, 0);
}
