/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/go_program.h"
#include "base/memory.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_CODE_BYTES 192
/* minor versions of Go */
#define REGISTER_SINCE 17 /* %r14 is the thread's g; before, code reads it where it needs it */
#define LISTS_SINCE 24
#define REGISTER_G 14
#define LABELS_FUNCTION "runtime/pprof.runtime_setProfLabel"
#define LABELS_AT_MAX 4096
/* The runtime has a thread's g here where no linker of C decides, on x86-64. */
#define G_WITHOUT_SYMBOL (-8)
#define STRING_BYTES 16 /* size of a string of Go: an address and a length */

/* .go.buildinfo, since Go 1.13: a mark, the bytes of a word, flags, and the address of a string
 * with the version; since 1.18 texts follow the 32 bytes, each after its length. */
#define MARK "\xff Go buildinf:"
#define MARK_BYTES 14
#define FLAGS_AT 15
#define FLAG_LARGE_FIRST 1 /* big-endian */
#define FLAG_TEXTS 2
#define VERSION_AT 16
#define TEXTS_AT 32

/* Largest length of the first text that takes one byte. */
#define LENGTH_MAX 0x7f

#define RELOCATIONS_MAX (4u << 20)

/* Returns the word that the dynamic linker will put at an address of a position-independent
 * program, counted from where the program is loaded. 0: it is not known. */
static uint64_t relocation_find(const struct elf_file *elf, uint64_t address)
{
	static const char *const names[] = {".rela.dyn", ".rela"};
	struct elf_section section;
	Elf64_Rela relocation;
	const void *row;

	for (size_t i = 0; !elf->narrow && i < sizeof(names) / sizeof(names[0]); i++) {
		struct elf_rows rows = {.elf = elf, .each = sizeof(relocation)};

		if (elf_file_section(elf, names[i], &section) ||
		    section.bytes / rows.each > RELOCATIONS_MAX)
			continue;
		rows.offset = section.offset;
		rows.left = section.bytes / rows.each;
		while ((row = elf_rows_next(&rows))) {
			memcpy(&relocation, row, sizeof(relocation));
			if (relocation.r_offset == address && relocation.r_addend)
				return (uint64_t)relocation.r_addend;
		}
	}
	return 0;
}

/* Reads an address that the file has at an address, or what the dynamic linker will put there. 0:
 * it is not known. */
static uint64_t address_read(const struct elf_file *elf, uint64_t at)
{
	uint64_t offset, left, address;

	if (!elf_offset_of(elf, at, &offset, &left) || left < sizeof(address) ||
	    elf_file_take(elf, offset, &address, sizeof(address)))
		return 0;
	return address ? address : relocation_find(elf, at);
}

/* Reads the string of Go at an address. */
static void version_follow(struct go_program *program, const struct elf_file *elf, uint64_t at)
{
	uint64_t string = address_read(elf, at), text = string ? address_read(elf, string) : 0;
	uint64_t offset, left, length;

	if (!text || !elf_offset_of(elf, string + sizeof(text), &offset, &left) ||
	    left < sizeof(length) || elf_file_take(elf, offset, &length, sizeof(length)) ||
	    length >= sizeof(program->version) || !elf_offset_of(elf, text, &offset, &left) ||
	    length > left || elf_file_take(elf, offset, program->version, length))
		length = 0;
	program->version[length] = '\0';
}

static void version_read(struct go_program *program, const struct elf_file *elf,
			 const struct elf_section *section)
{
	unsigned char head[TEXTS_AT + 1];
	size_t length;

	if (section->bytes < TEXTS_AT || elf_file_take(elf, section->offset, head, TEXTS_AT) ||
	    memcmp(head, MARK, MARK_BYTES))
		return;
	if (!(head[FLAGS_AT] & FLAG_TEXTS)) {
		if (!elf->narrow && !(head[FLAGS_AT] & FLAG_LARGE_FIRST))
			version_follow(program, elf, section->address + VERSION_AT);
		return;
	}
	if (section->bytes < sizeof(head) ||
	    elf_file_take(elf, section->offset, head, sizeof(head)))
		return;
	length = head[TEXTS_AT];
	if (length > LENGTH_MAX || length >= sizeof(program->version) ||
	    length > section->bytes - sizeof(head) ||
	    elf_file_take(elf, section->offset + sizeof(head), program->version, length))
		length = 0;
	program->version[length] = '\0';
}

/* Returns the minor version of "go1.19.8"; 0: it is none that is known. */
static unsigned int version_minor(const char *version)
{
	unsigned int minor;
	char after = '.';

	return sscanf(version, "go1.%2u%c", &minor, &after) >= 1 && strchr(". -rb", after) ? minor
											   : 0;
}

/* From the thread pointer to the program's block of thread-local storage, on x86-64. */
static int64_t tls_distance(const struct elf_file *elf)
{
	uint64_t align = elf->tls_align ? elf->tls_align : 1;

	return -(int64_t)((elf->tls.memory_bytes + align - 1) / align * align);
}

/* What the table of symbols has. */
struct symbols {
	struct go_program *program;
	const struct elf_file *elf;
	uint64_t labels, labels_bytes; /* the function that sets labels; 0: there is none */
	uint64_t slice;		       /* runtime.allgs, a slice */
};

static void symbol_take(void *of, const Elf64_Sym *symbol, const char *name)
{
	struct symbols *symbols = of;
	struct go_program *program = symbols->program;

	program->has_symbols = true;
	if (!name || symbol->st_shndx == SHN_UNDEF)
		return;
	if (!strcmp(name, "runtime.allgptr")) {
		program->list = symbol->st_value;
	} else if (!strcmp(name, "runtime.allglen")) {
		program->count = symbol->st_value;
	} else if (!strcmp(name, "runtime.allgs")) {
		symbols->slice = symbol->st_value;
	} else if (!strcmp(name, "runtime.memstats")) {
		program->memstats = symbol->st_value;
		program->memstats_bytes = symbol->st_size;
	} else if (!strcmp(name, "runtime.waitReasonStrings")) {
		program->reasons = symbol->st_value;
		program->reason_count = symbol->st_size / STRING_BYTES;
	} else if (!strcmp(name, LABELS_FUNCTION)) {
		symbols->labels = symbol->st_value;
		symbols->labels_bytes = symbol->st_size;
	} else if (!strcmp(name, "runtime.tlsg") && ELF64_ST_TYPE(symbol->st_info) == STT_TLS) {
		program->g_at = tls_distance(symbols->elf) + (int64_t)symbol->st_value;
	}
}

#define PIECE_BYTES 65536
#define TABLE_ALIGNMENT 8
#define HEADS_MAX 4	       /* heads of tables tried in a search among other data */
#define LOADED_MAX (64u << 20) /* limit of a table that is read at once to look for names */
#define WORDS_MAX 8	       /* words after the head */
#define SECTION_NAMES_BYTES 4096
#define RECORD_STEPS 12
#define STEPS_BYTES_MAX 16384 /* bytes of one function's steps that are read */
#define DEPTH_MAX (256u << 20)
#define NONE UINT8_MAX
/* struct moduledata, which newer Go has in a section of its own (1.27; not 1.24). It begins with
 * the table's address; after that come six lists, three addresses, and the address of the code. */
#define MODULE_SECTION ".go.module"
#define MODULE_TEXT ((1 + 6 * 3 + 3) * sizeof(uint64_t))

/* The head is a magic number, two zeros, the smallest instruction, the bytes of a word, and then
 * words: the number of functions, of files, and where the parts of the table are. */
struct head {
	uint32_t magic;
	uint8_t zero[2], quantum, word_bytes;
};

/* Index of the word after the head for each part of the table. NONE: names and records count from
 * the table's begin, and the list of functions follows the first word. */
static const struct layout {
	uint32_t magic;
	uint8_t text, names, steps, functions;
	bool relative; /* the list has 32-bit distances from the begin of the code */
} layouts[] = {
	/* clang-format off */
	{0xfffffffb, NONE, NONE, NONE, NONE, false}, /* Go 1.2 */
	{0xfffffffa, NONE, 2,    5,    6,    false}, /* Go 1.16 */
	{0xfffffff0, 2,    3,    6,    7,    true},  /* Go 1.18 */
	{0xfffffff1, 2,    3,    6,    7,    true},  /* Go 1.20 */
	/* clang-format on */
};

/* Functions that begin threads, or that have switched stacks. */
static const struct {
	const char *name;
	bool may_return;
} end_names[] = {
	/* clang-format off */
	{"runtime.mcall",       false},
	{"runtime.clone",       false},
	{"runtime.systemstack", true},
	{"runtime.morestack",   true},
	{"runtime.mstart",      true},
	{"runtime.goexit",      true},
	{"runtime.rt0_go",      true},
	/* clang-format on */
};

#define END_NAMES (sizeof(end_names) / sizeof(end_names[0]))

/* Returns a little-endian number of 4 or 8 bytes. */
static uint64_t number_at(const char *at, size_t bytes)
{
	uint32_t narrow;
	uint64_t wide;

	if (bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

/* Reads a word of the module: an address, or what the dynamic linker will put there. 0: it is not
 * known. */
static uint64_t module_word(const struct elf_file *elf, const struct elf_section *module,
			    uint64_t at)
{
	uint64_t word = 0;

	if (at + sizeof(word) > module->bytes ||
	    elf_file_take(elf, module->offset + at, &word, sizeof(word)))
		return 0;
	return word ? word : relocation_find(elf, module->address + at);
}

/* Returns where the code of the module begins whose table is at that address. 0: it is not
 * known. */
static uint64_t module_text(const struct elf_file *elf, uint64_t table_address)
{
	struct elf_section module;

	if (elf->narrow || elf_file_section(elf, MODULE_SECTION, &module) ||
	    module_word(elf, &module, 0) != table_address)
		return 0;
	return module_word(elf, &module, MODULE_TEXT);
}

/* Finds the address where the code begins, from which the list counts: it is in the head, or in a
 * relocation of the head, or in the module, or is that of the section that the functions fill
 * exactly. */
static int text_find(struct go_table *table, const struct elf_file *elf, uint64_t reported,
		     const struct elf_section *section, uint64_t reported_at)
{
	struct elf_section text;
	char end[sizeof(uint32_t)];

	if (elf_file_section(elf, ".text", &text))
		return -EBADMSG;
	if (reported - text.address >= text.bytes)
		reported = relocation_find(elf, section->address + reported_at);
	if (reported - text.address >= text.bytes)
		reported = module_text(elf, section->address);
	if (reported - text.address >= text.bytes) {
		if (elf_file_take(elf, table->functions + table->count * 8, end, sizeof(end)) ||
		    number_at(end, sizeof(end)) != text.bytes)
			return -EBADMSG;
		reported = text.address;
	}
	table->text = reported;
	return 0;
}

static const struct layout *layout_find(const struct head *head)
{
	if (head->zero[0] || head->zero[1] ||
	    (head->quantum != 1 && head->quantum != 2 && head->quantum != 4) ||
	    (head->word_bytes != 4 && head->word_bytes != 8))
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].magic == head->magic)
			return &layouts[i];
	return NULL;
}

/* True if the list, and the function that ends it, lie within the table. */
static bool list_fits(const struct go_table *table)
{
	uint64_t end = table->offset + table->bytes, each = 2ull * table->address_bytes;

	return table->functions <= end && table->names <= end && table->count &&
	       table->count < (end - table->functions) / each;
}

/* Reads the table that section begins with. */
static int table_read(struct go_table *table, const struct elf_file *elf,
		      const struct elf_section *section)
{
	uint64_t word[WORDS_MAX] = {0};
	char bytes[WORDS_MAX * sizeof(uint64_t)];
	const struct layout *layout;
	struct head head;

	if (section->bytes < sizeof(head) + sizeof(bytes) ||
	    elf_file_take(elf, section->offset, &head, sizeof(head)) ||
	    elf_file_take(elf, section->offset + sizeof(head), bytes, sizeof(bytes)))
		return -EBADMSG;
	layout = layout_find(&head);
	if (!layout)
		return -EBADMSG;
	for (size_t i = 0; i < WORDS_MAX; i++)
		word[i] = number_at(bytes + i * head.word_bytes, head.word_bytes);
	*table = (struct go_table){.offset = section->offset,
				   .bytes = section->bytes,
				   .names = section->offset,
				   .records = section->offset,
				   .steps = section->offset,
				   .quantum = head.quantum,
				   .functions = section->offset + sizeof(head) + head.word_bytes,
				   .count = word[0],
				   .word_bytes = head.word_bytes,
				   .address_bytes = layout->relative ? 4 : head.word_bytes};
	table->start_bytes = table->address_bytes;
	if (layout->names != NONE) {
		if (word[layout->names] > section->bytes || word[layout->steps] > section->bytes ||
		    word[layout->functions] > section->bytes)
			return -EBADMSG;
		table->steps += word[layout->steps];
		table->names += word[layout->names];
		table->functions = table->records = section->offset + word[layout->functions];
	}
	if (!list_fits(table))
		return -EBADMSG;
	return layout->relative ? text_find(table, elf, word[layout->text], section,
					    sizeof(head) + (uint64_t)layout->text * head.word_bytes)
				: 0;
}

/* Finds the table among other data, where the linkers of C put that of position-independent
 * programs. */
static int merged_read(struct go_table *table, const struct elf_file *elf)
{
	struct elf_section section, at;
	char *piece;
	int err = -ENOENT, tries = 0;

	if (elf_file_section(elf, ".go.buildinfo", &at) ||
	    elf_file_section(elf, ".data.rel.ro", &section))
		return -ENOENT;
	piece = memory_get(PIECE_BYTES);
	for (at = section; err && tries < HEADS_MAX && at.bytes >= sizeof(struct head);) {
		size_t n = at.bytes < PIECE_BYTES ? at.bytes : PIECE_BYTES;

		if (elf_file_take(elf, at.offset, piece, n))
			break;
		for (size_t i = 0; err && i + sizeof(struct head) <= n; i += TABLE_ALIGNMENT) {
			struct elf_section rest = {.offset = at.offset + i,
						   .bytes = at.bytes - i,
						   .address = at.address + i};
			struct head head;

			memcpy(&head, piece + i, sizeof(head));
			if (layout_find(&head) && tries++ < HEADS_MAX)
				err = table_read(table, elf, &rest);
		}
		at.offset += n;
		at.address += n;
		at.bytes -= n;
	}
	free(piece);
	return err;
}

/* True if a section may have one of Go's names: one look at all names, for most files are not
 * Go's. */
static bool is_of_go(const struct elf_file *elf)
{
	char names[SECTION_NAMES_BYTES];
	struct elf_section section;

	if (elf_file_section_at(elf, elf->names_section, &section))
		return false;
	if (section.bytes > sizeof(names))
		return true; /* too many names to look at */
	return !elf_file_take(elf, section.offset, names, section.bytes) &&
	       (memmem(names, section.bytes, ".gopclntab", strlen(".gopclntab")) ||
		memmem(names, section.bytes, ".go.buildinfo", strlen(".go.buildinfo")));
}

int go_table_read(struct go_table *table, const struct elf_file *elf)
{
	struct elf_section section;

	if (!is_of_go(elf))
		return -ENOENT;

	if (elf_file_section(elf, ".gopclntab", &section) &&
	    elf_file_section(elf, ".data.rel.ro.gopclntab", &section))
		return merged_read(table, elf);
	return table_read(table, elf, &section);
}

/* Callback for a function of the list. */
typedef void function_callback(void *of, uint64_t from, uint64_t to, uint64_t record);

static void functions_each(const struct go_table *table, const struct elf_file *elf,
			   function_callback *take, void *of)
{
	size_t word = table->address_bytes;
	struct elf_rows rows = {
		.elf = elf, .offset = table->functions, .left = table->count + 1, .each = 2 * word};
	const char *before = NULL, *entry;
	uint64_t from = 0, record = 0;

	/* a function ends where the next one begins; the last entry is only an end */
	for (; (entry = elf_rows_next(&rows)); before = entry) {
		uint64_t to = number_at(entry, word);

		if (before && from < to)
			take(of, table->text + from, table->text + to, record);
		from = to;
		record = number_at(entry + word, word);
	}
}

struct symbol_walk {
	struct symbol_table *to;
	unsigned int source;
};

static void function_take(void *of, uint64_t from, uint64_t to, uint64_t record)
{
	const struct symbol_walk *walk = of;

	symbol_add(walk->to, from, to - from, 0, walk->source, record);
}

void go_table_symbols(const struct go_table *table, const struct elf_file *elf,
		      struct symbol_table *to, unsigned int source)
{
	struct symbol_walk walk = {to, source};

	functions_each(table, elf, function_take, &walk);
}

/* Finds the name of a record's function. A record begins with the function's address, and then has
 * where the name is among names. */
static bool name_location(const struct go_table *table, const struct elf_file *elf, uint64_t record,
			  uint64_t *location, uint64_t *left)
{
	uint64_t end = table->offset + table->bytes;
	char bytes[sizeof(uint32_t)];
	uint32_t name;

	if (record > end - table->records ||
	    elf_file_take(elf, table->records + record + table->start_bytes, bytes, sizeof(bytes)))
		return false;
	name = (uint32_t)number_at(bytes, sizeof(bytes));
	if (name >= end - table->names)
		return false;
	*location = table->names + name;
	*left = end - *location;
	return true;
}

bool go_table_name(const struct go_table *table, const struct elf_file *elf, uint32_t record,
		   char *name, size_t size)
{
	uint64_t location, left;

	if (!name_location(table, elf, record, &location, &left))
		return false;
	if (left < size)
		size = left + 1;
	if (elf_file_take(elf, location, name, size - 1))
		return false;
	name[size - 1] = '\0';
	return *name;
}

bool go_table_find(const struct go_table *table, const struct elf_file *elf, uint64_t address,
		   struct go_function *function)
{
	size_t word = table->address_bytes, each = 2 * word;
	uint64_t low = 0, high = table->count;
	char entry[3 * sizeof(uint64_t)];

	/* the last function that does not begin after the address */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (elf_file_take(elf, table->functions + middle * each, entry, each + word))
			return false;
		if (table->text + number_at(entry, word) > address) {
			high = middle;
		} else if (table->text + number_at(entry + each, word) <= address) {
			low = middle + 1;
		} else {
			*function =
				(struct go_function){table->text + number_at(entry, word),
						     table->text + number_at(entry + each, word),
						     (uint32_t)number_at(entry + word, word)};
			return true;
		}
	}
	return false;
}

/* Reads a number of 7 bits a byte, the lowest first. */
static bool varint_take(const uint8_t **at, const uint8_t *end, uint32_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; *at < end && shift < 32; shift += 7) {
		uint8_t byte = *(*at)++;

		*number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Finds the depth at a distance from the function's begin. Steps are pairs: the change of the
 * depth, with its sign in the lowest bit, and for how many instructions the depth holds; 0 for the
 * first of a pair ends them. The depth begins at -1. */
static int32_t depth_find(const uint8_t *at, const uint8_t *end, uint64_t distance,
			  unsigned int quantum)
{
	uint32_t depth = UINT32_MAX, more, instructions;
	uint64_t reached = 0;
	bool first = true;

	while (varint_take(&at, end, &more) && (more || first) &&
	       varint_take(&at, end, &instructions)) {
		depth += more & 1 ? ~(more >> 1) : more >> 1;
		reached += (uint64_t)instructions * quantum;
		if (distance < reached)
			return depth <= DEPTH_MAX ? (int32_t)depth : -1;
		first = false;
	}
	return -1;
}

int32_t go_table_depth(const struct go_table *table, const struct elf_file *elf,
		       const struct go_function *function, uint64_t address)
{
	uint64_t end = table->offset + table->bytes, left;
	uint8_t steps[STEPS_BYTES_MAX];
	char bytes[sizeof(uint32_t)];
	uint32_t location;

	/* a record goes on with its name, its arguments, its end of deferred calls, and steps */
	if (function->record > end - table->records ||
	    elf_file_take(elf,
			  table->records + function->record + table->start_bytes + RECORD_STEPS,
			  bytes, sizeof(bytes)))
		return -1;
	location = (uint32_t)number_at(bytes, sizeof(bytes));
	if (!location || location >= end - table->steps)
		return -1;
	left = end - table->steps - location;
	if (left > sizeof(steps))
		left = sizeof(steps);
	if (elf_file_take(elf, table->steps + location, steps, left))
		return -1;
	return depth_find(steps, steps + left, address - function->from, table->quantum);
}

/* A table in memory, with offsets as if that were the file. */
struct loaded_table {
	struct go_table table;
	struct elf_file memory;
	char *bytes; /* owned */
};

/* False: there is nothing to free. */
static bool table_load(const struct go_table *table, const struct elf_file *elf,
		       struct loaded_table *loaded)
{
	char *bytes;

	if (table->bytes > LOADED_MAX)
		return false;
	bytes = memory_get(table->bytes);
	if (elf_file_take(elf, table->offset, bytes, table->bytes)) {
		free(bytes);
		return false;
	}
	*loaded = (struct loaded_table){.table = *table, .memory = {.fd = -1}, .bytes = bytes};
	loaded->memory.image = bytes;
	loaded->memory.bytes = table->bytes;
	loaded->table.offset = 0;
	loaded->table.names -= table->offset;
	loaded->table.records -= table->offset;
	loaded->table.functions -= table->offset;
	return true;
}

static bool name_is(const struct loaded_table *loaded, uint64_t location, uint64_t left,
		    const char *name)
{
	size_t bytes = strlen(name) + 1;

	return bytes <= left && !memcmp(loaded->bytes + location, name, bytes);
}

struct end_walk {
	struct loaded_table loaded;
	struct go_end *ends;
	size_t count;
};

static void end_take(void *of, uint64_t from, uint64_t to, uint64_t record)
{
	struct end_walk *walk = of;
	uint64_t location, left;

	if (walk->count == GO_ENDS_MAX ||
	    !name_location(&walk->loaded.table, &walk->loaded.memory, record, &location, &left))
		return;
	for (size_t i = 0; i < END_NAMES; i++) {
		if (name_is(&walk->loaded, location, left, end_names[i].name))
			walk->ends[walk->count++] =
				(struct go_end){from, to, end_names[i].may_return};
		if (walk->count == GO_ENDS_MAX)
			return;
	}
}

size_t go_table_ends(const struct go_table *table, const struct elf_file *elf,
		     struct go_end ends[GO_ENDS_MAX])
{
	struct end_walk walk = {.ends = ends};

	if (!table_load(table, elf, &walk.loaded))
		return 0;
	functions_each(&walk.loaded.table, &walk.loaded.memory, end_take, &walk);
	free(walk.loaded.bytes);
	return walk.count;
}

struct name_walk {
	struct loaded_table loaded;
	const char *name;
	uint64_t from, to;
};

static void name_take(void *of, uint64_t from, uint64_t to, uint64_t record)
{
	struct name_walk *walk = of;
	uint64_t location, left;

	if (!walk->to &&
	    name_location(&walk->loaded.table, &walk->loaded.memory, record, &location, &left) &&
	    name_is(&walk->loaded, location, left, walk->name)) {
		walk->from = from;
		walk->to = to;
	}
}

/* Finds the function of that name in the program's table. *bytes is 0: there is none. */
static void function_find(const struct elf_file *elf, const char *name, uint64_t *from,
			  uint64_t *bytes)
{
	struct name_walk walk = {.name = name};
	struct go_table table;

	if (!go_table_read(&table, elf) && table_load(&table, elf, &walk.loaded)) {
		functions_each(&walk.loaded.table, &walk.loaded.memory, name_take, &walk);
		free(walk.loaded.bytes);
	}
	*from = walk.from;
	*bytes = walk.to - walk.from;
}

/* Returns the register that the instruction loads a word of thread-local storage into: a thread's
 * g. -1: it is another one. */
static int storage_load(const unsigned char code[4])
{
	return code[0] == 0x64 && (code[1] & 0xfb) == 0x48 && code[2] == 0x8b && code[3] >> 6 == 0
		       ? (code[1] & 4) << 1 | (code[3] >> 3 & 7)
		       : -1;
}

/* Finds the member of the thread's g that the function stores to: mov %rax,labels(g), or, for the
 * barrier, before it stores by another register, mov labels(g),%rcx or lea labels(g),%rdi. It has
 * no other one at such a distance. g: registers with the thread's g, a bit each. */
static void labels_find(const struct symbols *symbols, unsigned int g)
{
	unsigned char code[LABELS_CODE_BYTES];
	uint64_t offset, left, bytes = symbols->labels_bytes;
	int32_t at, found = 0;

	bytes = bytes < sizeof(code) ? bytes : sizeof(code);
	if (!symbols->labels || !elf_offset_of(symbols->elf, symbols->labels, &offset, &left) ||
	    bytes > left || elf_file_take(symbols->elf, offset, code, bytes))
		return;
	for (size_t i = 0; i + 3 + sizeof(at) <= bytes; i++) {
		const unsigned int base = (code[i] & 1u) << 3 | (code[i + 2] & 7u);
		int loaded = storage_load(code + i);

		if (loaded >= 0)
			g |= 1u << loaded;
		/* base 4 is a form with an index */
		if ((code[i] & 0xf8) != 0x48 ||
		    (code[i + 1] != 0x89 && code[i + 1] != 0x8b && code[i + 1] != 0x8d) ||
		    code[i + 2] >> 6 != 2 || (base & 7) == 4 || !(g >> base & 1))
			continue;
		memcpy(&at, code + i + 3, sizeof(at));
		if (found && at != found)
			return;
		found = at;
	}
	if (found > 0 && found < LABELS_AT_MAX && found % 8 == 0)
		symbols->program->labels_at = (uint32_t)found;
}

int go_program_read(struct go_program *program, const struct elf_file *elf)
{
	unsigned int minor;
	struct symbols symbols = {.program = program, .elf = elf};
	struct elf_section section;

	memset(program, 0, sizeof(*program));
	if (elf_file_section(elf, ".go.buildinfo", &section))
		return -ENOENT;
	version_read(program, elf, &section);
	program->g_at = G_WITHOUT_SYMBOL;
	if (!elf->narrow)
		elf_file_symbols(elf, ".symtab", symbol_take, &symbols, &section);
	minor = version_minor(program->version);
	if (!program->list && minor < REGISTER_SINCE) {
		program->list = symbols.slice;
		program->count = symbols.slice ? symbols.slice + sizeof(uint64_t) : 0;
	}
	if (!program->has_symbols)
		function_find(elf, LABELS_FUNCTION, &symbols.labels, &symbols.labels_bytes);
	if (elf->machine == EM_X86_64 && minor)
		labels_find(&symbols, minor >= REGISTER_SINCE ? 1u << REGISTER_G : 0);
	program->labels_listed = minor >= LISTS_SINCE;
	return 0;
}
