/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/variables.h"
#include "base/text.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if the file is called so, by its path or the last part of it. */
static bool file_is(const char *path, const char *module)
{
	const char *name = *module == '/' ? path : strrchr(path, '/') + 1;
	size_t length = app_name_length(name);

	return length == strlen(module) && !memcmp(name, module, length);
}

/* Asks for the nearest symbol, once. */
static void nearest_find(struct app_reader *reader, const struct mapping *file, const char *symbol,
			 struct variable_seen *seen)
{
	struct file_nearest_answer answer;
	struct elf_file elf = {.fd = -1};
	struct stat stat;

	if (seen->has_module)
		return;
	elf.fd = app_file_open(reader, file);
	if (elf.fd < 0)
		return;
	seen->has_module = true;
	text_into(seen->path, sizeof(seen->path), file->path);
	elf.bytes = fstat(elf.fd, &stat) ? 0 : (uint64_t)stat.st_size;
	if (!file_nearest_request(app_parser(reader), &elf, symbol, &answer))
		text_into(seen->nearest, sizeof(seen->nearest), answer.name);
	close(elf.fd);
}

static void place_find(struct app_reader *reader, const struct app_modules *modules,
		       struct cache *known, const struct program_variable *variable,
		       struct variable_place *place, struct variable_seen *seen)
{
	struct elf_variable found;
	struct tls_linker linker = {0};
	uint64_t distance;

	*place = (struct variable_place){.found = false};
	for (size_t i = 0; i < modules->count && !place->found; i++) {
		if (!file_is(modules->files[i].path, variable->module))
			continue;
		if (!app_variable_find(known, reader, &modules->files[i], variable->symbol, false,
				       &found, &distance)) {
			nearest_find(reader, &modules->files[i], variable->symbol, seen);
			continue;
		}
		seen->found = true;
		place->bytes = found.bytes;
		if (found.thread_local_storage) {
			if (i != modules->program)
				tls_linker_find(reader, modules, known, &linker);
			tls_place_find(reader, &found, distance, i == modules->program, &linker,
				       &place->place);
		} else {
			place->address = found.address + distance;
		}
		place->found = place->address || place->place.found;
	}
}

bool variables_find(struct app_reader *reader, const struct app_modules *modules,
		    struct cache *known, struct variable_place places[PROGRAM_VARIABLES_MAX],
		    struct variable_seen seen[PROGRAM_VARIABLES_MAX])
{
	bool any = false;

	for (size_t i = 0; i < program_variable_count; i++) {
		place_find(reader, modules, known, &program_variables[i], &places[i], &seen[i]);
		any |= places[i].found;
	}
	return any;
}

/* Reads a number of that many bytes, with or without a sign. What is too large is absent. */
static int64_t number_read(struct app_reader *reader, uint64_t address, size_t bytes, bool has_sign)
{
	uint64_t value = 0;
	unsigned int unused = 64 - 8 * (unsigned int)bytes;

	if (!app_read(reader, address, &value, bytes))
		return ABSENT;
	return has_sign ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

static void variable_fill(struct app_reader *reader, const struct program_variable *variable,
			  const struct variable_place *place, uint64_t pointer, size_t number,
			  struct sample_app *facts)
{
	uint64_t address =
		place->address ? place->address : tls_address(reader, &place->place, pointer);
	size_t bytes = variable->type->bytes;
	int64_t value;

	for (unsigned int i = 0; i < variable->offset_count && address; i++) {
		if (!app_read(reader, address, &address, sizeof(address)) || !address)
			return;
		address += (uint64_t)variable->offsets[i];
	}
	if (!address)
		return;
	if (variable->type->kind == KIND_TEXT) {
		facts->variables[number].text = app_text(reader, address);
		return;
	}
	if (!bytes) {
		bytes = variable->offset_count ? 8 : place->bytes;
		bytes = bytes == 1 || bytes == 2 || bytes == 4 ? bytes : 8;
	}
	value = number_read(reader, address, bytes, variable->type->has_sign);
	if (variable->type->kind == KIND_HEX || variable->type->has_sign || value >= 0)
		facts->variables[number].number = value;
}

void variables_fill(struct app_reader *reader, const struct variable_place *places,
		    uint64_t pointer, struct sample_app *facts)
{
	for (size_t i = 0; i < program_variable_count; i++)
		if (places[i].found)
			variable_fill(reader, &program_variables[i], &places[i], pointer, i, facts);
}

bool variable_lacks(size_t number, const struct variable_seen *seen, struct text *words)
{
	const struct program_variable *variable = &program_variables[number];

	if (seen->found)
		return false;
	text_add_format(words, "variable of --context, %s: ", variable->name);
	if (!seen->has_module)
		text_add_format(words, "no process that was sampled has mapped a file '%s'",
				variable->module);
	else
		text_add_format(words, "%s has no variable '%s'%s%s", seen->path, variable->symbol,
				*seen->nearest ? "; nearest: " : "", seen->nearest);
	return true;
}
