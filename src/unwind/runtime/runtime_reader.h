/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends a parser a request about a process' memory: opens the memory (/proc/TID/mem, which
 * CAP_SYS_PTRACE allows) and hands the descriptor over, for one request. All that is followed
 * there, from pointer to pointer, is followed without privileges, and no word takes a message of
 * its own.
 *
 * Memory can make its reader wait for ever, for a file system of its owner's. Without `faults` only
 * pages that are present are read, by /proc/TID/pagemap. With it a parser that does not answer
 * within RUNTIME_NS is given up; its process gets no more requests as long as its standing is kept,
 * and for a while no process does that has not answered before.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_READER_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_READER_H

#include <stdbool.h>

#include "parser/parser.h"
#include "unwind/runtime/runtime_request.h"

#define RUNTIME_NS (500 * 1000000ll)

struct runtime_reader {
	const char *proc_root;
	struct parser *parser; /* NULL: nothing is read, unless service is set */
	/* Service called in this process where there is no parser; or NULL */
	parser_service *service;
	int64_t strangers_ns; /* before that time only processes that have answered get requests */
};

/* Experience with reading a process' memory; zeroed at first. */
struct runtime_standing {
	bool answered, ended;
};

/* Sends a request and fills answer. more: bytes that follow the request, or NULL. Returns how many
 * bytes came, at least `least`, or -errno. */
ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const void *more, size_t more_bytes,
			bool faults, size_t least, char answer[PARSER_MESSAGE_MAX]);

#endif
