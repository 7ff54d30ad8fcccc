/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open_load PORT CONNECTIONS RATE SECONDS REQUEST: sends that request to 127.0.0.1:PORT at random
 * times, RATE a second on average, whether or not earlier ones are answered; RATE 0: each
 * connection sends the next one when it has its answer. A request for which no connection is free
 * waits for one. Each answer has as many bytes as the first. REQUEST has \r and \n as escapes.
 * open_load PORT: answers each request with as many bytes, in one thread.
 * Prints "N requests, P50 P99 us from sending, P50 P99 us from the time that they were due" */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define SAMPLES_MAX 4000000
#define ANSWER_MS 300 /* the first answer is whole if nothing more comes for so long */

struct connection {
	int fd;
	double due_us, sent_us; /* of the request that is under way */
	size_t got;
	int busy;
};

static struct connection connections[CONNECTIONS_MAX];
static float from_sent[SAMPLES_MAX], from_due[SAMPLES_MAX];
static char buffer[1 << 16];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static int port_open(int port, int listening)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (listening ? bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1024)
		      : connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail(listening ? "bind" : "connect");
	return fd;
}

/* A server that does nothing: what is left of a client's time is the network's. */
static void answer_all(int port)
{
	struct epoll_event event = {.events = EPOLLIN}, got;
	int listener = port_open(port, 1), set = epoll_create1(0);

	event.data.fd = listener;
	epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		if (epoll_wait(set, &got, 1, -1) != 1)
			continue;
		if (got.data.fd == listener) {
			event.data.fd = accept(listener, NULL, NULL);
			epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
			continue;
		}
		ssize_t bytes = read(got.data.fd, buffer, sizeof(buffer));

		if (bytes <= 0 || write(got.data.fd, buffer, (size_t)bytes) != bytes)
			close(got.data.fd);
	}
}

static size_t unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		*to++ = *from != '\\'	 ? *from
			: from[1] == 'r' ? (from++, '\r')
			: from[1] == 'n' ? (from++, '\n')
					 : *from;
	*to = '\0';
	return (size_t)(to - text);
}

static void send_whole(int fd, const char *request, size_t bytes)
{
	if (write(fd, request, bytes) != (ssize_t)bytes)
		fail("write");
}

static size_t answer_measure(int fd, const char *request, size_t bytes)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	size_t whole = 0;
	ssize_t got;

	send_whole(fd, request, bytes);
	while (poll(&one, 1, whole ? ANSWER_MS : 5000) == 1) {
		got = read(fd, buffer, sizeof(buffer));
		if (got <= 0)
			break;
		whole += (size_t)got;
	}
	if (!whole) {
		fprintf(stderr, "open_load: no answer\n");
		exit(EXIT_FAILURE);
	}
	return whole;
}

static int floats_compare(const void *a, const void *b)
{
	float left = *(const float *)a, right = *(const float *)b;

	return (left > right) - (left < right);
}

static float of_hundred(const float *sorted, size_t count, size_t share)
{
	return count ? sorted[count * share / 100] : 0;
}

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0, count, set = epoll_create1(0);
	double rate, end_us, due_us, answered_us;
	struct epoll_event event = {.events = EPOLLIN}, got[64];
	size_t bytes, answer, samples = 0;
	struct timespec wait = {0};

	if (argc == 2)
		answer_all(port);
	if (argc != 6)
		return EXIT_FAILURE;
	count = atoi(argv[2]);
	rate = atof(argv[3]);
	bytes = unescape(argv[5]);
	srand48(1);
	for (int i = 0; i < count && i < CONNECTIONS_MAX; i++) {
		connections[i].fd = event.data.fd = port_open(port, 0);
		event.data.u32 = (uint32_t)i;
		epoll_ctl(set, EPOLL_CTL_ADD, connections[i].fd, &event);
	}
	answer = answer_measure(connections[0].fd, argv[5], bytes);
	due_us = now_us();
	end_us = due_us + atof(argv[4]) * 1e6;
	while (due_us < end_us && now_us() < end_us && samples < SAMPLES_MAX) {
		for (int i = 0; i < count && due_us <= now_us(); i++) {
			struct connection *free = &connections[i];

			if (free->busy)
				continue;
			free->busy = 1;
			free->got = 0;
			free->sent_us = now_us();
			free->due_us = rate > 0 ? due_us : free->sent_us;
			send_whole(free->fd, argv[5], bytes);
			if (rate > 0)
				due_us -= log(1 - drand48()) / rate * 1e6;
		}
		answered_us = rate > 0 && due_us > now_us() ? due_us - now_us() : 1000;
		wait.tv_sec = (time_t)(answered_us / 1e6);
		wait.tv_nsec = (long)(fmod(answered_us, 1e6) * 1e3);
		int ready = epoll_pwait2(set, got, 64, &wait, NULL);

		for (int i = 0; i < ready; i++) {
			struct connection *of = &connections[got[i].data.u32];
			ssize_t more = read(of->fd, buffer, sizeof(buffer));

			if (more <= 0)
				fail("read");
			of->got += (size_t)more;
			if (of->got < answer || samples == SAMPLES_MAX)
				continue;
			answered_us = now_us();
			from_sent[samples] = (float)(answered_us - of->sent_us);
			from_due[samples++] = (float)(answered_us - of->due_us);
			of->busy = 0;
		}
	}
	qsort(from_sent, samples, sizeof(*from_sent), floats_compare);
	qsort(from_due, samples, sizeof(*from_due), floats_compare);
	printf("%zu requests, %.0f %.0f us from sending, %.0f %.0f us from the time that they were "
	       "due\n",
	       samples, of_hundred(from_sent, samples, 50), of_hundred(from_sent, samples, 99),
	       of_hundred(from_due, samples, 50), of_hundred(from_due, samples, 99));
	return 0;
}
