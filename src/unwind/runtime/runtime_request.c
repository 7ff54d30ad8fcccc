/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_request.h"
#include "keeper/avoid.h"
#include "proc/proc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define STRANGERS_SHARE 50	    /* divisor of the time for processes that don't answer */
#define LIST_NS (10 * 1000000000ll) /* limit of a request for a list */

/* Adds the descriptors of a process' memory to a message. Returns 0 or -errno. */
static int memory_open(const struct runtime_reader *reader, const struct runtime_request *request,
		       struct parser_message *message)
{
	int fd = proc_file_open(reader->proc_root, 0, request->tid, "mem");

	if (fd < 0)
		return fd;
	message->fds[message->fd_count++] = fd;
	/* others may read what is in memory only once it is read, as names that nobody else reads
	 */
	if (request->kind != RUNTIME_GILS && request->kind != RUNTIME_GIL &&
	    request->kind != RUNTIME_PYTHON_LOCK && request->kind != RUNTIME_JAVA_MONITOR)
		return 0;
	fd = proc_file_open(reader->proc_root, 0, request->tid, "pagemap");
	if (fd >= 0)
		message->fds[message->fd_count++] = fd;
	return fd < 0 ? fd : 0;
}

static ssize_t here_request(const struct runtime_reader *reader,
			    const struct parser_message *message, void *answer, size_t size)
{
	static char bytes[PARSER_MESSAGE_MAX];
	static _Alignas(8) char got[PARSER_MESSAGE_MAX];
	struct parser_request request = {.bytes = bytes,
					 .count = message->head_bytes + message->body_bytes,
					 .fds = {message->fds[0], message->fds[1]},
					 .fd_count = message->fd_count};
	size_t count;

	memcpy(bytes, message->head, message->head_bytes);
	if (message->body_bytes)
		memcpy(bytes + message->head_bytes, message->body, message->body_bytes);
	count = reader->service(&request, got);
	memcpy(answer, got, count < size ? count : size);
	return (ssize_t)count;
}

/* True if a request about the process may be made now. */
static bool may_request(const struct runtime_reader *reader,
			const struct runtime_standing *standing,
			const struct runtime_request *request)
{
	return !standing->ended &&
	       (standing->answered || request->now_ns >= reader->strangers_ns) &&
	       !avoids_memory(request->tid);
}

ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const uint64_t *addresses,
			void *answer, size_t size)
{
	struct parser_message message = {.head = request,
					 .head_bytes = sizeof(*request),
					 .body = addresses,
					 .body_bytes = request->count * sizeof(*addresses)};
	ssize_t got = -ECHILD;

	if (!may_request(reader, standing, request))
		return -ETIMEDOUT;
	if (reader->parser)
		got = parser_ready(reader->parser);
	else if (reader->service)
		got = 0;
	if (!got)
		got = memory_open(reader, request, &message);
	if (!got)
		got = reader->parser
			      ? parser_request(reader->parser, &message, answer, size, RUNTIME_NS)
			      : here_request(reader, &message, answer, size);
	while (message.fd_count)
		close(message.fds[--message.fd_count]);
	if (got == -EPIPE) {
		standing->ended = true;
		reader->strangers_ns = request->now_ns + STRANGERS_SHARE * RUNTIME_NS;
	}
	standing->answered = standing->answered || got >= 0;
	return got;
}

int runtime_list_request(struct parser *parser, const void *request, size_t request_bytes,
			 int memory, void *answer, size_t bytes)
{
	const struct parser_message message = {.head = request,
					       .head_bytes = request_bytes,
					       .fds = {memory},
					       .fd_count = memory >= 0};
	ssize_t got = parser_request(parser, &message, answer, bytes, LIST_NS);

	return parser_answer_check(got, bytes);
}
