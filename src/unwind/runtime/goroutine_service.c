/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/goroutine_service.h"
#include "unwind/file_request.h"
#include "unwind/runtime/goroutine_request.h"
#include "unwind/runtime/runtime_memory.h"

#include <stdio.h>

/* Goroutines that were read last. */
static struct goroutines present;

static int location_find(void *of, uint64_t address, struct file_go_frame_answer *answer)
{
	file_go_frame(*(const uint32_t *)of, address, answer);
	return 0;
}

static size_t all_answer(const struct parser_request *request, struct goroutine_request *of,
			 struct goroutines_answer *answer)
{
	/* 0 reads left: each piece that is read begins with reads of its own */
	const struct goroutine_source source = {.memory = runtime_memory_begin(request, 0),
						.program = &of->program,
						.distance = of->distance,
						.request = location_find,
						.of = &of->number};
	const char *why = "";

	if (!source.memory)
		return 0;
	goroutines_done(&present);
	memset(answer, 0, sizeof(*answer));
	answer->err = goroutines_list(&present, &source, &why);
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	answer->group_count = (uint32_t)present.group_count;
	answer->counts = present.counts;
	memcpy(answer->reasons, present.reasons, sizeof(answer->reasons));
	return sizeof(*answer);
}

static size_t group_answer(const struct goroutine_request *of,
			   struct goroutine_group_answer *answer)
{
	const struct goroutine_group *group;

	if (of->group >= present.group_count)
		return 0;
	group = &present.groups[of->group];
	memset(answer, 0, sizeof(*answer));
	answer->group = *group;
	answer->group.frames = NULL;
	memcpy(answer->frames, group->frames, group->frame_count * sizeof(*answer->frames));
	return sizeof(*answer);
}

size_t goroutine_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct goroutine_request of;

	if (parser_request_kind(request) < PARSER_GOROUTINES)
		return file_service(request, answer);
	if (request->count != sizeof(of))
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	switch (of.kind) {
	case GOROUTINES_READ:
		return all_answer(request, &of, (struct goroutines_answer *)answer);
	case GOROUTINES_GROUP:
		return group_answer(&of, (struct goroutine_group_answer *)answer);
	default:
		return 0;
	}
}
