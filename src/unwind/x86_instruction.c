/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/x86_instruction.h"

#include <string.h>

/* Operands after an opcode, one letter an opcode:
 * .  nothing		b w d q  an immediate of 1, 2, 4 (2 after 66) or, with REX.W, 8 bytes
 * m  ModRM		i I	 ModRM and an immediate of 1, of 4 bytes (2 after 66)
 * o  an address	g G	 ModRM, and if its reg is 0 or 1 an immediate of 1, of 4 bytes
 * x  none of these, or not made by compilers
 */
static const char one_byte[] = "mmmmbdxxmmmmbdxx" /* 00 */
			       "mmmmbdxxmmmmbdxx"
			       "mmmmbdxxmmmmbdxx"
			       "mmmmbdxxmmmmbdxx"
			       "xxxxxxxxxxxxxxxx" /* 40: REX */
			       "................"
			       "xxxmxxxxdIbi...."
			       "bbbbbbbbbbbbbbbb"
			       "iIximmmmmmmmmmmm" /* 80 */
			       "..........x.xx.."
			       "oooo....bd......"
			       "bbbbbbbbqqqqqqqq"
			       "iiw.xxiIx.xx.bxx" /* c0 */
			       "mmmmxxx.mmmmmmmm"
			       "bbbbbbbbddxb...."
			       "x.xx..gG......mm";
static const char two_bytes[] = "mmmmx.....x.xmxx" /* 0f 00 */
				"mmmmmmmmmmmmmmmm"
				"mmmmxxxxmmmmmmmm"
				"......x.xxxxxxxx"
				"mmmmmmmmmmmmmmmm" /* 0f 40 */
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"iiiimmm.mmxxmmmm"
				"dddddddddddddddd" /* 0f 80 */
				"mmmmmmmmmmmmmmmm"
				"xx.mimxxxxxmimmm"
				"mmmmmmmmmximmmmm"
				"mmimiiim........" /* 0f c0 */
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm";

/* Code that is read, and prefixes met so far. */
struct reader {
	const uint8_t *code;
	size_t count, at;
	bool short_operand; /* 66 */
	uint8_t rex;
};

static uint8_t byte_next(struct reader *reader)
{
	uint8_t byte = reader->at < reader->count ? reader->code[reader->at] : 0;

	reader->at++;
	return byte;
}

static int32_t number_next(struct reader *reader, size_t bytes)
{
	int32_t number = 0;

	if (reader->at + bytes <= reader->count)
		memcpy(&number, reader->code + reader->at, bytes < 4 ? bytes : 4);
	reader->at += bytes;
	return bytes == 1 ? (int8_t)number : bytes == 2 ? (int16_t)number : number;
}

static void modrm_next(struct reader *reader, struct x86_instruction *instruction)
{
	uint8_t byte = byte_next(reader), base = byte & 7, sib = 0;

	instruction->has_modrm = true;
	instruction->mode = byte >> 6;
	instruction->reg = (uint8_t)((byte >> 3 & 7) | (reader->rex & 4) << 1);
	instruction->rm = (uint8_t)((byte & 7) | (reader->rex & 1) << 3);
	if (instruction->mode == 3)
		return;
	if (base == 4) {
		sib = byte_next(reader);
		base = sib & 7;
		instruction->on_stack = sib == 0x24 && !(reader->rex & 3);
	}
	if (instruction->mode == 1)
		instruction->displacement = number_next(reader, 1);
	else if (instruction->mode == 2 || base == 5)
		instruction->displacement = number_next(reader, 4);
}

/* Reads a VEX prefix, which has the opcode's table. Its registers are no concern here. */
static void vector_next(struct reader *reader, bool short_form, struct x86_instruction *instruction)
{
	uint8_t byte = byte_next(reader);

	instruction->vector = true;
	instruction->map = short_form ? 1 : byte & 31;
	if (!short_form)
		byte_next(reader);
	instruction->opcode = byte_next(reader);
}

static void opcode_next(struct reader *reader, struct x86_instruction *instruction)
{
	uint8_t byte = byte_next(reader);

	/* prefixes: operand size, repeat, lock, segments */
	while (byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0xf0 || byte == 0x2e ||
	       byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65) {
		reader->short_operand = reader->short_operand || byte == 0x66;
		byte = byte_next(reader);
	}
	if ((byte & 0xf0) == 0x40) {
		reader->rex = byte;
		byte = byte_next(reader);
	}
	if (byte == 0xc4 || byte == 0xc5) {
		vector_next(reader, byte == 0xc5, instruction);
		return;
	}
	if (byte == 0x0f) {
		byte = byte_next(reader);
		instruction->map = byte == 0x38 ? 2 : byte == 0x3a ? 3 : 1;
		if (instruction->map > 1)
			byte = byte_next(reader);
	}
	instruction->opcode = byte;
}

static char form_of(const struct x86_instruction *instruction)
{
	if (instruction->map > 3 || (instruction->vector && !instruction->map))
		return 'x';
	return instruction->map == 0   ? one_byte[instruction->opcode]
	       : instruction->map == 1 ? two_bytes[instruction->opcode]
	       : instruction->map == 2 ? 'm'
				       : 'i';
}

static size_t immediate_bytes(const struct reader *reader, char form,
			      const struct x86_instruction *instruction)
{
	size_t whole = reader->short_operand && !instruction->wide ? 2 : 4;
	bool call =
		!instruction->map && (instruction->opcode == 0xe8 || instruction->opcode == 0xe9);

	switch (form) {
	case 'b':
	case 'i':
		return 1;
	case 'w':
		return 2;
	case 'd':
		return call || instruction->map ? 4 : whole;
	case 'I':
		return whole;
	case 'q':
		return instruction->wide ? 8 : whole;
	case 'o':
		return 8;
	case 'g':
		return (instruction->reg & 7) < 2 ? 1 : 0;
	case 'G':
		return (instruction->reg & 7) < 2 ? whole : 0;
	default:
		return 0;
	}
}

bool x86_instruction_read(const uint8_t *code, size_t count, struct x86_instruction *instruction)
{
	struct reader reader = {.code = code,
				.count = count < X86_BYTES_MAX ? count : X86_BYTES_MAX};
	char form;

	*instruction = (struct x86_instruction){0};
	opcode_next(&reader, instruction);
	form = form_of(instruction);
	if (form == 'x' || reader.at > reader.count)
		return false;
	instruction->wide = reader.rex & 8;
	instruction->low = (uint8_t)((instruction->opcode & 7) | (reader.rex & 1) << 3);
	if (strchr("miIgG", form))
		modrm_next(&reader, instruction);
	instruction->immediate = number_next(&reader, immediate_bytes(&reader, form, instruction));
	instruction->bytes = (uint8_t)reader.at;
	return reader.at <= reader.count;
}
