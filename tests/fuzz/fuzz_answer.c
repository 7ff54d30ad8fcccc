/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of a compromised parser, for a row of an unwind table, or for the returns of code without
 * one: they are refused, or a walk can follow them. */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/file_request.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESS 0x1000

static void returns_try(const struct machine *machine, const struct elf_file *elf,
			const uint8_t *data, size_t size)
{
	const struct frame_table table = {.elf = elf};
	struct file_returns_answer answer = {0};
	struct frame_row row;

	memcpy(&answer, data, size < sizeof(answer) ? size : sizeof(answer));
	for (uint32_t i = 0; i < answer.count && i < X86_RETURNS_MAX; i++)
		if (x86_return_row(&answer.returns[i], &row))
			row_apply(machine, &table, &row, ADDRESS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parsers parsers = {.control = -1};
	struct parser parser = {.parsers = &parsers, .generation = 1};
	const struct elf_file elf = {.fd = -1, .bytes = 1, .image = "x"};
	const struct machine *machine = machine_of_elf(EM_X86_64);
	const struct frame_row *row = NULL;
	struct frame_table table;
	int pair[2];

	if (!machine || !size || size > sizeof(struct file_row_answer))
		return 0;
	returns_try(machine, &elf, data, size);
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	must(send(pair[1], data, size, 0) == (ssize_t)size);
	parser.socket = pair[0];
	parser.begun_ns = clock_monotonic_ns();
	frame_table_init(&table, &elf, machine, &parser, 0);
	if (!frame_table_request(&table, ADDRESS) && frame_table_find(&table, ADDRESS, &row) && row)
		row_apply(machine, &table, row, ADDRESS);
	frame_table_done(&table);
	close(pair[1]);
	if (parser.socket >= 0)
		close(parser.socket);
	return 0;
}
