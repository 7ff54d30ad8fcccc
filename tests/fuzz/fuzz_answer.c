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
#include "base/memory.h"
#include "unwind/file_request.h"
#include "unwind/module_table.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESS 0x1000

static void returns_try(const struct machine *machine, const uint8_t *data, size_t size)
{
	struct file_returns_answer answer = {0};
	struct frame_row row;

	memcpy(&answer, data, size < sizeof(answer) ? size : sizeof(answer));
	for (uint32_t i = 0; i < answer.count && i < X86_RETURNS_MAX; i++)
		if (x86_return_row(&answer.returns[i], &row))
			row_apply(machine, NULL, &row, ADDRESS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parsers parsers = {.control = -1};
	struct parser parser = {.parsers = &parsers, .generation = 1};
	const struct machine *machine = machine_of_elf(EM_X86_64);
	const struct frame_row *row = NULL;
	struct module_table *table;
	struct module *module;
	int pair[2];

	if (!machine || !size || size > sizeof(struct file_row_answer))
		return 0;
	returns_try(machine, data, size);
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	must(send(pair[1], data, size, 0) == (ssize_t)size);
	parser.socket = pair[0];
	parser.begun_ns = clock_monotonic_ns();
	table = memory_get(sizeof(*table));
	module_table_init(table, &parser);
	module = table->modules[table->count++] = memory_get(sizeof(*module));
	module->fd = -1;
	module->elf = (struct elf_file){.fd = -1, .bytes = 1, .image = "x"};
	module->table.machine = machine;
	row = module_row(table, module, ADDRESS);
	if (row)
		row_apply(machine, module->table.operations, row, ADDRESS);
	module_table_clear(table);
	free(table);
	close(pair[1]);
	if (parser.socket >= 0)
		close(parser.socket);
	return 0;
}
