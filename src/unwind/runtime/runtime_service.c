/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_service.h"
#include "unwind/file_request.h"
#include "unwind/runtime/java_memory.h"
#include "unwind/runtime/python_memory.h"

struct thread_memory *runtime_memory_begin(const struct parser_request *request,
					   unsigned int calls_left)
{
	static struct thread_memory memory;

	if (!request->fd_count || request->fds[0] < 0)
		return NULL;
	if (!memory.top)
		thread_memory_init(&memory, "", false, 0);
	memory.mem = request->fds[0];
	memory.pagemap = request->fd_count > 1 ? request->fds[1] : -1;
	memory.calls_left = calls_left;
	thread_memory_again(&memory);
	return &memory;
}

void runtime_service_clear(void)
{
	python_memory_clear();
	java_memory_clear();
}

size_t runtime_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	const char *addresses = (const char *)request->bytes + sizeof(struct runtime_request);
	struct thread_memory *memory;
	struct runtime_request of;

	if (parser_request_kind(request) < PARSER_RUNTIMES)
		return file_service(request, answer);
	if (request->count < sizeof(of))
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	memory = runtime_memory_begin(request, PYTHON_STACK_CALLS);
	if (!memory)
		return 0;
	switch (of.kind) {
	case RUNTIME_PYTHON_STACK:
		return python_stack_answer(&of, memory, answer);
	case RUNTIME_GILS:
		return python_gils_answer(&of, memory, answer);
	case RUNTIME_GIL:
		return python_gil_answer(&of, memory, answer);
	case RUNTIME_PYTHON_LOCK:
		return python_lock_answer(&of, memory, answer);
	case RUNTIME_JAVA_CODE:
		return of.count * sizeof(uint64_t) == request->count - sizeof(of)
			       ? java_code_answer(&of, addresses, memory, answer)
			       : 0;
	case RUNTIME_JAVA_LAYOUT:
		return java_layout_answer(&of, memory, answer);
	case RUNTIME_JAVA_MONITOR:
		return java_monitor_answer(&of, memory, answer);
	default:
		return 0;
	}
}
