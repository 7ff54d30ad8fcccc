/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser about the goroutines of a process, and its answers: first all are read, with
 * the descriptor of the process' memory, then their groups are asked for one by one. */
#ifndef TSNAP_UNWIND_RUNTIME_GOROUTINE_REQUEST_H
#define TSNAP_UNWIND_RUNTIME_GOROUTINE_REQUEST_H

#include <stdint.h>

#include "parser/parser_service.h"
#include "unwind/elf/go_program.h"
#include "unwind/runtime/goroutines.h"

#define GOROUTINE_WHY_SIZE 128

enum goroutine_request_kind {
	GOROUTINES_READ = PARSER_GOROUTINES, /* struct goroutines_answer */
	GOROUTINES_GROUP,		     /* struct goroutine_group_answer */
};

struct goroutine_request {
	uint32_t kind;
	uint32_t number;   /* of the program's file, which the parser knows (file_request.h) */
	uint64_t distance; /* struct goroutine_source's */
	uint64_t group;	   /* index of the group that is asked for */
	struct go_program program;
};

struct goroutines_answer {
	int32_t err; /* -errno; why: in words */
	uint32_t group_count;
	struct goroutine_counts counts;
	char why[GOROUTINE_WHY_SIZE];
	char reasons[GOROUTINE_REASONS_MAX][GOROUTINE_REASON_SIZE];
};

struct goroutine_group_answer {
	struct goroutine_group group; /* but for frames */
	uint64_t frames[GOROUTINE_FRAMES_MAX];
};

_Static_assert(sizeof(struct goroutines_answer) <= PARSER_MESSAGE_MAX, "one message");

#endif
