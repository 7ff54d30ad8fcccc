/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/tcp_request.h"
#include "waits/sock_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 4096
#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT 2 /* include/net/tcp_states.h */
#define SYN_BYTES 1	 /* tcpi_bytes_acked counts the SYN */

/* True if the last data was sent, not received. Times of tcp_info are in milliseconds before now,
 * with the resolution of the kernel's tick. At first both are those of the handshake. If both are
 * of one tick, only the byte counts (4.1) show whether a request went out after the handshake or
 * was answered; if bytes went both ways it counts as answered. */
static bool info_means_request(const struct tcp_info *info)
{
	if (info->tcpi_last_data_sent != info->tcpi_last_data_recv)
		return info->tcpi_last_data_sent < info->tcpi_last_data_recv;
	return !info->tcpi_bytes_received &&
	       (info->tcpi_unacked || info->tcpi_bytes_acked > SYN_BYTES);
}

/* Finds the tcp_info in the message. False: it has none. */
static bool info_find(const struct inet_diag_msg *message, size_t length, struct tcp_info *info)
{
	const struct rtattr *attribute = (const void *)(message + 1);
	ssize_t left = (ssize_t)length - (ssize_t)sizeof(*message);

	*info = (struct tcp_info){0};
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		size_t size = RTA_PAYLOAD(attribute);

		if (attribute->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(info, RTA_DATA(attribute), size < sizeof(*info) ? size : sizeof(*info));
		return true;
	}
	return false;
}

/* The message in the answer if it is about the record's connection, or NULL. */
static const struct inet_diag_msg *message_find(const void *answer, size_t length,
						const struct diag_record *record, size_t *bytes)
{
	const struct nlmsghdr *header = answer;
	const struct inet_diag_msg *message;

	if (length < sizeof(*header) || header->nlmsg_len < sizeof(*header) ||
	    header->nlmsg_len > length || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return NULL;
	message = NLMSG_DATA(header);
	*bytes = header->nlmsg_len - NLMSG_HDRLEN;
	return *bytes < sizeof(*message) || message->idiag_inode != record->inode ? NULL : message;
}

int64_t tcp_request_parse(const void *answer, size_t length, const struct diag_record *record)
{
	const struct inet_diag_msg *message = message_find(answer, length, record, &length);
	struct tcp_info info;

	if (!message)
		return REQUEST_NONE;
	if (message->idiag_state == STATE_SYN_SENT)
		return 0;
	if (!info_find(message, length, &info) || !info_means_request(&info))
		return REQUEST_NONE;
	return info.tcpi_last_data_sent;
}

static bool address_is_v4(const struct diag_address *address)
{
	struct in6_addr in6;

	memcpy(&in6, address->bytes, sizeof(in6));
	return IN6_IS_ADDR_V4MAPPED(&in6);
}

static void address_put(const struct diag_address *address, bool v4, __be32 words[4], __be16 *port)
{
	*port = htons(address->port);
	if (v4)
		memcpy(words, address->bytes + 12, 4);
	else
		memcpy(words, address->bytes, 16);
}

static bool diag_request_send(int fd, const struct diag_record *record)
{
	bool v4 = address_is_v4(&record->remote);
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = v4 ? AF_INET : AF_INET6,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			 .idiag_states = ~0u,
			 .id = {.idiag_if = record->interface,
				.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};

	address_put(&record->local, v4, request.body.id.idiag_src, &request.body.id.idiag_sport);
	address_put(&record->remote, v4, request.body.id.idiag_dst, &request.body.id.idiag_dport);
	return send(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* Sends the query and reads the answer, which the kernel gives before send(2) returns. *length 0:
 * there is none. */
static const void *answer_get(int fd, const struct diag_record *record, size_t *length)
{
	static char answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t got =
		diag_request_send(fd, record) ? recv(fd, answer, ANSWER_BYTES, MSG_DONTWAIT) : -1;

	*length = got > 0 ? (size_t)got : 0;
	return answer;
}

int64_t tcp_request_age_ms(int fd, const struct diag_record *record)
{
	size_t length;
	const void *answer = answer_get(fd, record, &length);

	return tcp_request_parse(answer, length, record);
}

bool tcp_request_is_in(int fd, const struct diag_record *record)
{
	size_t length;
	const void *answer = answer_get(fd, record, &length);
	const struct inet_diag_msg *message = message_find(answer, length, record, &length);
	struct tcp_info info;

	return message && message->idiag_state == STATE_ESTABLISHED &&
	       info_find(message, length, &info) && info.tcpi_bytes_received &&
	       info.tcpi_last_data_recv <= info.tcpi_last_data_sent;
}
