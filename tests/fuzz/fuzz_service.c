/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser, in any order, about files with any bytes: the side that answers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/file_request.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS 4

/* Request as it is in the input, before the bytes of its file. */
struct short_request {
	uint8_t kind, number, how; /* how: flags */
	uint8_t unused;
	uint16_t bytes;
	uint16_t address_low;
	uint32_t address_high;
};

enum how { HOW_OPENS = 1, HOW_JIT = 2, HOW_FILE = 4, HOW_DEBUG = 8, HOW_LIE = 16 };

static int file_make(const uint8_t *bytes, size_t count)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
	return fd;
}

static void request_make(const struct short_request *of, const uint8_t *bytes, size_t count)
{
	static char answer[PARSER_MESSAGE_MAX], text[sizeof(struct file_request) + UINT16_MAX];
	struct file_request whole = {
		.kind = of->kind,
		.number = of->number % NUMBERS,
		.address = (uint64_t)of->address_high << 16 | of->address_low,
		.bytes = of->how & HOW_LIE ? of->address_high : count,
		.opens = of->how & HOW_OPENS,
		.jit = !!(of->how & HOW_JIT),
	};
	struct parser_request request = {.bytes = text, .count = sizeof(whole), .fds = {-1, -1}};

	memcpy(text, &whole, sizeof(whole));
	if (of->how & HOW_FILE) {
		request.fds[request.fd_count++] = file_make(bytes, count);
		if (of->how & HOW_DEBUG)
			request.fds[request.fd_count++] = file_make(bytes, count / 2);
	} else {
		memcpy(text + sizeof(whole), bytes, count);
		request.count += count;
	}
	must(file_service(&request, answer) <= sizeof(answer));
	for (unsigned int i = 0; i < request.fd_count; i++)
		if (request.fds[i] >= 0)
			close(request.fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct short_request forget = {.kind = FILE_FORGET};
	struct short_request of;

	while (size >= sizeof(of)) {
		size_t count;

		memcpy(&of, data, sizeof(of));
		data += sizeof(of);
		size -= sizeof(of);
		count = of.bytes < size ? of.bytes : size;
		request_make(&of, data, count);
		data += count;
		size -= count;
	}
	request_make(&forget, data, 0);
	return 0;
}
