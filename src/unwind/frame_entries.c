/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_entries.h"
#include "base/memory.h"
#include "unwind/frame_program.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

	if (unwind->file_bytes < HDR_BYTES || hdr[0] != 1 || hdr[1] != HDR_FRAMES_ENCODING)
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

int frame_entries_open(struct frame_entries *entries, const char *image, const struct elf_file *elf,
		       const struct elf_section *section)
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
	if (err)
		frame_entries_done(entries);
	return err;
}

void frame_entries_done(struct frame_entries *entries)
{
	free(entries->index);
	entries->index = NULL;
	entries->index_count = entries->index_capacity = 0;
}

size_t frame_entries_bytes(const struct frame_entries *entries)
{
	return entries->index_capacity * sizeof(*entries->index);
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

int frame_entries_find(struct frame_entries *entries, uint64_t address, struct frame_entry *entry)
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
