/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/parser_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(PARSER_FDS_MAX * sizeof(int))];
};

int parser_message_send(int socket, const struct parser_message *message)
{
	struct iovec parts[] = {{(void *)message->head, message->head_bytes},
				{(void *)message->body, message->body_bytes}};
	union control control = {.bytes = {0}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = message->body_bytes ? 2 : 1};
	size_t bytes = message->fd_count * sizeof(int);
	ssize_t sent;

	if (message->fd_count) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.header), message->fds, bytes);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static unsigned int fds_take(struct msghdr *header, int fds[PARSER_FDS_MAX])
{
	struct cmsghdr *control = CMSG_FIRSTHDR(header);
	size_t bytes;

	if (!control || control->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = control->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(control), bytes);
	return (unsigned int)(bytes / sizeof(int));
}

int parser_message_receive(int socket, void *to, size_t size, struct parser_request *got)
{
	struct iovec part = {to, size};
	union control control;
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = sizeof(control.bytes)};
	ssize_t length;

	do
		length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	*got = (struct parser_request){.bytes = to, .count = length < 0 ? 0 : (size_t)length};
	if (length <= 0)
		return length ? -errno : 0;
	got->fd_count = fds_take(&header, got->fds);
	if (!(header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
		return 1;
	while (got->fd_count)
		close(got->fds[--got->fd_count]);
	return -EMFILE;
}
