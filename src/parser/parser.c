/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/parser.h"
#include "base/clock.h"
#include "base/memory.h"
#include "parser/parser_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELLO_NS (5 * NS_PER_SECOND)
#define BEGIN_LEAST_NS (250 * NS_PER_MS) /* least time between two parsers of a slot */
#define STARVED_PART 2 /* divisor of an answer's time: a parser with less CPU time was starved */
#define END_POLL_NS (2 * NS_PER_MS)
#define END_POLLS 500
#define SEND_S 1 /* seconds that a send waits for a full socket */
#define STOP_POLL_MS 50

enum { SPAWNER_PID = PARSER_SLOTS, STANDBY_PID, PIDS };

/* Pids of the parsers, of the spawner and of its standby, as /proc shows them; 0: none. */
static _Atomic uint32_t pids[PIDS];
static _Atomic bool begun; /* parsers were started; false: pids need not be searched */

bool parsers_have(uint32_t pid)
{
	for (size_t i = 0; begun && pid && i < sizeof(pids) / sizeof(pids[0]); i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Polls for an answer. 1: there is one; 0: nothing came in STOP_POLL_MS; -EPIPE: the process is
 * dead. */
static int answer_poll(int socket)
{
	struct pollfd ready = {socket, POLLIN, 0};

	if (poll(&ready, 1, STOP_POLL_MS) <= 0)
		return 0;
	return ready.revents & POLLIN ? 1 : -EPIPE;
}

/* True if the process is on a CPU or waits for one, by its line in /proc/PID/stat. */
static bool is_runnable(uint32_t pid)
{
	char path[32], line[256];
	const char *state;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length > 0 ? length : 0] = '\0';
	state = strrchr(line, ')');
	return state && !strncmp(state, ") R", 3);
}

/* Waits for an answer. 0: there is one. -EPIPE: the parser is dead, or does not answer in time;
 * -EAGAIN: it does not answer in time, but has hardly had a CPU. */
static int answer_wait(const struct parser *parser, int64_t most_ns)
{
	const int64_t until_ns = clock_monotonic_ns() + most_ns;
	const int64_t used_ns = clock_cpu_of_ns(parser->pid);
	int came;

	do
		came = answer_poll(parser->socket);
	while (!came && !parser->stop && clock_monotonic_ns() < until_ns);
	if (came)
		return came > 0 ? 0 : came;
	return is_runnable(pids[parser->slot]) &&
			       clock_cpu_of_ns(parser->pid) - used_ns < most_ns / STARVED_PART
		       ? -EAGAIN
		       : -EPIPE;
}

/* Receives a message, and closes descriptors that come with it. Returns its bytes, or 0. */
static size_t answer_take(int socket, void *to, size_t size)
{
	struct parser_request got;

	if (parser_message_receive(socket, to, size, &got) <= 0)
		return 0;
	while (got.fd_count)
		close(got.fds[--got.fd_count]);
	return got.count;
}

/* Receives the first message of a process. *err: why the process is not bounded. */
static int hello_take(int socket, _Atomic uint32_t *pid, _Atomic pid_t *own, int *err)
{
	const int64_t until_ns = clock_monotonic_ns() + HELLO_NS;
	struct parser_hello hello;
	int came;

	while (!(came = answer_poll(socket)) && clock_monotonic_ns() < until_ns)
		;
	if (came <= 0 || answer_take(socket, &hello, sizeof(hello)) != sizeof(hello))
		return -ECHILD;
	if (!hello.pid)
		return hello.err ? hello.err : -ECHILD;
	*pid = hello.pid;
	*own = hello.own;
	*err = hello.err ? hello.err : *err;
	return 0;
}

static void parser_close(struct parser *parser)
{
	if (parser->socket >= 0)
		close(parser->socket);
	parser->socket = -1;
	parser->gone_cpu_ns += clock_cpu_of_ns(parser->pid);
	parser->pid = 0;
	pids[parser->slot] = 0;
}

static void parser_lose(struct parser *parser)
{
	parser_close(parser);
	parser->lost++;
}

/* True if the process at the other end is gone. */
static bool is_dead(int socket)
{
	struct pollfd ready = {socket, 0, 0};

	return poll(&ready, 1, 0) > 0;
}

/* Returns -EAGAIN where a parser may begin later: there was no memory for it, or no pid. -ECHILD:
 * the spawner is dead. */
static int begin_fail(struct parsers *parsers, int err)
{
	parsers->ended = is_dead(parsers->control);
	if (parsers->ended)
		parsers->lack_err = -ECHILD;
	else if (err != -ECHILD) /* not one that was killed as it began */
		parsers->lack_err = err;
	return parsers->ended ? -ECHILD : -EAGAIN;
}

/* Takes the messages of the spawner: another pid is that of a standby that went on in its place. */
static void spawner_follow(struct parsers *parsers)
{
	struct parser_hello hello;

	struct pollfd ready = {parsers->control, POLLIN, 0};

	while (poll(&ready, 1, 0) > 0 && ready.revents & POLLIN &&
	       answer_take(parsers->control, &hello, sizeof(hello)) == sizeof(hello)) {
		parsers->replaced += hello.pid != pids[SPAWNER_PID];
		pids[SPAWNER_PID] = hello.pid;
		pids[STANDBY_PID] = hello.standby;
	}
}

static int parser_begin(struct parser *parser)
{
	struct parser_message order = {.head = "", .head_bytes = 1, .fd_count = 1};
	struct parsers *parsers = parser->parsers;
	int pair[2], err;

	parser->begun_ns = clock_monotonic_ns();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return begin_fail(parsers, -errno);
	order.fds[0] = pair[1];
	err = parser_message_send(parsers->control, &order);
	close(pair[1]);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = SEND_S},
		   sizeof(struct timeval));
	parser->socket = pair[0];
	if (!err)
		err = hello_take(pair[0], &pids[parser->slot], &parser->pid, &parsers->err);
	spawner_follow(parsers);
	if (err) {
		parser_close(parser);
		return begin_fail(parsers, err);
	}
	parsers->lack_err = 0;
	parser->generation++;
	return 0;
}

int parser_ready(struct parser *parser)
{
	/* the parser may have died while it had no request */
	if (parser->socket >= 0 && is_dead(parser->socket))
		parser_lose(parser);
	if (parser->socket >= 0)
		return 0;
	if (parser->parsers->ended)
		return -ECHILD;
	if (parser->begun_ns && clock_monotonic_ns() - parser->begun_ns < BEGIN_LEAST_NS)
		return -EAGAIN;
	return parser_begin(parser);
}

ssize_t parser_request(struct parser *parser, const struct parser_message *request, void *answer,
		       size_t size, int64_t most_ns)
{
	size_t got = 0;
	int err = parser_message_send(parser->socket, request) ? -EPIPE
							       : answer_wait(parser, most_ns);

	if (!err)
		got = answer_take(parser->socket, answer, size);
	if (got)
		return (ssize_t)got;
	if (parser->stop) {
		parser_close(parser);
		return -EPIPE;
	}
	parser_lose(parser);
	return err == -EAGAIN ? err : -EPIPE;
}

void parser_send(struct parser *parser, const struct parser_message *request)
{
	if (parser->socket >= 0 && parser_message_send(parser->socket, request))
		parser_lose(parser);
}

/* Forks the spawner. 0 or -errno. */
static int spawner_begin(struct parsers *parsers, parser_service *service, bool free)
{
	_Atomic pid_t own;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	parsers->control = pair[0];
	parsers->spawner = spawner_fork(pair[1], service, free);
	close(pair[1]);
	return parsers->spawner < 0
		       ? parsers->spawner
		       : hello_take(parsers->control, &pids[SPAWNER_PID], &own, &parsers->err);
}

void parsers_start(struct parsers *parsers, unsigned int slots)
{
	for (int i = 0; parsers && i < PARSER_SLOTS; i++)
		if (slots >> i & 1)
			parser_ready(&parsers->parser[i]);
}

struct parsers *parsers_begin(parser_service *service, bool free, unsigned int slots)
{
	struct parsers *parsers = memory_get(sizeof(*parsers));

	begun = true;
	parsers->control = -1;
	for (int i = 0; i < PARSER_SLOTS; i++)
		parsers->parser[i] = (struct parser){.parsers = parsers, .slot = i, .socket = -1};
	parsers->lack_err = spawner_begin(parsers, service, free);
	parsers->ended = parsers->lack_err != 0;
	parsers_start(parsers, slots);
	return parsers;
}

uint64_t parsers_lost(const struct parsers *parsers)
{
	uint64_t lost = 0;

	for (int i = 0; parsers && i < PARSER_SLOTS; i++)
		lost += parsers->parser[i].lost;
	return lost;
}

int parsers_lacking(const struct parsers *parsers)
{
	return parsers ? parsers->lack_err : 0;
}

uint64_t parsers_replaced(const struct parsers *parsers)
{
	return parsers ? parsers->replaced : 0;
}

int64_t parsers_cpu_ns(const struct parsers *parsers)
{
	int64_t ns = 0;

	for (int i = 0; parsers && i < PARSER_SLOTS; i++)
		ns += parsers->parser[i].gone_cpu_ns + clock_cpu_of_ns(parsers->parser[i].pid);
	return ns;
}

uint32_t parsers_pid(enum parser_slot slot)
{
	return pids[slot];
}

void parsers_describe(const struct parsers *parsers, bool free, struct text *to)
{
	text_add_string(to, "files for stacks: ");
	if (!parsers || parsers->ended)
		text_add_string(to, "not read (no process can be started that does)\n");
	else if (free)
		text_add_string(to, "read by processes without a sandbox\n");
	else if (parsers->err)
		text_add_format(to, "read by processes that can't be bounded (%s)\n",
				strerror(-parsers->err));
	else
		text_add_string(to, "read by processes without capabilities that open nothing\n");
}

/* Waits for the spawner, which ends by itself when its socket does, and kills one that does not. */
static void spawner_wait(pid_t spawner)
{
	const struct timespec pause = {0, END_POLL_NS};

	for (int i = 0; i < END_POLLS; i++) {
		if (waitpid(spawner, NULL, WNOHANG))
			return;
		nanosleep(&pause, NULL);
	}
	kill(spawner, SIGKILL);
	waitpid(spawner, NULL, 0);
}

void parsers_give_up(struct parsers *parsers, int err)
{
	for (int i = 0; i < PARSER_SLOTS; i++)
		parser_close(&parsers->parser[i]);
	if (parsers->control >= 0)
		close(parsers->control);
	parsers->control = -1;
	if (parsers->spawner > 0)
		spawner_wait(parsers->spawner);
	parsers->spawner = 0;
	parsers->ended = true;
	parsers->lack_err = err;
	pids[SPAWNER_PID] = 0;
	pids[STANDBY_PID] = 0;
}

void parsers_end(struct parsers *parsers)
{
	if (!parsers)
		return;
	parsers_give_up(parsers, 0);
	free(parsers);
}
