/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_reader.h"
#include "keeper/avoid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STRANGERS_SHARE 50 /* divisor of the time for processes that don't answer */

static int file_open(const struct runtime_reader *reader, int64_t tid, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%lld/%s", reader->proc_root, (long long)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Adds the descriptors of a process' memory to a message. Returns 0 or -errno. */
static int memory_open(const struct runtime_reader *reader, int64_t tid, bool faults,
		       struct parser_message *message)
{
	int fd = file_open(reader, tid, "mem");

	if (fd < 0)
		return fd;
	message->fds[message->fd_count++] = fd;
	if (faults)
		return 0;
	fd = file_open(reader, tid, "pagemap");
	if (fd >= 0)
		message->fds[message->fd_count++] = fd;
	return fd < 0 ? fd : 0;
}

static ssize_t here_request(const struct runtime_reader *reader,
			    const struct parser_message *message, char answer[PARSER_MESSAGE_MAX])
{
	static char bytes[PARSER_MESSAGE_MAX];
	struct parser_request request = {.bytes = bytes,
					 .count = message->head_bytes + message->body_bytes,
					 .fds = {message->fds[0], message->fds[1]},
					 .fd_count = message->fd_count};

	memcpy(bytes, message->head, message->head_bytes);
	if (message->body_bytes)
		memcpy(bytes + message->head_bytes, message->body, message->body_bytes);
	return (ssize_t)reader->service(&request, answer);
}

/* True if a request about the process may be made now. */
static bool may_request(const struct runtime_reader *reader,
			const struct runtime_standing *standing,
			const struct runtime_request *request)
{
	return !standing->ended &&
	       (standing->answered || request->now_ns >= reader->strangers_ns) &&
	       !avoids_process(request->tid);
}

ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const void *more, size_t more_bytes,
			bool faults, size_t least, char answer[PARSER_MESSAGE_MAX])
{
	struct parser_message message = {.head = request,
					 .head_bytes = sizeof(*request),
					 .body = more,
					 .body_bytes = more_bytes};
	ssize_t got = -ECHILD;

	if (!may_request(reader, standing, request))
		return -ETIMEDOUT;
	if (reader->parser)
		got = parser_ready(reader->parser);
	else if (reader->service)
		got = 0;
	if (!got)
		got = memory_open(reader, request->tid, faults, &message);
	if (!got)
		got = reader->parser ? parser_request(reader->parser, &message, answer,
						      PARSER_MESSAGE_MAX, RUNTIME_NS)
				     : here_request(reader, &message, answer);
	while (message.fd_count)
		close(message.fds[--message.fd_count]);
	if (got == -EPIPE) {
		standing->ended = true;
		reader->strangers_ns = request->now_ns + STRANGERS_SHARE * RUNTIME_NS;
	}
	if (got < 0)
		return got;
	standing->answered = true;
	return (size_t)got < least ? -EBADMSG : got;
}
