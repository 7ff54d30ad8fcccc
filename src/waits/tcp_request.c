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
#define SYN_BYTES 1 /* tcpi_bytes_acked counts the SYN */

/* Times of tcp_info are in milliseconds before now, with the resolution of the kernel's tick. At
 * first both are those of the handshake. If both are of one tick, only the byte counts (4.1) show
 * whether a request went out after the handshake or was answered; if bytes went both ways it counts
 * as answered. */
bool tcp_answer_is_due(const struct tcp_answer *answer)
{
	const struct tcp_info *info = &answer->info;

	if (info->tcpi_last_data_sent != info->tcpi_last_data_recv)
		return info->tcpi_last_data_sent < info->tcpi_last_data_recv;
	return !info->tcpi_bytes_received &&
	       (info->tcpi_unacked || info->tcpi_bytes_acked > SYN_BYTES);
}

/* Finds the tcp_info after the message. */
static void info_find(const struct inet_diag_msg *message, size_t length, struct tcp_answer *answer)
{
	const struct rtattr *attribute = (const void *)(message + 1);
	ssize_t left = (ssize_t)length - (ssize_t)sizeof(*message);

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		size_t size = RTA_PAYLOAD(attribute);

		if (attribute->rta_type != INET_DIAG_INFO)
			continue;
		if (size > sizeof(answer->info))
			size = sizeof(answer->info);
		memcpy(&answer->info, RTA_DATA(attribute), size);
		answer->info_bytes = size;
		return;
	}
}

bool tcp_answer_parse(const void *bytes, size_t length, const struct diag_record *record,
		      struct tcp_answer *answer)
{
	const struct nlmsghdr *header = bytes;
	const struct inet_diag_msg *message;

	*answer = (struct tcp_answer){0};
	if (length < sizeof(*header) || header->nlmsg_len < sizeof(*header) ||
	    header->nlmsg_len > length || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	message = NLMSG_DATA(header);
	length = header->nlmsg_len - NLMSG_HDRLEN;
	if (length < sizeof(*message) || (record->inode && message->idiag_inode != record->inode))
		return false;
	answer->message = *message;
	info_find(message, length, answer);
	return true;
}

static int64_t request_age_ms(const struct tcp_answer *answer)
{
	if (answer->message.idiag_state == STATE_SYN_SENT)
		return 0;
	if (!answer->info_bytes || !tcp_answer_is_due(answer))
		return REQUEST_NONE;
	return answer->info.tcpi_last_data_sent;
}

int64_t tcp_request_parse(const void *bytes, size_t length, const struct diag_record *record)
{
	struct tcp_answer answer;

	return tcp_answer_parse(bytes, length, record, &answer) ? request_age_ms(&answer)
								: REQUEST_NONE;
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

/* The kernel gives the answer before send(2) returns. */
bool tcp_ask(int fd, const struct diag_record *record, struct tcp_answer *answer)
{
	static char bytes[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t got =
		diag_request_send(fd, record) ? recv(fd, bytes, ANSWER_BYTES, MSG_DONTWAIT) : -1;

	return tcp_answer_parse(bytes, got > 0 ? (size_t)got : 0, record, answer);
}

int64_t tcp_request_age_ms(int fd, const struct diag_record *record)
{
	struct tcp_answer answer;

	return tcp_ask(fd, record, &answer) ? request_age_ms(&answer) : REQUEST_NONE;
}

bool tcp_request_is_in(int fd, const struct diag_record *record)
{
	struct tcp_answer answer;

	return tcp_ask(fd, record, &answer) && answer.message.idiag_state == STATE_ESTABLISHED &&
	       answer.info.tcpi_bytes_received &&
	       answer.info.tcpi_last_data_recv <= answer.info.tcpi_last_data_sent;
}
