/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/symbols.h"
#include "base/memory.h"
#include "base/text.h"
#include "unwind/elf/demangle.h"
#include "unwind/elf/process_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUG_PATH "usr/lib/debug/.build-id/"

static void symbols_unload(struct symbols *symbols)
{
	elf_symbols_done(&symbols->elf);
	if (symbols->module->kind == FRAME_JIT)
		perf_map_done(&symbols->map);
	symbols->loaded = false;
}

void symbols_cache_done(struct symbols_cache *cache)
{
	while (cache->first) {
		struct symbols *symbols = cache->first;

		cache->first = symbols->next;
		if (symbols->loaded)
			symbols_unload(symbols);
		symbols->module->symbols = NULL;
		free(symbols);
	}
}

void symbols_cache_close(struct symbols_cache *cache)
{
	for (struct symbols *at = cache->first; at; at = at->next)
		if (at->loaded && at->module->closing)
			symbols_unload(at);
}

static void cache_trim(struct symbols_cache *cache, const struct symbols *newest)
{
	for (;;) {
		struct symbols *oldest = NULL;
		size_t bytes = 0;

		for (struct symbols *at = cache->first; at; at = at->next) {
			if (!at->loaded)
				continue;
			bytes += elf_symbols_bytes(&at->elf) +
				 at->map.table.capacity * sizeof(struct symbol);
			if (at != newest && (!oldest || at->used < oldest->used))
				oldest = at;
		}
		if (bytes <= cache->bytes_max || !oldest)
			return;
		symbols_unload(oldest);
		cache->unloaded_count++;
	}
}

/* The separate debug file as gdb finds it by the build-id: the process' own first, then this
 * host's. */
static void debug_add(const struct symbols_cache *cache, struct symbols *symbols)
{
	const struct module *module = symbols->module;
	struct text path = {0};
	int fd;

	if (module->elf.build_id_bytes < 2)
		return;
	text_add_string(&path, DEBUG_PATH);
	for (uint32_t i = 0; i < module->elf.build_id_bytes; i++)
		text_add_format(&path, "%02x%s", module->elf.build_id[i], i ? "" : "/");
	text_add_string(&path, ".debug");
	fd = process_file_open(cache->proc_root, module->tid, text_string(&path), false);
	if (fd < 0)
		fd = process_file_open("/proc", getpid(), text_string(&path), false);
	text_done(&path);
	if (fd >= 0)
		elf_symbols_add_debug(&symbols->elf, fd, &module->elf);
}

/* A thread of the process that is there, if any of the two that are known is. */
static int64_t jit_thread(const struct symbols_cache *cache, const struct module *module)
{
	return process_has_root(cache->proc_root, module->pid) ? module->pid : module->tid;
}

static void symbols_load(struct symbols_cache *cache, struct symbols *symbols)
{
	struct module *module = symbols->module;

	symbols->loaded = true;
	if (module->kind == FRAME_JIT) {
		perf_map_open(&symbols->map, cache->proc_root, jit_thread(cache, module),
			      module->uid);
		return;
	}
	elf_symbols_add(&symbols->elf, &module->elf);
	if (!symbols->elf.whole)
		debug_add(cache, symbols);
	elf_symbols_sort(&symbols->elf);
}

static bool name_find(const struct symbols_cache *cache, struct symbols *symbols, uint64_t address,
		      char *name, size_t size)
{
	const struct module *module = symbols->module;

	if (module->kind != FRAME_JIT)
		return elf_symbol_name(&symbols->elf, address, name, size);
	if (perf_map_name(&symbols->map, address, name, size))
		return true;
	perf_map_read_again(&symbols->map, cache->proc_root, jit_thread(cache, module),
			    module->uid);
	return perf_map_name(&symbols->map, address, name, size);
}

void function_name_clean(char *name)
{
	for (; *name; name++) {
		if (*name == ';')
			*name = ':';
		else if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
	}
}

/* Counts each kind once for each file. */
static void flaws_count(struct symbols_cache *cache, struct symbols *symbols)
{
	bool jit = symbols->module->kind == FRAME_JIT;
	bool cut =
		jit ? symbols->map.cut || symbols->map.table.refused : symbols->elf.table.refused;

	cache->cut_count += cut && !symbols->cut;
	symbols->cut = symbols->cut || cut;
	cache->refused_count += jit && symbols->map.refused && !symbols->refused;
	symbols->refused = symbols->refused || (jit && symbols->map.refused);
}

bool symbols_name(struct symbols_cache *cache, struct module *module, uint64_t address,
		  char name[FUNCTION_NAME_SIZE])
{
	struct symbols *symbols = module->symbols;
	char found[FUNCTION_NAME_SIZE];
	bool known;

	if (!symbols) {
		symbols = module->symbols = memory_get(sizeof(*symbols));
		symbols->module = module;
		symbols->next = cache->first;
		cache->first = symbols;
	}
	if (!symbols->loaded)
		symbols_load(cache, symbols);
	symbols->used = ++cache->uses;
	cache_trim(cache, symbols);
	known = name_find(cache, symbols, address, found, sizeof(found));
	flaws_count(cache, symbols);
	if (!known)
		return false;
	if (!name_demangle(found, name, FUNCTION_NAME_SIZE)) {
		/* foo@@VERSION */
		if (module->kind != FRAME_JIT)
			found[strcspn(found, "@")] = '\0';
		memcpy(name, found, sizeof(found));
	}
	function_name_clean(name);
	return *name;
}
