/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/file_request.h"
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define ROW_NS (2 * NS_PER_SECOND) /* limit of an answer that a scan waits for */
#define GO_NS (10 * NS_PER_SECOND)

/* Adds the file's descriptor to a message, or its image, which follows the request. */
static void file_add(struct parser_message *message, const struct elf_file *elf)
{
	if (elf->fd >= 0) {
		message->fds[message->fd_count++] = elf->fd;
	} else {
		message->body = elf->image;
		message->body_bytes = elf->bytes;
	}
}

int file_row_request(struct parser *parser, uint32_t number, const struct elf_file *elf, bool opens,
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
	if (opens)
		file_add(&message, elf);
	got = parser_request(parser, &message, bytes, ROW_NS);
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

/* Makes a request about a file that the parser does not keep. */
static int once_request(struct parser *parser, struct file_request request,
			const struct elf_file *elf, void *answer, size_t bytes)
{
	struct parser_message message = {.head = &request, .head_bytes = sizeof(request)};
	int err = parser_ready(parser);

	request.bytes = elf->bytes;
	file_add(&message, elf);
	return err ? err : parser_request_fixed(parser, &message, answer, bytes, ROW_NS);
}

int file_head_request(struct parser *parser, struct elf_file *elf)
{
	static struct file_head_answer answer;
	const struct elf_file requested = *elf;
	int err = once_request(parser, (struct file_request){.kind = FILE_HEAD}, elf, &answer,
			       sizeof(answer));

	if (err)
		return err;
	if (!answer.is_elf || answer.elf.segment_count > ELF_SEGMENTS_MAX ||
	    answer.elf.build_id_bytes > BUILD_ID_MAX)
		return -ENOEXEC;
	memcpy(&answer.elf.narrow, &(bool){answer.narrow != 0}, sizeof(bool));
	*elf = answer.elf;
	elf->fd = requested.fd;
	elf->image = requested.image;
	elf->bytes = requested.bytes;
	return 0;
}

int file_exports_request(struct parser *parser, const struct elf_file *elf,
			 struct runtime_exports *exports)
{
	return once_request(parser, (struct file_request){.kind = FILE_EXPORTS}, elf, exports,
			    sizeof(*exports));
}

int file_returns_request(struct parser *parser, const struct elf_file *elf, uint64_t address,
			 bool exact, struct file_returns_answer *answer)
{
	const struct file_request request = {
		.kind = FILE_RETURNS, .address = address, .exact = exact};
	int err = once_request(parser, request, elf, answer, sizeof(*answer));

	return !err && answer->count > X86_RETURNS_MAX ? -EBADMSG : err;
}

int file_go_request(struct parser *parser, uint32_t number, const struct elf_file *elf,
		    struct file_go_answer *answer)
{
	const struct file_request request = {
		.kind = FILE_GO, .number = number, .bytes = elf->bytes, .opens = true};
	const struct parser_message message = {
		.head = &request, .head_bytes = sizeof(request), .fds = {elf->fd}, .fd_count = 1};
	int err = parser_ready(parser);

	if (!err)
		err = parser_request_fixed(parser, &message, answer, sizeof(*answer), GO_NS);
	answer->program.version[GO_VERSION_SIZE - 1] = '\0';
	return err;
}

int file_go_frame_request(struct parser *parser, uint32_t number, uint64_t address,
			  struct file_go_frame_answer *answer)
{
	const struct file_request request = {
		.kind = FILE_GO_FRAME, .number = number, .address = address};
	const struct parser_message message = {.head = &request, .head_bytes = sizeof(request)};
	int err = parser_request_fixed(parser, &message, answer, sizeof(*answer), GO_NS);

	answer->name[FUNCTION_NAME_SIZE - 1] = '\0';
	return err;
}

static void file_send(struct parser *parser, enum file_request_kind kind, uint32_t number)
{
	const struct file_request request = {.kind = kind, .number = number};

	parser_send(parser,
		    &(struct parser_message){.head = &request, .head_bytes = sizeof(request)});
}

void file_drop(struct parser *parser, uint32_t number)
{
	file_send(parser, FILE_DROP, number);
}

void file_forget(struct parser *parser)
{
	if (parser)
		file_send(parser, FILE_FORGET, 0);
}
