/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All data that is read from an ELF file: headers, unwind rows and their expressions, functions. */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/elf/elf_exports.h"
#include "unwind/elf/elf_probe.h"
#include "unwind/elf/elf_variable.h"
#include "unwind/elf/elf_symbols.h"
#include "unwind/elf/go_program.h"
#include "fuzz_row.h"
#include "unwind/frame_source.h"
#include "unwind/x86_return.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE 0x1010

static void code_try(const struct machine *machine, const struct elf_file *elf, uint64_t address)
{
	struct x86_return returns[X86_RETURNS_MAX];
	size_t count = x86_returns_find(elf, address, address % 8, returns);
	struct frame_row row;

	for (size_t i = 0; i < count; i++) {
		if (!x86_return_row(&returns[i], &row))
			abort();
		row_apply(machine, NULL, &row, CODE);
	}
}

static void address_try(const struct machine *machine, struct frame_source *source,
			const struct elf_file *elf, uint64_t address)
{
	static struct frame_operations operations;
	struct frame_row row;

	operations.count = 0;
	if (source && !frame_source_row(source, machine, &operations, address, &row))
		row_apply(machine, operations.all, &row, CODE);
	if (machine->elf == EM_X86_64)
		code_try(machine, elf, address);
}

static void rows_try(const struct elf_file *elf)
{
	const struct machine *machine = machine_of_elf(elf->machine);
	struct frame_source *source;

	if (!machine)
		return;
	source = frame_source_open(elf);
	for (uint32_t i = 0; i < elf->segment_count; i++)
		for (uint64_t at = 0; at < 64; at++)
			address_try(machine, source, elf, elf->segments[i].address + at * 4);
	frame_source_close(source);
}

static void symbols_try(const struct elf_file *elf)
{
	struct elf_symbols symbols = {.source_count = 0};
	char name[64], words[128];

	elf_symbols_add(&symbols, elf);
	elf_symbols_sort(&symbols);
	for (size_t i = 0; i < symbols.table.count; i++)
		if (elf_symbol_name(&symbols, symbol_address(&symbols.table.symbols[i]), name,
				    sizeof(name))) {
			must(strlen(name) < sizeof(name));
			if (name_demangle(name, words, sizeof(words)))
				must(strlen(words) < sizeof(words));
		}
	elf_symbols_done(&symbols);
}

static void ends_try(const struct elf_file *elf)
{
	struct go_end ends[GO_ENDS_MAX];
	struct go_table table;

	if (!go_table_read(&table, elf))
		must(go_table_ends(&table, elf, ends) <= GO_ENDS_MAX);
}

static void go_try(const struct elf_file *elf)
{
	struct go_function function;
	struct go_program program;
	struct go_table table;

	if (!go_program_read(&program, elf))
		must(strnlen(program.version, sizeof(program.version)) < sizeof(program.version));
	for (uint64_t address = 0x1f0; !go_table_read(&table, elf) && address < 0x290;
	     address += 0x10)
		if (go_table_find(&table, elf, address, &function)) {
			must(function.from <= address && address < function.to);
			must(go_table_depth(&table, elf, &function, address) >= -1);
		}
}

static void exports_try(const struct elf_file *elf)
{
	static const char *const names[] = {"main", "_PyRuntime", ""};
	uint64_t addresses[3];

	must(elf_exports(elf, names, addresses, 3) <= 3);
}

static void probes_try(const struct elf_file *elf)
{
	static struct elf_usdt usdt;
	struct elf_function function;

	elf_function_find(elf, "main", &function);
	must(strnlen(function.nearest, sizeof(function.nearest)) < sizeof(function.nearest));
	elf_usdt_find(elf, "", "step", &usdt);
	must(usdt.site_count <= USDT_SITES_MAX);
	must(strnlen(usdt.nearest, sizeof(usdt.nearest)) < sizeof(usdt.nearest));
	must(strnlen(usdt.arguments, sizeof(usdt.arguments)) < sizeof(usdt.arguments));
	must(strnlen(usdt.provider, sizeof(usdt.provider)) < sizeof(usdt.provider));
}

static void variables_try(const struct elf_file *elf)
{
	char nearest[VARIABLE_NAME_BYTES];
	struct elf_variable variable;

	elf_variable_find(elf, "main", false, &variable);
	elf_variable_nearest(elf, "mian", nearest);
	must(strnlen(nearest, sizeof(nearest)) < sizeof(nearest));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file elf;
	char *image = malloc(size + 1);

	if (!image)
		return 0;
	if (size)
		memcpy(image, data, size);
	if (!elf_file_read(&elf, -1, image, size)) {
		must(elf.segment_count <= ELF_SEGMENTS_MAX && elf.build_id_bytes <= BUILD_ID_MAX);
		rows_try(&elf);
		symbols_try(&elf);
		ends_try(&elf);
		go_try(&elf);
		exports_try(&elf);
		variables_try(&elf);
		probes_try(&elf);
	}
	free(image);
	return 0;
}
