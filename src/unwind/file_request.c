/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/file_request.h"
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define ROW_NS (2 * NS_PER_SECOND) /* a scan waits for it */

int file_row_ask(struct parser *parser, uint32_t number, const struct elf_file *elf, bool opens,
		 uint64_t address, struct file_row_answer *answer)
{
	const struct file_request request = {.kind = FILE_ROW,
					     .number = number,
					     .address = address,
					     .bytes = elf->bytes,
					     .opens = opens};
	struct parser_message message = {.head = &request, .head_bytes = sizeof(request)};
	static char bytes[PARSER_MESSAGE_MAX];
	size_t head = sizeof(answer->head), rest;
	ssize_t got;
	int err = parser_ready(parser);

	if (err)
		return err;
	if (opens && elf->fd >= 0) {
		message.fds[message.fd_count++] = elf->fd;
	} else if (opens) {
		message.body = elf->image;
		message.body_bytes = elf->bytes;
	}
	got = parser_ask(parser, &message, bytes, ROW_NS);
	if (got < 0)
		return (int)got;
	memset(&answer->head, 0, head);
	if ((size_t)got < head)
		return -EBADMSG;
	memcpy(&answer->head, bytes, head);
	rest = (size_t)got - head;
	if (rest > sizeof(answer->operations) ||
	    answer->head.operation_count != rest / sizeof(answer->operations[0]))
		return -EBADMSG;
	memcpy(answer->operations, bytes + head, rest);
	return 0;
}

static void file_tell(struct parser *parser, enum file_request_kind kind, uint32_t number)
{
	const struct file_request request = {.kind = kind, .number = number};

	parser_tell(parser,
		    &(struct parser_message){.head = &request, .head_bytes = sizeof(request)});
}

void file_drop(struct parser *parser, uint32_t number)
{
	file_tell(parser, FILE_DROP, number);
}

void file_forget(struct parser *parser)
{
	if (parser)
		file_tell(parser, FILE_FORGET, 0);
}
