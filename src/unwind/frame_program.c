/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_program.h"

#include <dwarf.h>
#include <stddef.h>

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

bool leb128_take(const uint8_t **at, const uint8_t *end, uint64_t *value)
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
