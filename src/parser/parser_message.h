/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of a parser's socket (SOCK_SEQPACKET): bytes, and descriptors of files. What runs in a
 * parser is one function for all requests, a parser_service. */
#ifndef TSNAP_PARSER_PARSER_MESSAGE_H
#define TSNAP_PARSER_PARSER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PARSER_MESSAGE_MAX \
	49152 /* bytes of a message; the kernel's default for a socket is four times that */
#define PARSER_FDS_MAX 2

struct parser_message {
	const void *head, *body; /* sent one after the other */
	size_t head_bytes, body_bytes;
	int fds[PARSER_FDS_MAX];
	unsigned int fd_count;
};

/* First number of each requester's kinds: a request begins with a 32-bit number of its kind. */
enum parser_kinds {
	PARSER_FILES = 0,	   /* src/unwind/file_request.h */
	PARSER_CONTAINERS = 0x100, /* src/live/scan/live_parsers.h */
	PARSER_RUNTIMES = 0x200,   /* src/unwind/runtime/runtime_request.h */
	PARSER_GOROUTINES = 0x300, /* src/unwind/runtime/goroutines.c */
	PARSER_OTEL = 0x400,	   /* src/apps/otel.c */
	PARSER_TASKS = 0x500,	   /* src/unwind/runtime/python_tasks.c */
};

/* A request's bytes and descriptors. The service owns the descriptors: it sets those it keeps to
 * -1, the others are closed. */
struct parser_request {
	const void *bytes;
	size_t count;
	int fds[PARSER_FDS_MAX];
	unsigned int fd_count;
};

/* Sends a message. 0 or -errno. */
int parser_message_send(int socket, const struct parser_message *message);
/* Waits for a message, whose bytes go to `to`, and whose descriptors are the caller's from then on.
 * Returns 1, 0 at the end, or -errno; -EMFILE: descriptors were lost. */
int parser_message_receive(int socket, void *to, size_t size, struct parser_request *got);

/* Returns the request's kind; UINT32_MAX: it has none. */
static inline uint32_t parser_request_kind(const struct parser_request *request)
{
	uint32_t kind = UINT32_MAX;

	if (request->count >= sizeof(kind))
		memcpy(&kind, request->bytes, sizeof(kind));
	return kind;
}

/* Runs in the parser. Returns the number of the answer's bytes; 0: the request gets no answer. */
typedef size_t parser_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX]);

#endif
