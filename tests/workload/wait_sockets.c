/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for sockets. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "wait.h"

static int tcp_listen(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof(*address)) || listen(fd, 4) ||
	    getsockname(fd, (struct sockaddr *)address, &size))
		unready("no TCP on the loopback device here");
	return fd;
}

static int tcp_connect(const struct sockaddr_in *address, int *port)
{
	struct sockaddr_in own;
	socklen_t size = sizeof(own);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	    getsockname(fd, (struct sockaddr *)&own, &size))
		die("connect");
	*port = ntohs(own.sin_port);
	return fd;
}

/* Makes a TCP connection: the other process serves and this thread is its client, or the other way
 * round. */
static void tcp_pair(struct waiting *w, bool client)
{
	struct sockaddr_in address;
	int listening = tcp_listen(&address), server = ntohs(address.sin_port), port, near, far;

	far = tcp_connect(&address, &port);
	near = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (client) {
		int swap = far;

		far = near;
		near = swap;
	}
	w->pid = other_start(near);
	close(far);
	read_of(w, near);
	snprintf(w->remote, sizeof(w->remote), "127.0.0.1:%d", client ? server : port);
	snprintf(w->connection, sizeof(w->connection), "tcp 127.0.0.1:%d->%s established",
		 client ? port : server, w->remote);
	snprintf(w->waits_on, sizeof(w->waits_on), "tcp %s peer %d " OTHER, w->remote, w->pid);
	w->filetype = "socket";
}

static void tcp_client(struct waiting *w)
{
	tcp_pair(w, true);
}

static void tcp_server(struct waiting *w)
{
	tcp_pair(w, false);
}

/* Sends a file to a client that does not read. */
static void sendfile_tcp(struct waiting *w)
{
	int file = (int)syscall(SYS_memfd_create, "sent", 1u); /* MFD_CLOEXEC */

	if (file < 0 || ftruncate(file, 1 << 30))
		die("make a file");
	tcp_pair(w, false);
	w->nr = SYS_sendfile;
	w->arg[1] = file;
	w->arg[2] = 0;
	w->arg[3] = 1 << 30;
}

static void tcp_accept(struct waiting *w)
{
	struct sockaddr_in address;

	w->fd = tcp_listen(&address);
	w->nr = SYS_accept4;
	w->arg[0] = w->fd;
	snprintf(w->connection, sizeof(w->connection), "tcp 127.0.0.1:%d listen",
		 ntohs(address.sin_port));
	strcpy(w->waits_on, w->connection);
	w->filetype = "socket";
}

static void tcp6_accept(struct waiting *w)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	socklen_t size = sizeof(address);

	w->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || bind(w->fd, (struct sockaddr *)&address, size) || listen(w->fd, 4) ||
	    getsockname(w->fd, (struct sockaddr *)&address, &size))
		unready("no IPv6 here");
	w->nr = SYS_accept4;
	w->arg[0] = w->fd;
	snprintf(w->connection, sizeof(w->connection), "tcp [::]:%d listen",
		 ntohs(address.sin6_port));
	strcpy(w->waits_on, w->connection);
}

static void udp(struct waiting *w)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in far = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(9)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    connect(fd, (struct sockaddr *)&far, size) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		unready("no UDP on the loopback device here");
	read_of(w, fd);
	strcpy(w->remote, "127.0.0.1:9");
	snprintf(w->connection, sizeof(w->connection), "udp 127.0.0.1:%d->127.0.0.1:9",
		 ntohs(address.sin_port));
	strcpy(w->waits_on, "udp 127.0.0.1:9");
}

/* Waits a long time, but not forever, for the answer of whomever it has asked. */
static void udp_asked(struct waiting *w)
{
	static const struct timespec limit = {.tv_sec = 1000000};
	static struct pollfd polled = {.events = POLLIN};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(9)};
	socklen_t size = sizeof(address);

	polled.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (polled.fd < 0 || sendto(polled.fd, "?", 1, 0, (struct sockaddr *)&address, size) < 0 ||
	    getsockname(polled.fd, (struct sockaddr *)&address, &size))
		unready("no UDP on the loopback device here");
	w->nr = SYS_ppoll;
	w->arg[0] = (long)&polled;
	w->arg[1] = 1;
	w->arg[2] = (long)&limit;
	snprintf(w->connection, sizeof(w->connection), "udp 0.0.0.0:%d", ntohs(address.sin_port));
	snprintf(w->waits_on, sizeof(w->waits_on), "1 fd: udp 0.0.0.0:%d", ntohs(address.sin_port));
}

static void netlink(struct waiting *w)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		unready("no netlink here");
	read_of(w, fd);
	strcpy(w->connection, "netlink route");
	strcpy(w->waits_on, "netlink route");
}

/* A raw socket of a protocol that nobody sends. */
static void raw(struct waiting *w)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 253);

	if (fd < 0)
		unready("no raw sockets here");
	read_of(w, fd);
	strcpy(w->connection, "raw 253");
	strcpy(w->waits_on, "raw 253");
}

static void packet(struct waiting *w)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(0x88cc));

	if (fd < 0)
		unready("no packet sockets here");
	read_of(w, fd);
	strcpy(w->connection, "packet lldp");
	strcpy(w->waits_on, "packet lldp");
}

static void unix_pair(struct waiting *w)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->connection, sizeof(w->connection), "unix peer %d " OTHER, w->pid);
	strcpy(w->waits_on, w->connection);
}

static void unix_path(struct waiting *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), far,
	    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/tsnap-test-%d.sock",
		 option_text("dir", "/tmp"), getpid());
	unlink(address.sun_path);
	if (bind(listening, (struct sockaddr *)&address, sizeof(address)) || listen(listening, 1) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die(address.sun_path);
	far = accept(listening, NULL, NULL);
	unlink(address.sun_path);
	w->pid = other_start(fd);
	close(far);
	read_of(w, fd);
	strcpy(w->remote, address.sun_path);
	snprintf(w->connection, sizeof(w->connection), "unix %s peer %d " OTHER, address.sun_path,
		 w->pid);
	strcpy(w->waits_on, w->connection);
}

/* Sends datagrams to a process that reads none, by its address. */
static void unix_datagram(struct waiting *w)
{
	static struct sockaddr_un address = {.sun_family = AF_UNIX};
	int far = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/tsnap-test-%d.sock",
		 option_text("dir", "/tmp"), getpid());
	unlink(address.sun_path);
	w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(far, (struct sockaddr *)&address, sizeof(address)) || w->fd < 0)
		die(address.sun_path);
	w->pid = other_start(w->fd);
	close(far);
	w->nr = SYS_sendto;
	w->arg[0] = w->fd;
	w->arg[1] = (long)"x";
	w->arg[2] = 1;
	w->arg[4] = (long)&address;
	w->arg[5] = sizeof(address);
	strcpy(w->connection, "unix close");
	snprintf(w->waits_on, sizeof(w->waits_on), "unix %s peer %d " OTHER, address.sun_path,
		 w->pid);
}

/* Closes a connection whose other end does not read, and waits until it has. */
static void tcp_linger(struct waiting *w)
{
	static char bytes[65536];
	struct linger linger = {.l_onoff = 1, .l_linger = 10000};
	int fd;

	tcp_pair(w, true);
	fd = w->fd;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	fcntl(fd, F_SETFL, 0);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	*w = (struct waiting){
		.nr = SYS_close, .arg[0] = fd, .fd = -1, .inflight = -1, .semaphores = -1};
	strcpy(w->waits_on, "unsent data of a closed connection (SO_LINGER)");
}

const struct wait_row socket_waits[] = {
	{"tcp_client", tcp_client},
	{"tcp_server", tcp_server},
	{"sendfile_tcp", sendfile_tcp},
	{"tcp_accept", tcp_accept},
	{"tcp6_accept", tcp6_accept},
	{"tcp_linger", tcp_linger},
	{"udp", udp},
	{"udp_asked", udp_asked},
	{"netlink", netlink},
	{"raw", raw},
	{"packet", packet},
	{"unix_pair", unix_pair},
	{"unix_path", unix_path},
	{"unix_datagram", unix_datagram},
	{0},
};

static void listen_to(void *data)
{
	char c;

	while (read(*(int *)data, &c, 1) == 1)
		;
}

/* Threads that each wait for their connection, and are served repeatedly. */
static void served_run(void)
{
	long threads = option_number("threads", 1000),
	     period_us = option_number("period_us", 30000);
	struct subject *subjects = calloc((size_t)threads, sizeof(*subjects));
	int *near = calloc((size_t)threads, sizeof(*near)),
	    *far = calloc((size_t)threads, sizeof(*far));
	struct sockaddr_in address;
	int listening = tcp_listen(&address), port;

	limits_raise();
	for (long i = 0; i < threads; i++) {
		near[i] = tcp_connect(&address, &port);
		far[i] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		if (far[i] < 0)
			die("accept");
		subject_start(&subjects[i], "served", listen_to, &near[i]);
	}
	if (!child_fork())
		for (;; sleep_ns(period_us * 1000))
			for (long i = 0; i < threads; i++)
				if (write(far[i], "", 1) != 1)
					die("write");
	ready_begin(getpid(), getpid());
	line_end();
	hold();
}

static struct sockaddr_in reconnect_address;

static void reconnect(void *listening)
{
	struct timeval brief = {.tv_usec = 2000};
	char c;
	int port;

	for (;;) {
		int far = tcp_connect(&reconnect_address, &port),
		    near = accept4(*(int *)listening, NULL, NULL, SOCK_CLOEXEC);

		setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
		if (read(far, &c, 1) > 0)
			die("nobody writes");
		/* reset, so that no port is occupied by waiting for its last packets */
		setsockopt(far, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
			   sizeof(struct linger));
		close(far);
		close(near);
	}
}

/* Makes sockets that are gone when they are looked up. */
static void reconnect_run(void)
{
	static struct subject subjects[8];
	int listening = tcp_listen(&reconnect_address);

	for (size_t i = 0; i < 8; i++)
		subject_start(&subjects[i], "reconnect", reconnect, &listening);
	ready_begin(getpid(), getpid());
	line_end();
	hold();
}

const struct workload socket_workloads[] = {
	{"served", "threads=N period_us=N", "threads that each wait for a TCP connection, often",
	 served_run},
	{"reconnect", "", "threads with connections that last 2 ms", reconnect_run},
	{0},
};
