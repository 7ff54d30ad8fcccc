/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/x86_return.h"

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

#define INSTRUCTIONS_MAX 1024 /* instructions followed on all ways */
#define WAYS_MAX 16	      /* branches that are kept for later */
#define JUMPS_MAX 64	      /* known targets of jumps, so that no loop is followed twice */
#define WINDOW_BYTES 512      /* bytes of code that are read at once */
#define OFFSET_MAX (1 << 30)

/* Registers as instructions number them, and as DWARF does. */
enum { RSP = 4, RBP = 5, DWARF_RSP = 7, DWARF_RBP = 6 };

/* Registers that a function gives back, in the order of machine.saved. */
static const uint8_t kept[X86_SAVED] = {3, RBP, 12, 13, 14, 15};

#define REGISTERS 16
#define IN_PLACE UINT8_MAX /* a location's base: the register has the value itself */

/* A location: an offset from the value that a register had where the way begins. */
struct location {
	uint8_t base; /* DWARF's number; 0: it is not known */
	int64_t offset;
};

/* A point on a way to a return. */
struct point {
	uint64_t address;
	struct location sp, fp;
	struct location written;	  /* stack limit up to which this way may have written */
	struct location saved[REGISTERS]; /* location of the value that the register gives back */
	struct location stored_at[REGISTERS]; /* stack slot that this way put the register into */
	struct location stored[REGISTERS];    /* value of saved at the time of that store */
	bool called;
};

struct follower {
	const struct elf_file *elf;
	uint8_t window[WINDOW_BYTES];
	uint64_t window_from;
	size_t window_bytes;
	struct point ways[WAYS_MAX];
	uint64_t jumps[JUMPS_MAX];
	size_t way_count, jump_count;
};

enum step {
	STEP_ON,
	STEP_RETURN,
	STEP_NOWHERE, /* the way can't be followed */
};

/* Returns the code at an address, and how many bytes there are of it. */
static const uint8_t *code_at(struct follower *follower, uint64_t address, size_t *count)
{
	uint64_t at = address - follower->window_from, offset, left;

	if (at < follower->window_bytes && follower->window_bytes - at >= X86_BYTES_MAX) {
		*count = follower->window_bytes - at;
		return follower->window + at;
	}
	*count = follower->window_bytes = 0;
	if (!elf_offset_of(follower->elf, address, &offset, &left))
		return follower->window;
	left = left < WINDOW_BYTES ? left : WINDOW_BYTES;
	if (elf_file_take(follower->elf, offset, follower->window, left))
		return follower->window;
	follower->window_from = address;
	*count = follower->window_bytes = left;
	return follower->window;
}

static bool is_same(struct location one, struct location other)
{
	return one.base == other.base && one.offset == other.offset;
}

static void register_load(struct point *point, uint8_t number, struct location from)
{
	struct location value = from;

	if (from.base && is_same(from, point->stored_at[number]))
		value = point->stored[number];
	else if (from.base == point->written.base && from.offset < point->written.offset)
		value = (struct location){0}; /* the first value was overwritten */
	point->saved[number] = value;
	if (number == RBP)
		point->fp = (struct location){value.base == IN_PLACE ? DWARF_RBP : 0, 0};
}

static struct location location_at(struct location base, int64_t distance)
{
	base.offset += distance;
	return base;
}

/* Stores a register to the stack. number: RSP stands for all that is no register which a function
 * gives back. */
static void register_store(struct point *point, uint8_t number, struct location to)
{
	for (size_t i = 0; i < REGISTERS; i++)
		if (is_same(point->stored_at[i], to))
			point->stored_at[i].base = 0;
	point->stored_at[number] = to;
	point->stored[number] = point->saved[number];
}

static void sp_move(struct point *point, int64_t distance)
{
	if (distance < 0 &&
	    (point->sp.base != point->written.base || point->sp.offset > point->written.offset))
		point->written = point->sp;
	point->sp.offset += distance;
}

static enum step jump_to(struct follower *follower, struct point *point, uint64_t target)
{
	for (size_t i = 0; i < follower->jump_count; i++)
		if (follower->jumps[i] == target)
			return STEP_NOWHERE;
	if (follower->jump_count == JUMPS_MAX)
		return STEP_NOWHERE;
	follower->jumps[follower->jump_count++] = target;
	point->address = target;
	return STEP_ON;
}

/* Keeps the way to the branch's target for later, and goes on where the branch is not taken. */
static enum step branch(struct follower *follower, const struct point *point, int32_t distance)
{
	if (follower->way_count == WAYS_MAX)
		return STEP_ON;
	follower->ways[follower->way_count] = *point;
	follower->ways[follower->way_count++].address += (uint64_t)(int64_t)distance;
	return STEP_ON;
}

/* Sets the frame pointer to the stack pointer plus some bytes. */
static void frame_begin(struct point *point, int32_t distance)
{
	register_load(point, RBP, (struct location){0});
	point->fp = location_at(point->sp, distance);
}

/* Sets the stack pointer to the frame pointer plus some bytes. */
static enum step frame_leave(struct point *point, int32_t distance)
{
	if (!point->fp.base)
		return STEP_NOWHERE;
	point->sp = location_at(point->fp, distance);
	return STEP_ON;
}

/* True if the instruction sets the stack pointer in a way that is not followed. */
static bool sets_sp(const struct x86_instruction *instruction)
{
	uint8_t opcode = instruction->opcode;
	bool to_rm = instruction->mode == 3 && instruction->rm == RSP;

	if (opcode == 0x8b || opcode == 0x8d || (opcode < 0x38 && (opcode & 7) == 3))
		return instruction->reg == RSP;
	if (opcode == 0x87)
		return to_rm || (instruction->mode == 3 && instruction->reg == RSP);
	if (opcode == 0x81 || opcode == 0x83)
		return to_rm && (instruction->reg & 7) != 7;
	return to_rm && (opcode == 0x89 || opcode == 0xc7 || opcode == 0xf7 || opcode == 0xff ||
			 (opcode < 0x38 && (opcode & 7) == 1));
}

/* Follows mov and lea to or from the stack pointer and the frame. Returns whether it was one of
 * these. */
static bool frame_step(struct point *point, const struct x86_instruction *instruction,
		       enum step *step)
{
	uint8_t opcode = instruction->opcode, reg = instruction->reg;
	bool registers = instruction->mode == 3,
	     at_frame =
		     (instruction->mode == 1 || instruction->mode == 2) && instruction->rm == RBP;
	int32_t distance = instruction->displacement;

	*step = STEP_ON;
	if (registers && ((opcode == 0x89 && reg == RSP && instruction->rm == RBP) ||
			  (opcode == 0x8b && reg == RBP && instruction->rm == RSP)))
		frame_begin(point, 0);
	else if (opcode == 0x8d && reg == RBP && instruction->on_stack)
		frame_begin(point, distance);
	else if (opcode == 0x8d && reg == RSP && instruction->on_stack)
		sp_move(point, distance);
	else if (opcode == 0x8d && reg == RSP && at_frame)
		*step = frame_leave(point, distance);
	else if ((opcode == 0x89 && registers && reg == RBP && instruction->rm == RSP) ||
		 (opcode == 0x8b && registers && reg == RSP && instruction->rm == RBP))
		*step = frame_leave(point, 0);
	else if (opcode == 0x8b && reg != RSP && instruction->wide && instruction->on_stack)
		register_load(point, reg, location_at(point->sp, distance));
	else if (opcode == 0x8b && reg != RSP && instruction->wide && at_frame && point->fp.base)
		register_load(point, reg, location_at(point->fp, distance));
	else if (opcode == 0x89 && instruction->wide && instruction->on_stack)
		register_store(point, reg, location_at(point->sp, distance));
	else if (opcode == 0x89 && instruction->wide && at_frame && point->fp.base)
		register_store(point, reg, location_at(point->fp, distance));
	else
		return false;
	return true;
}

static void push(struct point *point, uint8_t number)
{
	sp_move(point, -8);
	register_store(point, number, point->sp);
}

static void pop(struct point *point, uint8_t number)
{
	register_load(point, number, point->sp);
	sp_move(point, 8);
}

/* Follows an instruction with ModRM. */
static enum step operands_step(struct point *point, const struct x86_instruction *instruction)
{
	uint8_t opcode = instruction->opcode, kind = instruction->reg & 7;
	enum step step;

	if ((opcode == 0x81 || opcode == 0x83) && instruction->mode == 3 &&
	    instruction->rm == RSP && (kind == 0 || kind == 5)) {
		sp_move(point, kind ? -(int64_t)instruction->immediate : instruction->immediate);
		return STEP_ON;
	}
	if (frame_step(point, instruction, &step))
		return step;
	if (sets_sp(instruction))
		return STEP_NOWHERE;
	if (opcode == 0x8f)
		sp_move(point, 8);
	else if (opcode == 0xff && kind == 6)
		push(point, RSP);
	else if (opcode == 0xff && kind == 2)
		point->called = true;
	else if (opcode == 0xff && kind > 2)
		return STEP_NOWHERE; /* a jump to where the operand says */
	return STEP_ON;
}

static enum step plain_step(struct follower *follower, struct point *point,
			    const struct x86_instruction *instruction)
{
	uint8_t opcode = instruction->opcode;
	enum step step;

	if (instruction->has_modrm)
		return operands_step(point, instruction);
	if ((opcode >= 0x70 && opcode < 0x80) || (opcode >= 0xe0 && opcode < 0xe4))
		return branch(follower, point, instruction->immediate);
	if (opcode >= 0x50 && opcode < 0x58)
		push(point, instruction->low);
	else if (opcode == 0x68 || opcode == 0x6a)
		push(point, RSP);
	else if (opcode >= 0x58 && opcode < 0x60 && instruction->low == RSP)
		return STEP_NOWHERE;
	else if (opcode >= 0x58 && opcode < 0x60)
		pop(point, instruction->low);
	switch (opcode) {
	case 0xc2: /* ret that pops arguments, as no calling convention here has it */
		return instruction->immediate ? STEP_NOWHERE : STEP_RETURN;
	case 0xc3:
		return STEP_RETURN;
	case 0xc9: /* leave */
		step = frame_leave(point, 0);
		if (step == STEP_ON)
			pop(point, RBP);
		return step;
	case 0xe8:
		point->called = true;
		return STEP_ON;
	case 0xe9:
	case 0xeb:
		return jump_to(follower, point,
			       point->address + (uint64_t)(int64_t)instruction->immediate);
	case 0xcc: /* int3 */
	case 0xf4: /* hlt */
		return STEP_NOWHERE;
	default:
		return STEP_ON;
	}
}

static enum step instruction_step(struct follower *follower, struct point *point)
{
	struct x86_instruction instruction;
	size_t count;
	const uint8_t *code = code_at(follower, point->address, &count);

	if (!x86_instruction_read(code, count, &instruction))
		return STEP_NOWHERE;
	point->address += instruction.bytes;
	if (instruction.vector || instruction.map > 1)
		return STEP_ON;
	if (!instruction.map)
		return plain_step(follower, point, &instruction);
	if (instruction.opcode == 0x0b) /* ud2 */
		return STEP_NOWHERE;
	return instruction.opcode >= 0x80 && instruction.opcode < 0x90
		       ? branch(follower, point, instruction.immediate)
		       : STEP_ON;
}

static struct frame_rule rule_of(const struct point *point, uint8_t number)
{
	const struct location *saved = &point->saved[number];

	if (saved->base == IN_PLACE)
		return (struct frame_rule){.kind = RULE_SAME};
	/* saved near one register and found by the other: compilers make no such code */
	if (saved->base != point->sp.base)
		return (struct frame_rule){.kind = RULE_UNDEFINED};
	return (struct frame_rule){.kind = RULE_AT_CFA,
				   .offset = (int32_t)(saved->offset - point->sp.offset - 8)};
}

static bool is_known(const struct x86_return *returns, size_t count, const struct point *point)
{
	for (size_t i = 0; i < count; i++)
		if (returns[i].base == point->sp.base && returns[i].offset == point->sp.offset &&
		    returns[i].called == point->called)
			return true;
	return false;
}

/* Adds a return, where the stack pointer is at the return address, which was there from the
 * start. */
static size_t return_add(const struct point *point, struct x86_return *returns, size_t count)
{
	if ((point->sp.base == DWARF_RSP && point->sp.offset < 0) ||
	    point->sp.offset >= OFFSET_MAX || point->sp.offset <= -OFFSET_MAX ||
	    is_known(returns, count, point))
		return count;
	returns[count] = (struct x86_return){.offset = (int32_t)point->sp.offset,
					     .base = point->sp.base,
					     .called = point->called};
	for (size_t i = 0; i < X86_SAVED; i++)
		returns[count].saved[i] = rule_of(point, kept[i]);
	return count + 1;
}

size_t x86_returns_find(const struct elf_file *elf, uint64_t address, bool exact,
			struct x86_return returns[X86_RETURNS_MAX])
{
	struct follower follower = {.elf = elf};
	struct point point = {
		.address = address,
		.sp = {DWARF_RSP, 0},
		.fp = {DWARF_RBP, 0},
		.written = {DWARF_RSP, 0},
		.called = !exact,
	};
	size_t count = 0;

	for (size_t i = 0; i < REGISTERS; i++)
		point.saved[i].base = IN_PLACE;

	for (int i = 0; i < INSTRUCTIONS_MAX && count < X86_RETURNS_MAX; i++) {
		enum step step = instruction_step(&follower, &point);

		if (step == STEP_ON)
			continue;
		if (step == STEP_RETURN)
			count = return_add(&point, returns, count);
		do {
			if (!follower.way_count)
				return count;
			point = follower.ways[--follower.way_count];
		} while (jump_to(&follower, &point, point.address) == STEP_NOWHERE);
	}
	return count;
}

bool x86_return_row(const struct x86_return *found, struct frame_row *row)
{
	if (found->base >= REGISTERS || found->called > 1 || found->offset >= OFFSET_MAX ||
	    found->offset <= -OFFSET_MAX)
		return false;
	*row = (struct frame_row){
		.followed = true,
		.cfa = {.kind = RULE_REGISTER, .number = found->base, .offset = found->offset + 8},
		.ra = {.kind = RULE_AT_CFA, .offset = -8},
	};
	for (size_t i = 0; i < X86_SAVED; i++) {
		if (found->saved[i].kind > RULE_AT_CFA)
			return false;
		row->saved[i] = found->saved[i];
	}
	return true;
}
