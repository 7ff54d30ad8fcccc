/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interface of what runs in a parser: one function, for all requests. */
#ifndef TSNAP_PARSER_PARSER_SERVICE_H
#define TSNAP_PARSER_PARSER_SERVICE_H

#include <stdint.h>
#include <string.h>

#include "parser/parser_message.h"

/* First number of each requester's kinds: a request begins with a 32-bit number of its kind. */
enum parser_kinds {
	PARSER_FILES = 0,	   /* src/unwind/file_request.h */
	PARSER_CONTAINERS = 0x100, /* src/live/live_parsers.h */
	PARSER_RUNTIMES = 0x200,   /* src/unwind/runtime/runtime_request.h */
	PARSER_GOROUTINES = 0x300, /* src/unwind/runtime/goroutine_request.h */
};

/* A request's bytes and descriptors. The service owns the descriptors: it sets those it keeps to
 * -1, the others are closed. */
struct parser_request {
	const void *bytes;
	size_t count;
	int fds[PARSER_FDS_MAX];
	unsigned int fd_count;
};

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
