/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATE_LISTEN 10 /* include/net/tcp_states.h */
#define ANSWER_BYTES 32768

static int request_send(int fd, uint8_t family)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 inet;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.inet = {.sdiag_family = family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
			 .idiag_states = 1 << STATE_LISTEN},
	};

	return send(fd, &request, sizeof(request), 0) < 0 ? -1 : 0;
}

/* Returns the count of drops among the attributes of a socket; 0: there is none (before 4.0). */
static uint32_t dropped_of(const struct inet_diag_msg *of, size_t bytes)
{
	const struct rtattr *attribute = (const struct rtattr *)(of + 1);

	for (bytes -= sizeof(*of); RTA_OK(attribute, bytes); attribute = RTA_NEXT(attribute, bytes))
		if (attribute->rta_type == INET_DIAG_SKMEMINFO &&
		    RTA_PAYLOAD(attribute) > SK_MEMINFO_DROPS * sizeof(uint32_t))
			return ((const uint32_t *)RTA_DATA(attribute))[SK_MEMINFO_DROPS];
	return 0;
}

static void listener_take(struct listeners *listeners, const struct nlmsghdr *header)
{
	const struct inet_diag_msg *of = NLMSG_DATA(header);
	uint32_t dropped;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*of)) || listeners->count == LISTENERS_MAX)
		return;
	dropped = dropped_of(of, header->nlmsg_len - NLMSG_HDRLEN);
	if (!dropped)
		return;
	listeners->rows[listeners->count++] = (struct listener){
		.inode = of->idiag_inode,
		.port = ntohs(of->id.idiag_sport),
		.queued = of->idiag_rqueue,
		.backlog = of->idiag_wqueue,
		.dropped = dropped,
	};
}

/* Takes the pieces of an answer. */
static void answer_take(struct listeners *listeners)
{
	union {
		struct nlmsghdr first;
		char bytes[ANSWER_BYTES];
	} answer;
	ssize_t got;

	while ((got = recv(listeners->fd, &answer, sizeof(answer), 0)) > 0) {
		ssize_t left = got; /* signed: NLMSG_NEXT() may subtract more than is left */

		for (const struct nlmsghdr *header = &answer.first; NLMSG_OK(header, left);
		     header = NLMSG_NEXT(header, left)) {
			if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR)
				return;
			listener_take(listeners, header);
		}
	}
}

void listeners_read(struct listeners *listeners)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};

	listeners->count = 0;
	if (!listeners->fd)
		listeners->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	for (size_t i = 0; i < sizeof(families) && listeners->fd > 0; i++)
		if (!request_send(listeners->fd, families[i]))
			answer_take(listeners);
}

void listeners_done(struct listeners *listeners)
{
	if (listeners->fd > 0)
		close(listeners->fd);
	*listeners = (struct listeners){0};
}
