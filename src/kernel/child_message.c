/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/child_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int child_message_send(int socket, const struct child_message *message, int descriptor,
		       struct error *e)
{
	struct iovec part = {(void *)message, sizeof(*message)};
	union control control = {.bytes = {0}};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (descriptor >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
	}
	if (sendmsg(socket, &header, MSG_NOSIGNAL) >= 0)
		return 0;
	return error_set(e, errno, EXIT_FAILED, "the compile child can't send its result: %s",
			 strerror(errno));
}

int child_message_receive(int socket, struct child_message *message, int *descriptor)
{
	struct iovec part = {message, sizeof(*message)};
	union control control;
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = sizeof(control.bytes)};
	ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	struct cmsghdr *first;

	*descriptor = -1;
	if (got < 0)
		return -errno;
	first = CMSG_FIRSTHDR(&header);
	if (first && first->cmsg_type == SCM_RIGHTS && first->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(descriptor, CMSG_DATA(first), sizeof(int));
	else if (header.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return got == sizeof(*message) ? 1 : 0;
}
