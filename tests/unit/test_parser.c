/* SPDX-License-Identifier: GPL-2.0-or-later */
/* parser: permissions of its processes, and what follows when one dies. */
#include "unit.h"
#include "base/clock.h"
#include "parser/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ASK_NS (10 * NS_PER_SECOND)

/* The first byte of a request. */
enum order { ORDER_ECHO, ORDER_READ, ORDER_PID, ORDER_OPEN, ORDER_KILL, ORDER_GROW, ORDER_HANG };

static size_t answer_number(char *answer, int64_t number)
{
	memcpy(answer, &number, sizeof(number));
	return sizeof(number);
}

static size_t serve(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	const char *bytes = request->bytes;
	static char *blocks[4096];
	struct rlimit limit;

	switch (bytes[0]) {
	case ORDER_ECHO:
		memcpy(answer, bytes, request->count);
		return request->count;
	case ORDER_READ:
		return (size_t)pread(request->fds[1], answer, 64, 0);
	case ORDER_PID:
		return answer_number(answer, getpid());
	case ORDER_OPEN:
		return answer_number(answer, open("/dev/null", O_RDONLY) < 0 ? errno : 0);
	case ORDER_KILL:
		return answer_number(answer, kill(getppid(), 0) ? errno : 0);
	case ORDER_GROW:
		/* a sanitizer's memory has no limit: it maps regardless of the limit */
		if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur == RLIM_INFINITY)
			return answer_number(answer, 512);
		for (int i = 0; i < 4096; i++) {
			blocks[i] = malloc(1 << 20);
			if (!blocks[i])
				return answer_number(answer, i);
			memset(blocks[i], 1, 4096);
		}
		return answer_number(answer, -1);
	default:
		for (;;)
			;
	}
}

static ssize_t question(struct parser *parser, enum order order, char answer[PARSER_MESSAGE_MAX],
			int64_t most_ns)
{
	const char byte = (char)order;
	const struct parser_message request = {.head = &byte, .head_bytes = 1};

	return parser_request(parser, &request, answer, PARSER_MESSAGE_MAX, most_ns);
}

static int64_t number_of(struct parser *parser, enum order order)
{
	static char answer[PARSER_MESSAGE_MAX];
	int64_t number;

	assert_int_equal(question(parser, order, answer, ASK_NS), sizeof(number));
	memcpy(&number, answer, sizeof(number));
	return number;
}

static void wait_ready(struct parser *parser)
{
	const struct timespec pause = {0, 10 * NS_PER_MS};
	int err;

	while ((err = parser_ready(parser)) == -EAGAIN)
		nanosleep(&pause, NULL);
	assert_int_equal(err, 0);
}

static void bytes_and_files_pass(void **state)
{
	static char answer[PARSER_MESSAGE_MAX], body[40000];
	struct parsers *parsers = parsers_begin(serve, false, PARSERS_ALL);
	struct parser_message request = {
		.head = (char[]){ORDER_ECHO}, .head_bytes = 1, .body = body, .body_bytes = 40000};
	int fds[2] = {memfd_create("a", MFD_CLOEXEC), memfd_create("b", MFD_CLOEXEC)};

	assert_non_null(parsers);
	memset(body, 'x', sizeof(body));
	for (int i = 0; i < PARSER_SLOTS; i++) {
		assert_int_equal(parser_ready(&parsers->parser[i]), 0);
		assert_int_equal(parser_request(&parsers->parser[i], &request, answer,
						sizeof(answer), ASK_NS),
				 40001);
		assert_memory_equal(answer + 1, body, sizeof(body));
	}
	/* more files than a process may have descriptors: none is left open in the parser */
	assert_int_equal(write(fds[1], "second", 6), 6);
	request = (struct parser_message){.head = (char[]){ORDER_READ},
					  .head_bytes = 1,
					  .fds = {fds[0], fds[1]},
					  .fd_count = 2};
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(parser_request(&parsers->parser[0], &request, answer,
						sizeof(answer), ASK_NS),
				 6);
		assert_memory_equal(answer, "second", 6);
	}
	close(fds[0]);
	close(fds[1]);
	parsers_end(parsers);
}

static void parsers_are_bounded(void **state)
{
	struct parsers *parsers = parsers_begin(serve, false, PARSERS_ALL);
	struct parser *parser = &parsers->parser[PARSER_NAMES];
	int64_t grown;

	assert_non_null(parsers);
	if (parsers->err || getenv("TSNAP_TEST_EMULATED")) {
		parsers_end(parsers);
		skip(); /* no seccomp(2) */
	}
	assert_int_equal(number_of(parser, ORDER_OPEN), ENOSYS);
	assert_int_equal(number_of(parser, ORDER_KILL), ENOSYS);
	grown = number_of(parser, ORDER_GROW);
	assert_in_range(grown, 100, 512);
	assert_int_equal(parsers_lost(parsers), 0);
	parsers_end(parsers);
}

/* Each request goes to a parser that lives, or is lost and counted; the other parser goes on. */
static void others_follow_the_dead(void **state)
{
	static char answer[PARSER_MESSAGE_MAX];
	struct parsers *parsers = parsers_begin(serve, false, PARSERS_ALL);
	struct parser *parser = &parsers->parser[PARSER_TABLES];
	uint64_t generation = 0;
	pid_t other, pid;
	int64_t cpu_ns;
	ssize_t got;

	assert_non_null(parsers);
	other = (pid_t)number_of(&parsers->parser[PARSER_NAMES], ORDER_PID);
	assert_true(parsers_have((uint32_t)other));
	for (unsigned int i = 0; i < 4; i++) {
		wait_ready(parser);
		assert_true(parser->generation > generation);
		generation = parser->generation;
		pid = (pid_t)number_of(parser, ORDER_PID);
		assert_true(parsers_have((uint32_t)pid));
		assert_int_equal(kill(pid, i % 2 ? SIGKILL : SIGSEGV), 0);
		if (i < 2)
			assert_int_equal(question(parser, ORDER_ECHO, answer, ASK_NS), -EPIPE);
		while (parsers_lost(parsers) == i)
			wait_ready(parser); /* a parser that died between requests */
		assert_int_equal(parsers_lost(parsers), i + 1);
		assert_false(parsers_have((uint32_t)pid));
	}
	/* a parser that computes and does not answer: its CPU time is counted, too */
	wait_ready(parser);
	cpu_ns = parsers_cpu_ns(parsers);
	got = question(parser, ORDER_HANG, answer, 200 * NS_PER_MS);
	assert_true(got == -EPIPE || got == -EAGAIN); /* this machine may be overloaded, too */
	assert_true(parsers_cpu_ns(parsers) - cpu_ns > NS_PER_MS);
	assert_int_equal(parsers_lost(parsers), 5);
	/* a parser whose answer is not waited for any more does not count as lost */
	wait_ready(parser);
	parser->stop = true;
	assert_int_equal(question(parser, ORDER_HANG, answer, ASK_NS), -EPIPE);
	parser->stop = false;
	assert_int_equal(parsers_lost(parsers), 5);
	assert_int_equal(number_of(&parsers->parser[PARSER_NAMES], ORDER_PID), other);
	parsers_end(parsers);
	assert_false(parsers_have((uint32_t)other));
}

static pid_t parent_of(pid_t pid)
{
	char path[32], line[256];
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	assert_int_equal(sscanf(strrchr(line, ')') + 1, " %*c %d", &parent), 1);
	return parent;
}

/* A spawner that is killed is followed by its standby; one that is killed again and again is
 * not. */
static void standbys_follow(void **state)
{
	struct parsers *parsers = parsers_begin(serve, false, 1u << PARSER_TABLES);
	struct parser *parser = &parsers->parser[PARSER_TABLES];
	char answer[PARSER_MESSAGE_MAX];
	int killed = 0, got;

	assert_int_equal(parent_of(parser->pid), parsers->spawner);
	for (;;) {
		assert_int_equal(parsers_lacking(parsers), 0);
		assert_int_equal(parsers_replaced(parsers), killed);
		assert_true(parsers_have((uint32_t)parent_of(parser->pid)));
		kill(parent_of(parser->pid), SIGKILL);
		killed++;
		while (question(parser, ORDER_ECHO, answer, ASK_NS) != -EPIPE)
			;
		while ((got = parser_ready(parser)) == -EAGAIN)
			;
		if (got)
			break;
	}
	assert_int_equal(got, -ECHILD);
	assert_int_equal(parsers_lacking(parsers), -ECHILD);
	assert_int_equal(killed, 9);
	parsers_end(parsers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_files_pass),
		cmocka_unit_test(parsers_are_bounded),
		cmocka_unit_test(others_follow_the_dead),
		cmocka_unit_test(standbys_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
