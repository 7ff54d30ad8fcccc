/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "instructions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum base { BASE_OTHER, BASE_NUMBER, BASE_RANGE, BASE_FRAME, BASE_CONTEXT, BASE_ARGUMENT };

/* Content of a register: something unknown, plus a constant. */
struct value {
	enum base base;
	int64_t plus;
	/* Range of a number, from plus to plus + span: for BASE_NUMBER one constant on each path to
	 * here, as a verifier sees it, for BASE_RANGE any of them. */
	int64_t span;
};

#define STACK_SLOTS 64

struct machine {
	struct value registers[11], stack[STACK_SLOTS];
	struct instruction_needs *needs;
};

/* State that is known at an instruction to which a forward jump leads. */
struct arrival {
	bool there;
	struct machine machine;
};

/* Name of an instruction that include/uapi/linux/bpf.h of 4.9 lacks: jumps on less, 32-bit jumps,
 * calls of functions, sign extension came with -mcpu=v2 (4.14), v3 (5.1), 4.16 and v4 (6.6). */
static const char *insn_newer(const struct bpf_insn *insn)
{
	unsigned int class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	if (class == 0x06)
		return "a 32-bit jump";
	if (class == BPF_JMP && op >= 0xa0)
		return "a jump on less";
	if (class == BPF_JMP && op == BPF_CALL && insn->src_reg)
		return "a call of a BPF function";
	if ((class == BPF_ALU || class == BPF_ALU64) && insn->off)
		return "a signed move or division";
	if (class == BPF_LDX && BPF_MODE(insn->code) != BPF_MEM)
		return "a load with sign extension";
	if (class == BPF_STX && BPF_MODE(insn->code) == 0xc0 && insn->imm != BPF_ADD)
		return "an atomic operation other than add";
	return NULL;
}

static void stack_use(struct machine *machine, const struct value *at, int64_t offset)
{
	if (at->base == BASE_FRAME && -(at->plus + offset) > machine->needs->stack_bytes)
		machine->needs->stack_bytes = (int)-(at->plus + offset);
}

static struct value *stack_slot(struct machine *machine, const struct value *at, int64_t offset)
{
	int64_t slot = -(at->plus + offset) / 8 - 1;

	return at->base == BASE_FRAME && slot >= 0 && slot < STACK_SLOTS ? &machine->stack[slot]
									 : NULL;
}

static void read_add(struct instruction_needs *needs, int64_t offset)
{
	if (needs->read_count < NEEDS_READS_MAX)
		needs->reads[needs->read_count++] = offset;
}

static bool is_number(const struct value *value)
{
	return value->base == BASE_NUMBER || value->base == BASE_RANGE;
}

/* Notes what the verifier knows of the size that a helper reads or writes. */
static void size_check(struct instruction_needs *needs, const struct value *size)
{
	needs->size_varies |= size->base != BASE_NUMBER;
	needs->size_zero |= !is_number(size) || size->plus <= 0;
}

static void helper_call(struct machine *machine, int helper)
{
	struct instruction_needs *needs = machine->needs;
	const struct value *from = &machine->registers[BPF_REG_3];
	bool known = false;

	for (size_t i = 0; i < needs->helper_count; i++)
		known |= needs->helpers[i] == helper;
	if (!known && needs->helper_count < NEEDS_HELPERS_MAX)
		needs->helpers[needs->helper_count++] = helper;
	if (helper == BPF_FUNC_probe_read || helper == BPF_FUNC_probe_read_kernel ||
	    helper == BPF_FUNC_probe_read_user) {
		if (from->base != BASE_CONTEXT)
			read_add(needs, from->plus);
		size_check(needs, &machine->registers[BPF_REG_2]);
	}
	for (int i = BPF_REG_0; i <= BPF_REG_5; i++) {
		stack_use(machine, &machine->registers[i], 0);
		machine->registers[i] = (struct value){BASE_OTHER, 0, 0};
	}
}

static void alu_do(struct machine *machine, const struct bpf_insn *insn)
{
	struct value *to = &machine->registers[insn->dst_reg];
	struct value from = BPF_SRC(insn->code) == BPF_X
				    ? machine->registers[insn->src_reg]
				    : (struct value){BASE_NUMBER, insn->imm, 0};

	if (BPF_OP(insn->code) == BPF_MOV) {
		*to = from;
	} else if (BPF_OP(insn->code) == BPF_ADD &&
		   (to->base == BASE_NUMBER || from.base == BASE_NUMBER)) {
		to->base = to->base == BASE_NUMBER ? from.base : to->base;
		to->plus += from.plus;
		to->span += from.span;
		if (to->span && !is_number(to)) /* a pointer, plus one of some constants */
			*to = (struct value){BASE_OTHER, 0, 0};
	} else if (BPF_OP(insn->code) == BPF_AND && BPF_SRC(insn->code) == BPF_K &&
		   insn->imm >= 0) {
		*to = (struct value){BASE_RANGE, 0, insn->imm};
	} else {
		*to = (struct value){BASE_OTHER, 0, 0};
	}
}

/* Content of a spilled register: numbers lose their bounds before 5.10. */
static struct value spilled(const struct machine *machine, const struct bpf_insn *insn)
{
	const struct value *from = &machine->registers[insn->src_reg];

	if (BPF_CLASS(insn->code) != BPF_STX || from->base == BASE_RANGE)
		return (struct value){BASE_OTHER, 0, 0};
	return *from;
}

static void insn_do(struct machine *machine, const struct bpf_insn *insn)
{
	struct value *to = &machine->registers[insn->dst_reg], *slot, *from;

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		alu_do(machine, insn);
		break;
	case BPF_LDX:
		from = &machine->registers[insn->src_reg];
		if (from->base == BASE_ARGUMENT)
			read_add(machine->needs, from->plus + insn->off);
		slot = stack_slot(machine, &machine->registers[insn->src_reg], insn->off);
		stack_use(machine, &machine->registers[insn->src_reg], insn->off);
		if (slot)
			*to = *slot;
		else
			*to = (struct value){
				from->base == BASE_CONTEXT ? BASE_ARGUMENT : BASE_OTHER, 0, 0};
		break;
	case BPF_STX:
	case BPF_ST:
		stack_use(machine, to, insn->off);
		slot = stack_slot(machine, to, insn->off);
		if (slot)
			*slot = spilled(machine, insn);
		break;
	case BPF_LD:
		*to = (struct value){BASE_OTHER, 0, 0};
		break;
	case BPF_JMP:
		if (BPF_OP(insn->code) == BPF_CALL)
			helper_call(machine, insn->imm);
		else if (BPF_OP(insn->code) != BPF_EXIT && insn->off < 0)
			machine->needs->goes_back = true;
		break;
	default: /* BPF_JMP32 */
		machine->needs->goes_back |= insn->off < 0;
		break;
	}
}

static void value_merge(struct value *to, const struct value *from)
{
	int64_t least = to->plus < from->plus ? to->plus : from->plus;
	int64_t end = to->plus + to->span, from_end = from->plus + from->span;

	if (is_number(to) && is_number(from))
		*to = (struct value){to->base == from->base ? to->base : BASE_RANGE, least,
				     (end > from_end ? end : from_end) - least};
	else if (to->base != from->base || to->plus != from->plus)
		*to = (struct value){BASE_OTHER, 0, 0};
}

/* Merges two states: what is known must be true on every path. */
static void machine_merge(struct machine *to, const struct machine *from)
{
	for (size_t i = 0; i < sizeof(to->registers) / sizeof(to->registers[0]); i++)
		value_merge(&to->registers[i], &from->registers[i]);
	for (size_t i = 0; i < STACK_SLOTS; i++)
		value_merge(&to->stack[i], &from->stack[i]);
}

static void arrival_add(struct arrival *arrival, const struct machine *machine)
{
	if (arrival->there)
		machine_merge(&arrival->machine, machine);
	else
		*arrival = (struct arrival){true, *machine};
}

/* Returns the instruction that this one may jump to, if forward; 0: none. */
static size_t jump_target(const struct bpf_insn *insn, size_t at, size_t count)
{
	unsigned int class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	if ((class != BPF_JMP && class != 0x06) || op == BPF_CALL || op == BPF_EXIT ||
	    insn->off < 0 || at + 1 + (size_t)insn->off >= count)
		return 0;
	return at + 1 + (size_t)insn->off;
}

static bool falls_through(const struct bpf_insn *insn)
{
	return insn->code != (BPF_JMP | BPF_EXIT) && insn->code != (BPF_JMP | BPF_JA);
}

void instruction_needs_find(const struct bpf_insn *insns, size_t count,
			    struct instruction_needs *needs)
{
	struct arrival *arrivals = calloc(count, sizeof(*arrivals));
	struct machine machine = {.needs = needs};
	bool reached = true;

	memset(needs, 0, sizeof(*needs));
	needs->count = count;
	machine.registers[BPF_REG_1].base = BASE_CONTEXT;
	machine.registers[BPF_REG_10].base = BASE_FRAME;
	for (size_t i = 0; i < count && arrivals; i++) {
		size_t target = jump_target(&insns[i], i, count);

		if (arrivals[i].there && reached)
			machine_merge(&machine, &arrivals[i].machine);
		else if (arrivals[i].there)
			machine = arrivals[i].machine;
		if (!needs->newer)
			needs->newer = insn_newer(&insns[i]);
		insn_do(&machine, &insns[i]);
		if (target)
			arrival_add(&arrivals[target], &machine);
		reached = falls_through(&insns[i]);
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++; /* second half of a 64-bit constant */
	}
	free(arrivals);
}
