/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that never arrives: its reader goes on, the process is not read again, and neither is, for
 * a while, a process that has not answered before. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/runtime/runtime_service.h"

#define HELD 1 /* special distance: the answer never comes */

/* Answers like a parser; with HELD like one that waits for a page of a server that is down. */
static size_t serve(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct runtime_request of;

	memcpy(&of, request->bytes, sizeof(of));
	while (of.distance == HELD)
		pause();
	return runtime_service(request, answer);
}

static ssize_t question(struct runtime_reader *reader, struct runtime_standing *standing,
			uint64_t distance, int64_t now_ns)
{
	static char answer[PARSER_MESSAGE_MAX];
	const struct runtime_request request = {.kind = RUNTIME_PYTHON_STACK,
						.pid = getpid(),
						.tid = getpid(),
						.now_ns = now_ns,
						.distance = distance};

	return runtime_request(reader, standing, &request, NULL, answer, sizeof(answer));
}

static void memory_that_never_comes(void **state)
{
	struct parsers *parsers = parsers_begin(serve, true, 1u << PARSER_MEMORY);
	struct runtime_standing good = {false}, bad = {false}, stranger = {false};
	struct runtime_reader reader = {.proc_root = "/proc"};
	int64_t now_ns = clock_monotonic_ns();

	assert_non_null(parsers);
	reader.parser = &parsers->parser[PARSER_MEMORY];
	assert_true(question(&reader, &good, 0, now_ns) > 0);
	assert_int_equal(question(&reader, &bad, HELD, now_ns), -EPIPE);
	assert_int_equal(parsers_lost(parsers), 1);
	assert_int_equal(question(&reader, &bad, 0, now_ns + 3600 * NS_PER_SECOND), -ETIMEDOUT);
	assert_int_equal(question(&reader, &stranger, 0, now_ns), -ETIMEDOUT);
	/* a new parser begins, not at once */
	while (parser_ready(reader.parser) == -EAGAIN)
		nanosleep(&(struct timespec){0, 10 * NS_PER_MS}, NULL);
	assert_true(question(&reader, &good, 0, now_ns) > 0);
	assert_true(question(&reader, &stranger, 0, now_ns + 3600 * NS_PER_SECOND) > 0);
	parsers_end(parsers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_never_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
