/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser about the goroutines of a process, and its answers. The first request, with
 * the descriptor of the process' memory, has all of them read; then their groups are requested one
 * by one. */
#ifndef TSNAP_UNWIND_RUNTIME_GOROUTINE_REQUEST_H
#define TSNAP_UNWIND_RUNTIME_GOROUTINE_REQUEST_H

#include <stdint.h>

#include "parser/parser_message.h"
#include "unwind/elf/go_program.h"
#include "unwind/runtime/goroutines.h"

#define GOROUTINE_WHY_SIZE 128

enum goroutine_request_kind {
	GOROUTINES_READ = PARSER_GOROUTINES, /* struct goroutines_answer */
	GOROUTINES_GROUP,		     /* struct goroutine_group_answer */
};

struct goroutine_request {
	uint32_t kind;
	uint32_t number;   /* the file's number in the parser (file_request.h) */
	uint64_t distance; /* distance as in struct goroutine_source */
	uint64_t group;	   /* index of the requested group */
	struct go_program program;
};

struct goroutines_answer {
	int32_t err; /* -errno, or 0; why has it in words */
	uint32_t group_count;
	struct goroutine_counts counts;
	char why[GOROUTINE_WHY_SIZE];
	char reasons[GOROUTINE_REASONS_MAX][GOROUTINE_REASON_SIZE];
};

struct goroutine_group_answer {
	struct goroutine_group group; /* group without frames */
	uint64_t frames[GOROUTINE_FRAMES_MAX];
};

_Static_assert(sizeof(struct goroutines_answer) <= PARSER_MESSAGE_MAX, "one message");

#endif
