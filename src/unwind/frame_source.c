/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_source.h"
#include "base/memory.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef TSNAP_HAS_UNWINDER
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>

/* --- programs: libdw runs them, and takes memory for the highest register number that one names
 * and for each state that it remembers; so it is never given one that breaks the limits of
 * frame_source.h. */

#define LEB128_BYTES_MAX 10

/* Operands of each instruction without an operand in its upper bits. r: a register that gets a
 * rule; n: another number; b: a block of that many bytes; a digit: that many bytes; < and >:
 * remembers and restores a state. DW_CFA_set_loc, which nobody writes into .eh_frame, is not among
 * them. */
/* clang-format off */
static const char *const operands[1 << 6] = {
	[DW_CFA_nop]			      = "",
	[DW_CFA_advance_loc1]		      = "1",
	[DW_CFA_advance_loc2]		      = "2",
	[DW_CFA_advance_loc4]		      = "4",
	[DW_CFA_offset_extended]	      = "rn",
	[DW_CFA_restore_extended]	      = "r",
	[DW_CFA_undefined]		      = "r",
	[DW_CFA_same_value]		      = "r",
	[DW_CFA_register]		      = "rn",
	[DW_CFA_remember_state]		      = "<",
	[DW_CFA_restore_state]		      = ">",
	[DW_CFA_def_cfa]		      = "nn",
	[DW_CFA_def_cfa_register]	      = "n",
	[DW_CFA_def_cfa_offset]		      = "n",
	[DW_CFA_def_cfa_expression]	      = "b",
	[DW_CFA_expression]		      = "rb",
	[DW_CFA_offset_extended_sf]	      = "rn",
	[DW_CFA_def_cfa_sf]		      = "nn",
	[DW_CFA_def_cfa_offset_sf]	      = "n",
	[DW_CFA_val_offset]		      = "rn",
	[DW_CFA_val_offset_sf]		      = "rn",
	[DW_CFA_val_expression]		      = "rb",
	[DW_CFA_MIPS_advance_loc8]	      = "8",
	[0x2c /* arm64: return addresses that are signed with their place (2024) */] = "",
	[DW_CFA_GNU_window_save]	      = "", /* arm64: signed return addresses */
	[DW_CFA_GNU_args_size]		      = "n",
	[DW_CFA_GNU_negative_offset_extended] = "rn",
};
/* clang-format on */

/* Reads a number of DWARF's (LEB128), signed or not; *at is after it then. False: the number does
 * not end before end, or within 10 bytes. */
static bool leb128_take(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < LEB128_BYTES_MAX && *at < end; i++) {
		uint8_t byte = *(*at)++;

		*value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool bytes_skip(const uint8_t **at, const uint8_t *end, uint64_t bytes)
{
	if (bytes > (uint64_t)(end - *at))
		return false;
	*at += bytes;
	return true;
}

static bool operand_skip(char kind, const uint8_t **at, const uint8_t *end, uint32_t *states)
{
	uint64_t value;

	switch (kind) {
	case '<':
		return ++*states <= FRAME_PROGRAM_STATES;
	case '>':
		return (*states)-- > 0;
	case 'r':
		return leb128_take(at, end, &value) && value < FRAME_PROGRAM_REGISTERS;
	case 'n':
		return leb128_take(at, end, &value);
	case 'b':
		return leb128_take(at, end, &value) && value <= FRAME_PROGRAM_EXPRESSION_BYTES &&
		       bytes_skip(at, end, value);
	default:
		return bytes_skip(at, end, (uint64_t)(kind - '0'));
	}
}

bool frame_program_fits(const uint8_t *at, const uint8_t *end)
{
	uint32_t states = 0;

	if (at > end || end - at > (ptrdiff_t)FRAME_PROGRAM_BYTES)
		return false;
	while (at < end) {
		uint8_t code = *at++;
		const char *kinds = operands[code & 0x3f];

		if (code & 0xc0)
			kinds = (code & 0xc0) == DW_CFA_offset ? "n" : "";
		if (!kinds)
			return false;
		for (; *kinds; kinds++)
			if (!operand_skip(*kinds, &at, end, &states))
				return false;
	}
	return true;
}

/* --- entries of .eh_frame: the one of an address (FDE) is found by the file's search table or,
 * where it has none, by an index that is made of all entries. Its program, and that of the CIE that
 * it begins with, must be such that libdw may run it. */

/* .eh_frame_hdr, as all linkers write it: version 1; the encodings of .eh_frame's address, of the
 * number of pairs and of the pairs; then these themselves. No linker writes other lengths than
 * 4. */
#define HDR_FRAMES_ENCODING 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define HDR_COUNT_ENCODING 0x03	 /* DW_EH_PE_udata4 */
#define HDR_TABLE_ENCODING 0x3b	 /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define HDR_BYTES 12
#define PAIR_BYTES 8

#define ENCODING_WIDTH 0x07
#define ENCODING_SIGNED 0x08
#define ENCODING_BASE 0x70
#define ENCODING_PCREL 0x10
#define ENCODING_INDIRECT 0x80

#define FRAME_INDEX_MAX 131072 /* entries of a file without a search table */

struct frame_entry {
	uint64_t address; /* address of the function */
	uint64_t offset;  /* offset from .eh_frame's beginning */
};

struct frame_entries {
	const unsigned char *ident; /* the ELF file's e_ident */
	bool narrow;
	uint64_t address; /* address of .eh_frame */
	Elf_Data data;	  /* .eh_frame, to the end of what there is */
	/* Search table: pairs of 32-bit numbers, relative to table_address */
	const uint8_t *table;
	uint64_t table_address;
	size_t table_count;
	/* Index that replaces a missing search table, in order of address. */
	struct frame_entry *index;
	size_t index_count, index_capacity;
	/* CIE that was looked at last. */
	uint64_t cie_offset; /* UINT64_MAX: none was looked at */
	bool cie_fits, cie_sized;
	uint8_t encoding; /* encoding of addresses in the CIE's FDEs */
};

static uint64_t signed_at(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return (uint64_t)(int64_t)value;
}

/* Returns the width of an encoded address. 0: tables have no such width. */
static size_t encoding_bytes(const struct frame_entries *entries, uint8_t encoding)
{
	static const uint8_t widths[ENCODING_WIDTH + 1] = {
		[DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4, [DW_EH_PE_udata8] = 8};

	if ((encoding & ENCODING_WIDTH) == DW_EH_PE_absptr)
		return entries->narrow ? 4 : 8;
	return widths[encoding & ENCODING_WIDTH];
}

static bool encoding_known(uint8_t encoding)
{
	uint8_t base = encoding & ENCODING_BASE;

	return !(encoding & ENCODING_INDIRECT) && (!base || base == ENCODING_PCREL);
}

/* Reads the letters of a CIE's augmentation and their data. R: encoding of addresses in FDEs; P:
 * the personality, an encoded address; L: encoding of the addresses of FDEs' data; S, B and G have
 * no data. libdw stops at what it does not know, which may be B and G: none of these may come
 * before R. */
static bool augmentation_take(struct frame_entries *entries, const Dwarf_CIE *cie)
{
	const uint8_t *at = cie->augmentation_data;
	const uint8_t *end;
	const char *letter = cie->augmentation;
	bool ended = false;

	entries->encoding = DW_EH_PE_absptr;
	entries->cie_sized = *letter == 'z';
	if (!*letter)
		return true;
	if (*letter != 'z' || !at)
		return false;
	end = at + cie->augmentation_data_size;
	while (*++letter) {
		size_t bytes = 0;

		if (strchr("RPL", *letter) && (ended || at >= end))
			return false;
		if (*letter == 'P')
			bytes = encoding_bytes(entries, *at);
		if (*letter == 'R')
			entries->encoding = *at;
		if ((*letter == 'P' && (!bytes || bytes >= (size_t)(end - at))) ||
		    !strchr("RPLSBG", *letter))
			return false;
		ended = ended || strchr("BG", *letter);
		at += strchr("RPL", *letter) ? bytes + 1 : 0;
	}
	return encoding_known(entries->encoding) && encoding_bytes(entries, entries->encoding);
}

static bool cie_take(struct frame_entries *entries, uint64_t offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (entries->cie_offset == offset)
		return entries->cie_fits;
	entries->cie_offset = offset;
	entries->cie_fits =
		offset < entries->data.d_size &&
		!dwarf_next_cfi(entries->ident, &entries->data, true, offset, &next, &entry) &&
		dwarf_cfi_cie_p(&entry) &&
		entry.cie.return_address_register < FRAME_PROGRAM_REGISTERS &&
		augmentation_take(entries, &entry.cie) &&
		frame_program_fits(entry.cie.initial_instructions,
				   entry.cie.initial_instructions_end);
	return entries->cie_fits;
}

/* True if libdw may run the FDE's program, and that of its CIE. */
static bool fde_fits(struct frame_entries *entries, const Dwarf_FDE *fde)
{
	const uint8_t *at = fde->start;
	uint64_t bytes = 0;

	if (!cie_take(entries, fde->CIE_pointer))
		return false;
	bytes = 2 * encoding_bytes(entries, entries->encoding);
	if (bytes > (uint64_t)(fde->end - at))
		return false;
	at += bytes;
	if (entries->cie_sized &&
	    (!leb128_take(&at, fde->end, &bytes) || bytes > (uint64_t)(fde->end - at)))
		return false;
	return frame_program_fits(at + (entries->cie_sized ? bytes : 0), fde->end);
}

static bool fde_address(struct frame_entries *entries, const Dwarf_FDE *fde, uint64_t *address)
{
	size_t bytes;

	if (!cie_take(entries, fde->CIE_pointer))
		return false;
	bytes = encoding_bytes(entries, entries->encoding);
	if (bytes > (size_t)(fde->end - fde->start))
		return false;
	*address = 0;
	memcpy(address, fde->start, bytes);
	if (entries->encoding & ENCODING_SIGNED && bytes < 8 && *address >> (8 * bytes - 1) & 1)
		*address |= ~0ull << (8 * bytes);
	if ((entries->encoding & ENCODING_BASE) == ENCODING_PCREL)
		*address += entries->address +
			    (uint64_t)(fde->start - (const uint8_t *)entries->data.d_buf);
	if (entries->narrow)
		*address &= UINT32_MAX;
	return true;
}

static int entry_compare(const void *a, const void *b)
{
	const struct frame_entry *one = a, *two = b;

	return (one->address > two->address) - (one->address < two->address);
}

static int index_make(struct frame_entries *entries)
{
	Dwarf_Off at = 0, next;
	Dwarf_CFI_Entry entry;
	uint64_t address;

	/* got is 1 at the end, -1 (with next) for what is no entry */
	for (int got = 0; got <= 0 && at < entries->data.d_size; at = next) {
		next = at;
		got = dwarf_next_cfi(entries->ident, &entries->data, true, at, &next, &entry);
		if (next <= at)
			break;
		if (got || dwarf_cfi_cie_p(&entry) || !fde_address(entries, &entry.fde, &address))
			continue;
		if (entries->index_count == FRAME_INDEX_MAX)
			return -EFBIG;
		entries->index = memory_grow(entries->index, &entries->index_capacity,
					     entries->index_count + 1, sizeof(*entries->index));
		entries->index[entries->index_count++] = (struct frame_entry){address, at};
	}
	if (!entries->index_count)
		return -ENOENT;
	qsort(entries->index, entries->index_count, sizeof(*entries->index), entry_compare);
	return 0;
}

/* Finds .eh_frame by the search table, and the table's pairs. 0 or -errno. */
static int table_open(struct frame_entries *entries, const char *image, const struct elf_file *elf)
{
	const struct elf_segment *unwind = &elf->unwind;
	const uint8_t *hdr = (const uint8_t *)image + unwind->offset;
	uint64_t distance, offset;
	uint32_t count;

	if (!image || unwind->file_bytes < HDR_BYTES || hdr[0] != 1 ||
	    hdr[1] != HDR_FRAMES_ENCODING)
		return -EBADMSG;
	distance = signed_at(hdr + 4) + 4; /* distance from the search table */
	offset = unwind->offset + distance;
	if (offset >= elf->bytes)
		return -EBADMSG;
	entries->address = unwind->address + distance;
	entries->data.d_buf = (char *)image + offset;
	entries->data.d_size = elf->bytes - offset;
	if (hdr[2] != HDR_COUNT_ENCODING || hdr[3] != HDR_TABLE_ENCODING)
		return index_make(entries);
	memcpy(&count, hdr + 8, sizeof(count));
	if (!count || count > (unwind->file_bytes - HDR_BYTES) / PAIR_BYTES)
		return -EBADMSG;
	entries->table = hdr + HDR_BYTES;
	entries->table_count = count;
	entries->table_address = unwind->address;
	return 0;
}

/* Finds the tables of a file. image: the file's bytes, as far as they were read: its header and the
 * search table (elf->unwind), or, where unwind.file_bytes is 0, .eh_frame. Returns 0 or -errno. */
static int frame_entries_open(struct frame_entries *entries, const char *image,
			      const struct elf_file *elf, const struct elf_section *section)
{
	int err;

	*entries = (struct frame_entries){.ident = (const unsigned char *)image,
					  .narrow = elf->narrow,
					  .cie_offset = UINT64_MAX};
	entries->data.d_version = EV_CURRENT;
	if (elf->unwind.file_bytes) {
		err = table_open(entries, image, elf);
	} else {
		entries->address = section->address;
		entries->data.d_buf = (char *)image + section->offset;
		entries->data.d_size = section->bytes;
		err = index_make(entries);
	}
	return err;
}

static struct frame_entry pair_at(const struct frame_entries *entries, size_t at)
{
	uint64_t mask = entries->narrow ? UINT32_MAX : UINT64_MAX;
	const uint8_t *pair;

	if (!entries->table)
		return entries->index[at];
	pair = entries->table + at * PAIR_BYTES;
	return (struct frame_entry){(entries->table_address + signed_at(pair)) & mask,
				    entries->table_address + signed_at(pair + 4) -
					    entries->address};
}

/* Finds the entry that is nearest below an address, if libdw may run it. Returns 0 or -ENOENT. */
static int frame_entries_find(struct frame_entries *entries, uint64_t address,
			      struct frame_entry *entry)
{
	size_t low = 0, high = entries->table ? entries->table_count : entries->index_count;
	Dwarf_CFI_Entry found;
	Dwarf_Off next;

	/* the last pair that is not above the address */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pair_at(entries, middle).address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	*entry = pair_at(entries, low - 1);
	if (entry->offset >= entries->data.d_size ||
	    dwarf_next_cfi(entries->ident, &entries->data, true, entry->offset, &next, &found) ||
	    dwarf_cfi_cie_p(&found))
		return -ENOENT;
	return fde_fits(entries, &found.fde) ? 0 : -ENOENT;
}

/* --- rows */

#define IMAGE_BYTES_MAX (16ull << 30) /* limit of address space; unread parts take no memory */
#define HEAD_BYTES 4096		      /* first bytes of a file, with the ELF header */
#define TABLE_BYTES_MAX (96u << 20)   /* .eh_frame; the largest browsers have a third of it */
#define OPERATIONS_MAX 256	      /* length of one expression */

/* All that libdw gets to see of a file beside .eh_frame: a search table (PT_GNU_EH_FRAME) with one
 * entry, which is always the one to be run. What libdw would find by itself in a hostile file has
 * not been looked at. */
struct search {
	uint8_t version, frames_encoding, count_encoding, table_encoding;
	uint64_t frames; /* address of .eh_frame */
	uint32_t count;	 /* number of pairs that follow */
	uint64_t address, entry;
} __attribute__((packed));

struct view {
	union {
		Elf64_Phdr wide;
		Elf32_Phdr narrow;
	};
	struct search search;
};

struct frame_source {
	/* Copy of the file, as large as it, but read only in part, the rest zeros: otherwise libelf
	 * maps files, and their owner could cut them. The view lies after the file's bytes. */
	char *image;
	size_t image_bytes, file_bytes, read_bytes;
	struct view *view;
	struct frame_entries entries;
	Elf *elf;
	Dwarf_CFI *cfi;
};

/* Makes a part writable: from there on it counts as memory (RLIMIT_DATA). */
static int piece_allow(struct frame_source *source, uint64_t offset, uint64_t bytes)
{
	uint64_t page = (uint64_t)getpagesize(), from = offset / page * page;

	return mprotect(source->image + from, offset + bytes - from, PROT_READ | PROT_WRITE)
		       ? -errno
		       : 0;
}

/* Reads a part of the file into the image. */
static int piece_read(struct frame_source *source, const struct elf_file *elf, uint64_t offset,
		      uint64_t bytes)
{
	int err;

	if (bytes > TABLE_BYTES_MAX || offset > source->file_bytes ||
	    bytes > source->file_bytes - offset)
		return -EFBIG;
	err = piece_allow(source, offset, bytes);
	if (!err)
		err = elf_file_take(elf, offset, source->image + offset, bytes);
	source->read_bytes += bytes;
	return err;
}

/* Returns the part of a file that may have .eh_frame, without its section: from where the search
 * table says to the end of its segment at most. It lies after the search table or right before
 * it. */
static const struct elf_segment *frames_segment(const struct elf_file *elf)
{
	for (uint32_t i = 0; i < elf->segment_count; i++)
		if (elf->unwind.offset - elf->segments[i].offset < elf->segments[i].file_bytes)
			return &elf->segments[i];
	return NULL;
}

/* Reads the tables of a file. With a search table (PT_GNU_EH_FRAME) no sections are needed. */
static int tables_read(struct frame_source *source, const struct elf_file *elf)
{
	const bool searched = elf->unwind.file_bytes;
	const struct elf_segment *segment = searched ? frames_segment(elf) : NULL;
	struct elf_section section = {0};
	int err =
		searched ? piece_read(source, elf, elf->unwind.offset, elf->unwind.file_bytes) : 0;

	if (err)
		return err;
	if (!elf_file_section(elf, ".eh_frame", &section))
		err = piece_read(source, elf, section.offset, section.bytes);
	else
		err = segment ? piece_read(source, elf, segment->offset, segment->file_bytes)
			      : -ENOENT;
	return err ? err : frame_entries_open(&source->entries, source->image, elf, &section);
}

/* Makes the file as libdw sees it: the program headers are all made here, and there are no
 * sections. */
static void view_make(struct frame_source *source, const struct elf_file *elf)
{
	const struct frame_entries *entries = &source->entries;
	struct view *view = source->view;
	uint64_t at = (uint64_t)((char *)view - source->image);
	uint64_t offset = at + offsetof(struct view, search);
	uint64_t frames = (uint64_t)((char *)entries->data.d_buf - source->image);

	view->search = (struct search){.version = 1,
				       .frames_encoding = DW_EH_PE_udata8,
				       .count_encoding = DW_EH_PE_udata4,
				       .table_encoding = DW_EH_PE_udata8,
				       .frames = entries->address,
				       .count = 1};
	if (elf->narrow) {
		Elf32_Ehdr *header = (Elf32_Ehdr *)source->image;

		view->narrow =
			(Elf32_Phdr){.p_type = PT_GNU_EH_FRAME,
				     .p_offset = (Elf32_Off)offset,
				     .p_vaddr = (Elf32_Addr)(entries->address - frames + offset),
				     .p_filesz = sizeof(view->search)};
		header->e_phoff = (Elf32_Off)at;
		header->e_phentsize = sizeof(view->narrow);
		header->e_phnum = 1;
		header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
	} else {
		Elf64_Ehdr *header = (Elf64_Ehdr *)source->image;

		view->wide = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
					  .p_offset = offset,
					  .p_vaddr = entries->address - frames + offset,
					  .p_filesz = sizeof(view->search)};
		header->e_phoff = at;
		header->e_phentsize = sizeof(view->wide);
		header->e_phnum = 1;
		header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
	}
}

static int image_make(struct frame_source *source, const struct elf_file *elf)
{
	const uint64_t view_at = (elf->bytes + 7) / 8 * 8;
	int err;

	if (elf->bytes > (elf->narrow ? INT32_MAX : IMAGE_BYTES_MAX))
		return -EFBIG;
	source->file_bytes = elf->bytes;
	source->image_bytes = view_at + sizeof(*source->view);
	source->image = mmap(NULL, source->image_bytes, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (source->image == MAP_FAILED) {
		source->image = NULL;
		return -errno;
	}
	source->view = (struct view *)(source->image + view_at);
	err = piece_allow(source, view_at, sizeof(*source->view));
	return err ? err
		   : piece_read(source, elf, 0, elf->bytes < HEAD_BYTES ? elf->bytes : HEAD_BYTES);
}

struct frame_source *frame_source_open(const struct elf_file *elf)
{
	struct frame_source *source = memory_get(sizeof(*source));
	int err = image_make(source, elf);

	elf_version(EV_CURRENT);
	if (!err)
		err = tables_read(source, elf);
	if (!err) {
		view_make(source, elf);
		source->elf = elf_memory(source->image, source->image_bytes);
	}
	if (source->elf)
		source->cfi = dwarf_getcfi_elf(source->elf);
	if (source->cfi)
		return source;
	frame_source_close(source);
	return NULL;
}

void frame_source_close(struct frame_source *source)
{
	if (!source)
		return;
	if (source->cfi)
		dwarf_cfi_end(source->cfi);
	if (source->elf)
		elf_end(source->elf);
	free(source->entries.index);
	if (source->image)
		munmap(source->image, source->image_bytes);
	free(source);
}

size_t frame_source_bytes(const struct frame_source *source)
{
	return source->read_bytes + source->entries.index_capacity * sizeof(*source->entries.index);
}

static int expression_keep(struct frame_operations *to, const Dwarf_Op *operations, size_t count,
			   uint8_t kind, struct frame_rule *rule)
{
	if (!count || count > OPERATIONS_MAX || count > ROW_OPERATIONS_MAX - to->count)
		return -ENOENT;
	*rule = (struct frame_rule){
		.kind = kind, .count = (uint16_t)count, .offset = (int32_t)to->count};
	for (size_t i = 0; i < count; i++)
		to->all[to->count++] =
			(struct frame_operation){operations[i].atom, operations[i].number,
						 operations[i].number2, operations[i].offset};
	return 0;
}

static bool offset_fits(uint64_t number)
{
	return (int64_t)number >= INT32_MIN && (int64_t)number <= INT32_MAX;
}

/* Reads the register and offset of an operation that adds the two. */
static bool is_base_offset(const Dwarf_Op *operation, struct frame_rule *rule)
{
	uint64_t number = operation->atom - DW_OP_breg0, offset = operation->number;

	if (operation->atom == DW_OP_bregx) {
		number = operation->number;
		offset = operation->number2;
	} else if (operation->atom < DW_OP_breg0 || operation->atom > DW_OP_breg31) {
		return false;
	}
	if (number > 31 || !offset_fits(offset))
		return false;
	*rule = (struct frame_rule){
		.kind = RULE_REGISTER, .number = (uint8_t)number, .offset = (int32_t)offset};
	return true;
}

/* Reads a register's rule. Operations of dwarf_frame_register() begin with the CFA in all forms but
 * a register's. */
static int rule_read(Dwarf_Frame *frame, int number, struct frame_operations *to,
		     struct frame_rule *rule)
{
	Dwarf_Op memory[3], *operations;
	size_t count;
	bool value;

	if (dwarf_frame_register(frame, number, memory, &operations, &count))
		return -ENOENT;
	*rule = (struct frame_rule){.kind = operations ? RULE_UNDEFINED : RULE_SAME};
	if (!count || !operations)
		return 0;
	value = operations[count - 1].atom == DW_OP_stack_value;
	count -= value;
	if (count == 1 && operations[0].atom >= DW_OP_reg0 && operations[0].atom <= DW_OP_reg31) {
		*rule = (struct frame_rule){.kind = RULE_REGISTER,
					    .number = (uint8_t)(operations[0].atom - DW_OP_reg0)};
		return 0;
	}
	if (count == 1 && operations[0].atom == DW_OP_regx && operations[0].number <= 31) {
		*rule = (struct frame_rule){.kind = RULE_REGISTER,
					    .number = (uint8_t)operations[0].number};
		return 0;
	}
	if (count && count <= 2 && operations[0].atom == DW_OP_call_frame_cfa &&
	    (count == 1 ||
	     (operations[1].atom == DW_OP_plus_uconst && offset_fits(operations[1].number)))) {
		*rule = (struct frame_rule){.kind = value ? RULE_CFA : RULE_AT_CFA};
		if (count == 2)
			rule->offset = (int32_t)operations[1].number;
		return 0;
	}
	return expression_keep(to, operations, count, value ? RULE_EXPRESSION : RULE_AT, rule);
}

static int cfa_read(Dwarf_Frame *frame, struct frame_operations *to, struct frame_rule *rule)
{
	Dwarf_Op *operations;
	size_t count;

	if (dwarf_frame_cfa(frame, &operations, &count) || !count)
		return -ENOENT;
	if (count == 1 && is_base_offset(operations, rule))
		return 0;
	return expression_keep(to, operations, count, RULE_EXPRESSION, rule);
}

int frame_source_row(struct frame_source *source, const struct machine *machine,
		     struct frame_operations *operations, uint64_t address, struct frame_row *row)
{
	struct search *search = &source->view->search;
	struct frame_entry entry;
	Dwarf_Frame *frame;
	int err, ra;

	if (frame_entries_find(&source->entries, address, &entry))
		return -ENOENT;
	search->address = 0; /* below all addresses; libdw reads the entry's range itself */
	search->entry = source->entries.address + entry.offset;
	if (dwarf_cfi_addrframe(source->cfi, address, &frame))
		return -ENOENT;
	ra = dwarf_frame_info(frame, NULL, NULL, &row->signal);
	/* arm64's tables may give a caller's address a column of its own after signals */
	err = ra < 0 ? -ENOENT : cfa_read(frame, operations, &row->cfa);
	if (!err)
		err = rule_read(frame, ra, operations, &row->ra);
	for (int i = 0; i < machine->saved_count && !err; i++)
		err = rule_read(frame, machine->saved[i], operations, &row->saved[i]);
	/* libdw's x86_64_cfi.c says rax where it means that functions give rbx back; no table says
	 * by itself that rbx is lost */
	if (machine->elf == EM_X86_64 && row->saved[0].kind == RULE_UNDEFINED)
		row->saved[0].kind = RULE_SAME;
	row->begin = entry.address;
	row->found = !err;
	free(frame);
	return err;
}
#else
bool frame_program_fits(const uint8_t *at, const uint8_t *end)
{
	(void)at;
	(void)end;
	return false;
}

struct frame_source *frame_source_open(const struct elf_file *elf)
{
	(void)elf;
	return NULL;
}

void frame_source_close(struct frame_source *source)
{
	(void)source;
}

size_t frame_source_bytes(const struct frame_source *source)
{
	(void)source;
	return 0;
}

int frame_source_row(struct frame_source *source, const struct machine *machine,
		     struct frame_operations *operations, uint64_t address, struct frame_row *row)
{
	(void)source;
	(void)machine;
	(void)operations;
	(void)address;
	(void)row;
	return -ENOENT;
}
#endif
