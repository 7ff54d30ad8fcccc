/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/parser_process.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/sanitized.h"
#include "base/host_file.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DATA_BYTES_MAX (512u << 20)
#define REQUEST_CPU_S 10
#define END_POLL_NS (2 * NS_PER_MS)
#define END_POLLS 100
#define DESCRIPTORS_MOST 65536
#define STANDBYS_MOST 8 /* spawners that follow the first one: one that is always killed ends */
#ifndef __NR_close_range
#define __NR_close_range 436
#endif
#define SPAWNER_NAME "tsnap-spawner"
#define PARSER_NAME "tsnap-parser"

static void limit_set(int what, rlim_t value)
{
	const struct rlimit limit = {value, value};

	setrlimit(what, &limit);
}

/* Moves the limit of CPU time, which counts from the beginning of the process. A soft limit can be
 * raised again. */
static void cpu_limit_move(void)
{
	static time_t limited_s = -1;
	struct timespec used;
	struct rlimit limit;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	if (used.tv_sec == limited_s || getrlimit(RLIMIT_CPU, &limit))
		return;
	limited_s = used.tv_sec;
	limit.rlim_cur = (rlim_t)used.tv_sec + REQUEST_CPU_S;
	setrlimit(RLIMIT_CPU, &limit);
}

/* Ends the process without a word: the requester counts it. */
static void memory_end(void)
{
	_exit(EXIT_FAILURE);
}

/* Ignores signals that a terminal sends to all processes in its foreground: the worker alone
 * decides when a parser ends. Faults end a parser, whatever handles them in the worker. */
static void signals_set(void)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,	 SIGQUIT, SIGPIPE,  SIGUSR1,
				      SIGUSR2, SIGALRM, SIGTSTP, SIGCHLD, SIGWINCH, SIGCONT};
	static const int ends[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		signal(ends[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Has the process die with its parent. */
static void life_bind(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
}

/* Sends the first message, which the other end waits for; exits if that fails. */
static void hello_send(int socket, const struct parser_hello *hello)
{
	if (parser_message_send(
		    socket, &(struct parser_message){.head = hello, .head_bytes = sizeof(*hello)}))
		_exit(EXIT_FAILURE);
}

static void request_answer(int socket, parser_service *service, struct parser_request *request)
{
	static _Alignas(8) char answer[PARSER_MESSAGE_MAX];
	struct parser_message message = {.head = answer};

	cpu_limit_move();
	message.head_bytes = service(request, answer);
	for (unsigned int i = 0; i < request->fd_count; i++)
		if (request->fds[i] >= 0)
			close(request->fds[i]);
	if (message.head_bytes && parser_message_send(socket, &message))
		_exit(EXIT_FAILURE);
}

static int compare(const void *one, const void *other)
{
	return *(const char *)one - *(const char *)other;
}

/* Has the C library look up now, while files can be opened, what it keeps: qsort(3) looks up how
 * much memory there is. */
static void library_warm(void)
{
	char bytes[4096] = {0};

	qsort(bytes, sizeof(bytes), 1, compare);
}

static void parser_run(int socket, parser_service *service, bool free)
{
	static char bytes[PARSER_MESSAGE_MAX];
	struct parser_request request;
	struct parser_hello hello = {.pid = (uint32_t)shown_pid(), .own = getpid()};
	int got;

	prctl(PR_SET_NAME, PARSER_NAME);
	memory_before_end(memory_end);
	library_warm();
	if (!SANITIZED)
		limit_set(RLIMIT_DATA, DATA_BYTES_MAX);
	if (!free)
		hello.err = sandbox_parse();
	hello_send(socket, &hello);
	while ((got = parser_message_receive(socket, bytes, sizeof(bytes), &request)) > 0 ||
	       got == -EMFILE)
		request_answer(socket, service, &request);
	_exit(EXIT_SUCCESS);
}

static void numbers_close(unsigned int first, unsigned int last)
{
	struct rlimit limit = {.rlim_cur = DESCRIPTORS_MOST};

	if (first > last || !syscall(__NR_close_range, first, last, 0))
		return;
	/* before Linux 5.9 */
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > DESCRIPTORS_MOST)
		limit.rlim_cur = DESCRIPTORS_MOST;
	for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		close((int)fd);
}

/* Closes descriptors of the worker, but standard error and kept: a child that held the worker's
 * ends of sockets would not see them closed. */
static void descriptors_close(int kept)
{
	const unsigned int low = (unsigned int)(kept < STDERR_FILENO ? kept : STDERR_FILENO),
			   high = (unsigned int)(kept < STDERR_FILENO ? STDERR_FILENO : kept);

	if (low)
		numbers_close(0, low - 1);
	numbers_close(low + 1, high - 1);
	numbers_close(high + 1, UINT_MAX);
}

/* Waits for parsers, which end as their sockets do, and are not left to an init that may not reap
 * them. One that computes or hangs dies with this process. */
static void children_wait(void)
{
	const struct timespec pause = {0, END_POLL_NS};

	for (int i = 0; i < END_POLLS && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		nanosleep(&pause, NULL);
}

struct spawner {
	int control;
	parser_service *service;
	bool free;
	int standbys_left;
	pid_t standby;		/* 0: there is none */
	uint32_t standby_shown; /* its pid as /proc shows it */
	int life; /* write end of a pipe that the standby reads: it ends with this process */
};

static void standby_close(struct spawner *spawner)
{
	if (spawner->life >= 0)
		close(spawner->life);
	spawner->life = -1;
	spawner->standby = 0;
	spawner->standby_shown = 0;
}

/* Waits, as a standby, until its spawner has ended, and returns then. life: read end of the
 * pipe. */
static void life_wait(int life, int shown)
{
	const uint32_t pid = (uint32_t)shown_pid();
	char byte;

	if (write(shown, &pid, sizeof(pid)) != sizeof(pid))
		_exit(EXIT_FAILURE);
	close(shown);
	while (read(life, &byte, 1) < 0 && errno == EINTR)
		;
	close(life);
}

/* Forks a standby if there is none. True in the standby, once it is the spawner. */
static bool standby_begin(struct spawner *spawner, int order)
{
	int life[2], shown[2];
	pid_t child;

	if (spawner->standby && waitpid(spawner->standby, NULL, WNOHANG))
		standby_close(spawner);
	if (spawner->standby || !spawner->standbys_left || pipe2(life, O_CLOEXEC))
		return false;
	if (pipe2(shown, O_CLOEXEC)) {
		close(life[0]);
		close(life[1]);
		return false;
	}
	child = fork();
	if (!child) {
		/* an open copy of its socket would hide the exit of a parser from the worker */
		close(order);
		close(life[1]);
		close(shown[0]);
		spawner->standbys_left--;
		life_wait(life[0], shown[1]);
		return true;
	}
	close(life[0]);
	close(shown[1]);
	spawner->life = life[1];
	spawner->standby = child;
	if (child < 0 ||
	    read(shown[0], &spawner->standby_shown, sizeof(uint32_t)) != sizeof(uint32_t))
		standby_close(spawner);
	else
		spawner->standbys_left--;
	close(shown[0]);
	return false;
}

/* Forks a parser for an order. The hello of a spawner comes before the parser's, so that it has
 * arrived when this has. */
static void parser_fork(const struct spawner *spawner, int order)
{
	struct parser_hello hello = {
		.pid = (uint32_t)shown_pid(), .own = getpid(), .standby = spawner->standby_shown};
	const pid_t own = getpid();
	pid_t child;

	hello_send(spawner->control, &hello);
	child = fork();
	if (!child) {
		life_bind(own);
		close(spawner->control);
		if (spawner->life >= 0)
			close(spawner->life);
		parser_run(order, spawner->service, spawner->free);
	}
	if (child < 0) {
		hello = (struct parser_hello){.err = -errno};
		hello_send(order, &hello);
	}
}

static void spawner_run(struct spawner *spawner)
{
	const struct parser_hello hello = {.pid = (uint32_t)shown_pid(), .own = getpid()};
	char order;
	struct parser_request got;

	prctl(PR_SET_NAME, SPAWNER_NAME);
	signals_set();
	descriptors_close(spawner->control);
	limit_set(RLIMIT_CORE, 0);
	if (!spawner->free) {
		capabilities_keep(0);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	}
	hello_send(spawner->control, &hello);
	while (parser_message_receive(spawner->control, &order, sizeof(order), &got) > 0) {
		if (!got.fd_count)
			continue;
		/* a standby that takes over waits for the next order: this one was its spawner's */
		if (standby_begin(spawner, got.fds[0])) {
			standby_close(spawner);
			continue;
		}
		parser_fork(spawner, got.fds[0]);
		while (got.fd_count)
			close(got.fds[--got.fd_count]);
	}
	standby_close(spawner);
	children_wait();
	_exit(EXIT_SUCCESS);
}

pid_t spawner_fork(int control, parser_service *service, bool free)
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		avoid_ask_with(NULL); /* it has neither the descriptors nor the right for that */
		/* the spawner ends with the socket: a worker that is killed leaves no process */
		spawner_run(&(struct spawner){.control = control,
					      .service = service,
					      .free = free,
					      .standbys_left = STANDBYS_MOST,
					      .life = -1});
	}
	return child;
}
