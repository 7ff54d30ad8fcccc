/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_parsers.h"
#include "apps/otel.h"
#include "unwind/runtime/runtime_service.h"

#include <string.h>

#define CONTAINER_NS (500 * NS_PER_MS)
#define NEEDS_STACKS_OF_USERS (NEED_USTACK | NEED_WAKER_STACK)

struct container_request {
	uint32_t kind;
	struct container_question question;
};

struct container_answer {
	uint8_t found;
	char name[JSON_STRING_SIZE];
};

static size_t container_answer(const struct parser_request *request, char *to)
{
	struct container_answer answer;
	struct container_request of;

	if (request->count != sizeof(of) || !request->fd_count)
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	memset(&answer, 0, sizeof(answer));
	answer.found = container_file_read(NULL, request->fds[0], &of.question, answer.name);
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}

static size_t live_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	switch (parser_request_kind(request)) {
	case PARSER_CONTAINERS:
		return container_answer(request, answer);
	case PARSER_OTEL:
		return otel_service(request, answer);
	default:
		return runtime_service(request, answer);
	}
}

bool live_container_read(void *of, int fd, const struct container_question *question,
			 char name[JSON_STRING_SIZE])
{
	const struct live_context *context = of;
	const struct container_request request = {.kind = PARSER_CONTAINERS, .question = *question};
	const struct parser_message message = {
		.head = &request, .head_bytes = sizeof(request), .fds = {fd}, .fd_count = 1};
	struct parser *parser = context->parsers ? &context->parsers->parser[PARSER_MEMORY] : NULL;
	struct container_answer answer;

	if (!parser || parser_ready(parser) ||
	    parser_request(parser, &message, &answer, sizeof(answer), CONTAINER_NS) !=
		    sizeof(answer))
		return false;
	memcpy(name, answer.name, sizeof(answer.name));
	name[JSON_STRING_SIZE - 1] = '\0';
	return answer.found && *name;
}

void live_parsers_begin(struct live_context *context)
{
	uint64_t needs = context->wants.needs;

	if (context->config.own || needs & (NEEDS_STACKS_OF_USERS | NEED_WAITS | NEED_WAIT_CLASS |
					    NEED_CONTAINER_NAME | NEEDS_OF_APP))
		context->parsers = parsers_begin(live_service, context->config.no_sandbox, 0);
}

void live_parsers_start(struct live_context *context)
{
	if (context->wants.needs & NEEDS_STACKS_OF_USERS)
		parsers_start(context->parsers, PARSERS_OF_STACKS);
}

void live_parsers_end(struct live_context *context)
{
	parsers_end(context->parsers);
	context->parsers = NULL;
}
