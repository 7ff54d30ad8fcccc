/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_source.h"
#include "base/memory.h"
#include "unwind/frame_entries.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMAGE_BYTES_MAX (16ull << 30) /* limit of address space; unread parts take no memory \ */
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

static int piece_read(struct frame_source *source, const struct elf_file *elf, uint64_t offset,
		      uint64_t bytes, uint64_t most)
{
	int err;

	if (bytes > most || offset > source->file_bytes || bytes > source->file_bytes - offset)
		return -EFBIG;
	err = piece_allow(source, offset, bytes);
	if (!err)
		err = elf_file_take(elf, offset, source->image + offset, bytes);
	source->read_bytes += bytes;
	return err;
}

static int head_read(struct frame_source *source, const struct elf_file *elf)
{
	uint64_t bytes = elf->bytes < HEAD_BYTES ? elf->bytes : HEAD_BYTES;

	return piece_read(source, elf, 0, bytes, HEAD_BYTES);
}

/* Reads the tables of a file with a search table (PT_GNU_EH_FRAME). No sections are needed:
 * .eh_frame reaches from where the search table says to the end of its segment at most. It lies
 * after the search table or right before it. */
static int searched_read(struct frame_source *source, const struct elf_file *elf)
{
	const struct elf_segment *unwind = &elf->unwind;
	struct elf_section section;
	int err;

	err = piece_read(source, elf, unwind->offset, unwind->file_bytes, TABLE_BYTES_MAX);
	if (err)
		return err;
	if (!elf_file_section(elf, ".eh_frame", &section))
		return piece_read(source, elf, section.offset, section.bytes, TABLE_BYTES_MAX);
	for (uint32_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (unwind->offset < segment->offset ||
		    unwind->offset - segment->offset >= segment->file_bytes)
			continue;
		return piece_read(source, elf, segment->offset, segment->file_bytes,
				  TABLE_BYTES_MAX);
	}
	return -ENOENT;
}

/* Reads the tables of a file. Without a search table .eh_frame is found by its section. */
static int tables_read(struct frame_source *source, const struct elf_file *elf)
{
	struct elf_section section = {0};
	int err;

	if (elf->unwind.file_bytes) {
		err = searched_read(source, elf);
	} else {
		err = elf_file_section(elf, ".eh_frame", &section);
		if (!err)
			err = piece_read(source, elf, section.offset, section.bytes,
					 TABLE_BYTES_MAX);
	}
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
	return err ? err : head_read(source, elf);
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
	frame_entries_done(&source->entries);
	if (source->image)
		munmap(source->image, source->image_bytes);
	free(source);
}

size_t frame_source_bytes(const struct frame_source *source)
{
	return source->read_bytes + frame_entries_bytes(&source->entries);
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
	row->found = !err;
	free(frame);
	return err;
}
