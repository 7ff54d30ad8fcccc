/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Message of a parser's socket (SOCK_SEQPACKET): bytes, and descriptors of files. */
#ifndef TSNAP_PARSER_PARSER_MESSAGE_H
#define TSNAP_PARSER_PARSER_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

#define PARSER_MESSAGE_MAX \
	49152 /* bytes of a message; the kernel's default for a socket is four times that */
#define PARSER_FDS_MAX 2

struct parser_message {
	const void *head, *body; /* sent one after the other */
	size_t head_bytes, body_bytes;
	int fds[PARSER_FDS_MAX];
	unsigned int fd_count;
};

/* Sends a message. 0 or -errno. */
int parser_message_send(int socket, const struct parser_message *message);
/* Waits for a message, whose bytes (*got of them) go to `to`, and whose descriptors, which are the
 * caller's from then on, into fds. 1, 0 at the end, or -errno; -EMFILE: descriptors were lost. */
int parser_message_receive(int socket, void *to, size_t size, size_t *got, int fds[PARSER_FDS_MAX],
			   unsigned int *fd_count);

#endif
