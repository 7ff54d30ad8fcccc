/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/compile_child.h"
#include "kernel/child_message.h"
#include "kernel/command.h"
#include "kernel/compile_work.h"
#include "kernel/own_switch.h"
#include "kernel/work_dir.h"
#include "base/priority.h"
#include "base/progress.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_BYTES_MAX (4 << 20)
#define WATCH_MS 250 /* interval at which the child is looked after */

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
	/* libbcc unpacks kheaders below TMPDIR, and runs modprobe and tar for that */
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

	compile_result_init(&made, request->threads_max);
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
