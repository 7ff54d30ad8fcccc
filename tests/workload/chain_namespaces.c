/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections between processes in network namespaces of their own, joined by pairs of virtual
 * devices, as between containers. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain.h"

#define SPACES 4
#define PORT 5000

static pid_t keepers[SPACES]; /* process in each namespace */

static void keeper_start(int which)
{
	int ready[2];
	char c;

	make_pipe(ready);
	keepers[which] = child_fork();
	if (keepers[which]) {
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			unready("no network namespaces here");
		close(ready[0]);
		return;
	}
	if (!unshare(CLONE_NEWNET) && write(ready[1], "", 1) == 1)
		stay();
	_exit(1);
}

static void namespace_enter(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("setns");
	close(fd);
}

__attribute__((format(printf, 1, 2))) static void command(const char *format, ...)
{
	char words[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	if (system(words))
		unready("ip (iproute2) can't join network namespaces here");
}

static void address_give(pid_t keeper, const char *device, int net, int host)
{
	namespace_enter(keeper);
	command("ip addr add 10.213.%d.%d/24 dev %s 2>&1 && ip link set %s up 2>&1", net, host,
		device, device);
}

/* Joins two namespaces by a network: host 1 is in one, host 2 in the other. */
static void namespaces_join(int one, int other, int net)
{
	char device[32];

	namespace_enter(keepers[one]);
	snprintf(device, sizeof(device), "chain%d", net);
	command("ip link add %s type veth peer name %s netns %d 2>&1", device, device,
		keepers[other]);
	address_give(keepers[one], device, net, 1);
	address_give(keepers[other], device, net, 2);
}

static struct sockaddr_in address_of(int net, int host, int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x0ad50000u | (unsigned int)net << 8 | (unsigned int)host),
		.sin_port = htons((uint16_t)port)};
}

static int socket_bound(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		die("bind");
	return fd;
}

/* Makes a connection from host 1 to host 2, always from and to the same port. */
static void pair_make(int one, int other, int net, int pair[2])
{
	const struct sockaddr_in near = address_of(net, 1, PORT + 1),
				 far = address_of(net, 2, PORT);
	int listening;

	namespace_enter(keepers[other]);
	listening = socket_bound(&far);
	if (listen(listening, 4))
		die("listen");
	namespace_enter(keepers[one]);
	pair[0] = socket_bound(&near);
	if (connect(pair[0], (const struct sockaddr *)&far, sizeof(far)))
		die("connect");
	pair[1] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	close(listening);
}

static pid_t part_start_in(int which, const struct part *part)
{
	namespace_enter(keepers[which]);
	return part_start(part);
}

static void pairs_close(int a[2], int b[2])
{
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static void proxy_namespaces(void)
{
	int near[2], far[2], home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	pid_t client, middle, server;

	for (int i = 0; i < 3; i++)
		keeper_start(i);
	namespaces_join(0, 1, 1);
	namespaces_join(1, 2, 2);
	pair_make(0, 1, 1, near);
	pair_make(1, 2, 2, far);
	client = part_start_in(0, &(struct part){"chain_client", part_request, -1, near[0]});
	middle = part_start_in(1, &(struct part){"chain_proxy", part_forward, near[1], far[0]});
	server = part_start_in(2, &(struct part){"chain_server", part_answer, far[1], -1});
	pairs_close(near, far);
	setns(home, CLONE_NEWNET);
	close(home);
	await_state(middle, middle, "S", SYS_read);
	victim_add(client, middle, "chain_client socket> chain_proxy socket> chain_server");
	victim_add(middle, server, "chain_proxy socket> chain_server");
}

/* Makes two connections with the same addresses and ports, each between namespaces of its own. */
static void twin_namespaces(void)
{
	int pairs[2][2], home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	pid_t client;

	for (int i = 0; i < SPACES; i++)
		keeper_start(i);
	for (int i = 0; i < 2; i++) {
		namespaces_join(2 * i, 2 * i + 1, 1);
		pair_make(2 * i, 2 * i + 1, 1, pairs[i]);
		part_start_in(2 * i + 1,
			      &(struct part){"chain_server", part_answer, pairs[i][1], -1});
		client = part_start_in(
			2 * i, &(struct part){"chain_client", part_request, -1, pairs[i][0]});
		victim_add(client, 0, "chain_client");
	}
	pairs_close(pairs[0], pairs[1]);
	setns(home, CLONE_NEWNET);
	close(home);
}

const struct chain_row namespace_chains[] = {
	{"proxy_namespaces", proxy_namespaces},
	{"twin_namespaces", twin_namespaces},
	{0},
};
