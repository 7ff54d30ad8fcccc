/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_probe.h"
#include "base/memory.h"
#include "base/text.h"
#include "unwind/elf/elf_variable.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 200000
#define NOTES_BYTES_MAX (8u << 20)
#define NOTE_STAPSDT 3

/* Names among which one like the given is looked for. */
struct names {
	char **all;
	size_t count, capacity;
};

static void names_add(struct names *names, const char *name)
{
	if (names->count == NAMES_MAX)
		return;
	names->all =
		memory_grow(names->all, &names->capacity, names->count + 1, sizeof(*names->all));
	names->all[names->count++] = memory_text(name, strlen(name));
}

static const char *names_at(void *from, size_t at)
{
	const struct names *names = from;

	return at < names->count ? names->all[at] : NULL;
}

static void names_nearest(struct names *names, const char *name, char nearest[PROBE_NAME_BYTES])
{
	const char *found = text_nearest(name, names_at, names);

	if (found)
		text_into(nearest, PROBE_NAME_BYTES, found);
	for (size_t i = 0; i < names->count; i++)
		free(names->all[i]);
	free(names->all);
}

/* --- functions */

struct function_search {
	const char *name;
	struct elf_function *function;
	uint64_t address;
	struct names *gathers; /* NULL: the function is looked for */
};

static void symbol_take(void *of, const Elf64_Sym *symbol, const char *name)
{
	struct function_search *search = of;
	const unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (!name || !*name)
		return;
	if (!strcmp(name, "__gxx_personality_v0") || !strcmp(name, "__cxa_throw") ||
	    !strcmp(name, "rust_eh_personality"))
		search->function->throws = true;
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF)
		return;
	search->function->any = true;
	if (search->gathers)
		names_add(search->gathers, name);
	if (search->gathers || search->function->found || strcmp(name, search->name) != 0)
		return;
	search->function->found = true;
	search->function->indirect = type == STT_GNU_IFUNC;
	search->address = symbol->st_value;
}

static void symbols_search(struct function_search *search, const struct elf_file *elf)
{
	struct elf_section names;

	elf_file_symbols(elf, ".symtab", symbol_take, search, &names);
	elf_file_symbols(elf, ".dynsym", symbol_take, search, &names);
}

void elf_function_find(const struct elf_file *elf, const char *name, struct elf_function *function)
{
	struct function_search search = {.name = name, .function = function};
	struct names names = {0};
	struct elf_section section;
	uint64_t left;

	*function = (struct elf_function){.narrow = elf->narrow};
	function->go = !elf_file_section(elf, ".go.buildinfo", &section) ||
		       !elf_file_section(elf, ".gopclntab", &section);
	symbols_search(&search, elf);
	if (!function->found) {
		search.gathers = &names;
		symbols_search(&search, elf);
		names_nearest(&names, name, function->nearest);
		return;
	}
	function->in_code = elf_code_offset_of(elf, search.address, &function->offset, &left);
	if (function->in_code && left >= sizeof(function->begin) &&
	    elf_file_take(elf, function->offset, function->begin, sizeof(function->begin)))
		memset(function->begin, 0, sizeof(function->begin));
}

/* --- USDT */

/* A note. Its addresses are as the file has them now; texts are in the notes' own memory. */
struct note {
	uint64_t location, semaphore; /* semaphore 0: none */
	const char *provider, *name, *arguments;
};

struct notes {
	const struct elf_file *elf;
	char *bytes;
	size_t count, at;
	uint64_t base; /* address of the section .stapsdt.base; 0: there is none */
};

static uint64_t word_at(const struct elf_file *elf, const char *bytes, unsigned int number)
{
	uint64_t wide;
	uint32_t narrow;

	if (elf->narrow) {
		memcpy(&narrow, bytes + number * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, bytes + number * sizeof(wide), sizeof(wide));
	return wide;
}

/* Reads a note's data. prelink(8) moves sections and not what notes say: the distance of a section
 * that is there for this alone tells how far. */
static bool note_read(const struct notes *notes, const char *data, size_t bytes, struct note *note)
{
	const size_t words = 3 * (notes->elf->narrow ? sizeof(uint32_t) : sizeof(uint64_t));
	const char *texts[3], *end = data + bytes, *at = data + words;
	uint64_t base, moved;

	if (bytes < words)
		return false;
	for (int i = 0; i < 3; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul)
			return false;
		texts[i] = at;
		at = nul + 1;
	}
	base = word_at(notes->elf, data, 1);
	moved = base && notes->base ? notes->base - base : 0;
	*note = (struct note){word_at(notes->elf, data, 0) + moved, word_at(notes->elf, data, 2),
			      texts[0], texts[1], texts[2]};
	if (note->semaphore)
		note->semaphore += moved;
	return true;
}

/* Takes the next note of a probe; false: there are no more. */
static bool notes_next(struct notes *notes, struct note *note)
{
	static const char owner[] = "stapsdt";
	Elf64_Nhdr head; /* one layout for both ELF classes */

	while (notes->count - notes->at >= sizeof(head)) {
		const size_t left = notes->count - notes->at - sizeof(head);
		const char *name = notes->bytes + notes->at + sizeof(head);
		uint64_t name_bytes, data_bytes;

		memcpy(&head, notes->bytes + notes->at, sizeof(head));
		name_bytes = ((uint64_t)head.n_namesz + 3) / 4 * 4;
		data_bytes = ((uint64_t)head.n_descsz + 3) / 4 * 4;
		if (name_bytes > left || head.n_descsz > left - name_bytes)
			return false;
		notes->at += sizeof(head) + name_bytes;
		notes->at += data_bytes < notes->count - notes->at ? data_bytes
								   : notes->count - notes->at;
		if (head.n_type == NOTE_STAPSDT && head.n_namesz == sizeof(owner) &&
		    !memcmp(name, owner, sizeof(owner)) &&
		    note_read(notes, name + name_bytes, head.n_descsz, note))
			return true;
	}
	return false;
}

static bool notes_open(struct notes *notes, const struct elf_file *elf)
{
	struct elf_section section;

	*notes = (struct notes){.elf = elf};
	if (!elf_file_section(elf, ".stapsdt.base", &section))
		notes->base = section.address;
	if (elf_file_section(elf, ".note.stapsdt", &section) || !section.bytes ||
	    section.bytes > NOTES_BYTES_MAX)
		return false;
	notes->count = section.bytes;
	notes->bytes = memory_get(section.bytes);
	return !elf_file_take(elf, section.offset, notes->bytes, section.bytes);
}

/* Parses a site's arguments. A variable of the file lies at a distance from the instruction that
 * the file alone decides. */
static void arguments_read(const struct elf_file *elf, const struct note *note,
			   struct usdt_site *site)
{
	const char *at = note->arguments;
	char symbol[USDT_SYMBOL_SIZE];
	struct usdt_operand operand;
	struct elf_variable variable;

	for (; usdt_operand_next(&at, elf->machine, &operand, symbol); site->argument_count++) {
		if (site->argument_count >= USDT_ARGUMENTS_MAX)
			continue;
		if (*symbol) {
			elf_variable_find(elf, symbol, false, &variable);
			if (!variable.found || variable.thread_local_storage)
				operand.place = USDT_UNKNOWN;
			operand.offset = (int64_t)((uint64_t)operand.offset + variable.address -
						   note->location);
		}
		site->arguments[site->argument_count] = operand;
	}
}

static void site_add(const struct elf_file *elf, const struct note *note, struct elf_usdt *usdt)
{
	struct usdt_site *site = &usdt->sites[usdt->site_count];
	uint64_t left;

	if (usdt->site_count == USDT_SITES_MAX) {
		usdt->more = true;
		return;
	}
	*site = (struct usdt_site){0};
	if (!elf_code_offset_of(elf, note->location, &site->offset, &left) ||
	    (note->semaphore && (!elf_offset_of(elf, note->semaphore, &site->semaphore, &left) ||
				 left < sizeof(uint16_t))))
		usdt->misplaced = true;
	for (uint32_t i = 0; i < usdt->site_count; i++)
		if (usdt->sites[i].offset == site->offset) /* a compiler may write a note twice */
			return;
	arguments_read(elf, note, site);
	if (!usdt->site_count++)
		text_into(usdt->arguments, sizeof(usdt->arguments), note->arguments);
}

void elf_usdt_find(const struct elf_file *elf, const char *provider, const char *name,
		   struct elf_usdt *usdt)
{
	struct names names = {0};
	struct notes notes;
	struct note note;

	memset(usdt, 0, sizeof(*usdt));
	usdt->narrow = elf->narrow;
	for (bool open = notes_open(&notes, elf); open && notes_next(&notes, &note);) {
		usdt->any = true;
		if (*provider && strcmp(provider, note.provider) != 0)
			continue;
		if (strcmp(name, note.name) != 0) {
			names_add(&names, note.name);
		} else if (!usdt->site_count || !strcmp(usdt->provider, note.provider)) {
			text_into(usdt->provider, sizeof(usdt->provider), note.provider);
			site_add(elf, &note, usdt);
		} else {
			text_into(usdt->other, sizeof(usdt->other), note.provider);
		}
	}
	names_nearest(&names, name, usdt->nearest);
	free(notes.bytes);
}
