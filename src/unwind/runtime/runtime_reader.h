/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks a parser about a process' memory: opens that (/proc/TID/mem, which CAP_SYS_PTRACE allows)
 * and hands the descriptor over, for one question. All that is followed there, from pointer to
 * pointer, is followed without privileges; and as often as before, for no word takes a message of
 * its own.
 *
 * Memory can make who reads it wait for ever, for a file system of its owner's. Without `faults`
 * only pages that are there are read, by /proc/TID/pagemap. With it a parser that does not answer
 * within RUNTIME_NS is given up, its process is not asked about again as long as its standing is
 * kept, and for a while no process that has not answered before.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_READER_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_READER_H

#include <stdbool.h>

#include "parser/parser.h"
#include "unwind/runtime/runtime_request.h"

#define RUNTIME_NS (500 * 1000000ll)

struct runtime_reader {
	const char *proc_root;
	struct parser *parser; /* NULL: nothing is read, */
	/* but by this, in this process */
	parser_service *service;
	int64_t strangers_ns; /* until then only processes that have answered are asked about */
};

/* Experience with reading a process' memory; zeroed at first. */
struct runtime_standing {
	bool answered, ended;
};

/* Fills answer, of which there are at least so many bytes: as many as came, or -errno. more: behind
 * the request, or NULL. */
ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const void *more, size_t more_bytes,
			bool faults, size_t least, char answer[PARSER_MESSAGE_MAX]);

#endif
