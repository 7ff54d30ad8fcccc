/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "visits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 64 /* slots of 8 bytes, as MAX_BPF_STACK has */

enum kind { NONE, UNKNOWN, NUMBER, FRAME, CONTEXT, MAP, VALUE_OR_NULL, VALUE };

/* Content of a register, or of 8 bytes of the stack, as far as it is known. */
struct content {
	uint8_t kind;
	uint8_t varies; /* VALUE: an unknown number was added */
	uint16_t map;	/* number of the map, or of a value's map */
	int32_t number; /* the constant; for FRAME and VALUE: the offset */
};

/* Content has the size of a machine word: states are compared and copied often. */
_Static_assert(sizeof(struct content) == 8, "no holes");

struct state {
	struct content registers[11], slots[SLOTS];
	size_t at;
	struct state *next; /* next of the states seen at this instruction, or still to follow */
};

struct visits {
	const struct bpf_insn *insns;
	size_t count;
	bool null_unknown;
	bool *met;	     /* indexed by instruction: states are kept and compared there */
	struct state **seen; /* indexed by instruction: list of states */
	struct state *waiting;
	size_t visited;
};

static const struct content unknown = {.kind = UNKNOWN}, none = {.kind = NONE};

static bool content_same(const struct content *a, const struct content *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* True if everything that follows was already followed from the old state. */
static bool state_covers(const struct state *old, const struct state *now)
{
	for (size_t i = 0; i < sizeof(old->registers) / sizeof(old->registers[0]); i++)
		if (old->registers[i].kind != NONE &&
		    !content_same(&old->registers[i], &now->registers[i]) &&
		    (old->registers[i].kind != UNKNOWN || now->registers[i].kind == NONE))
			return false;
	for (size_t i = 0; i < SLOTS; i++)
		if (old->slots[i].kind != NONE && !content_same(&old->slots[i], &now->slots[i]))
			return false;
	return true;
}

static void state_add(struct state **list, const struct state *state, size_t at)
{
	struct state *copy = malloc(sizeof(*copy));

	if (!copy)
		abort();
	*copy = *state;
	copy->at = at;
	copy->next = *list;
	*list = copy;
}

static void states_free(struct state *list)
{
	while (list) {
		struct state *next = list->next;

		free(list);
		list = next;
	}
}

/* True if the path ends here, because it was followed before. */
static bool state_known(struct visits *visits, const struct state *state)
{
	if (!visits->met[state->at])
		return false;
	for (const struct state *old = visits->seen[state->at]; old; old = old->next)
		if (state_covers(old, state))
			return true;
	state_add(&visits->seen[state->at], state, state->at);
	return false;
}

static struct content sum(struct content to, struct content more, bool whole)
{
	bool kept = to.kind == FRAME || to.kind == VALUE || (to.kind == NUMBER && whole);

	if (to.kind != VALUE && more.kind == VALUE)
		return sum(more, to, whole);
	if (kept && more.kind == NUMBER)
		to.number += more.number;
	else if (to.kind == VALUE)
		to.varies = 1;
	else
		to = unknown;
	return to;
}

static void arithmetic_do(struct state *state, const struct bpf_insn *insn)
{
	struct content *to = &state->registers[insn->dst_reg];
	struct content from = {.kind = NUMBER, .number = insn->imm};
	bool whole = BPF_CLASS(insn->code) == BPF_ALU64;

	if (BPF_SRC(insn->code) == BPF_X)
		from = state->registers[insn->src_reg];
	if (BPF_OP(insn->code) == BPF_MOV)
		*to = whole || from.kind == NUMBER ? from : unknown;
	else if (BPF_OP(insn->code) == BPF_ADD)
		*to = sum(*to, from, whole);
	else
		*to = unknown;
}

static struct content *slot_of(struct state *state, const struct content *base, int offset)
{
	int below = -(base->number + offset); /* distance below the frame's end */

	return base->kind == FRAME && below > 0 && below <= 8 * SLOTS
		       ? &state->slots[(below - 1) / 8]
		       : NULL;
}

/* Stores a register: before 5.10 only contents of pointers remain known. */
static void store_do(struct state *state, const struct bpf_insn *insn)
{
	const struct content *from = &state->registers[insn->src_reg];
	struct content *slot = slot_of(state, &state->registers[insn->dst_reg], insn->off);

	if (!slot)
		return;
	*slot = BPF_CLASS(insn->code) == BPF_STX && BPF_SIZE(insn->code) == BPF_DW &&
				from->kind > NUMBER
			? *from
			: unknown;
}

static void load_do(struct state *state, const struct bpf_insn *insn)
{
	const struct content *slot = slot_of(state, &state->registers[insn->src_reg], insn->off);

	state->registers[insn->dst_reg] = slot && slot->kind > NUMBER ? *slot : unknown;
}

/* Marks bytes of the frame as filled by a helper. */
static void frame_fill(struct state *state, const struct content *to, const struct content *bytes)
{
	if (to->kind != FRAME || bytes->kind != NUMBER)
		return;
	for (int at = 0; at < bytes->number; at += 8) {
		struct content *slot = slot_of(state, to, at);

		if (slot)
			*slot = unknown;
	}
}

static void call_do(struct state *state, int helper)
{
	struct content *registers = state->registers;

	if (helper == BPF_FUNC_probe_read || helper == BPF_FUNC_get_current_comm)
		frame_fill(state, &registers[BPF_REG_1], &registers[BPF_REG_2]);
	registers[BPF_REG_0] = unknown;
	if (helper == BPF_FUNC_map_lookup_elem)
		registers[BPF_REG_0] =
			(struct content){.kind = VALUE_OR_NULL, .map = registers[BPF_REG_1].map};
	for (int i = BPF_REG_1; i <= BPF_REG_5; i++)
		registers[i] = none;
}

/* Makes a looked up pointer a value, or NULL. */
static void pointer_decide(const struct visits *visits, struct state *state, struct content pointer,
			   bool null)
{
	struct content now = {.kind = VALUE, .map = pointer.map};

	if (null)
		now = visits->null_unknown ? unknown : (struct content){.kind = NUMBER};
	for (int i = 0; i < BPF_REG_10; i++)
		if (content_same(&state->registers[i], &pointer))
			state->registers[i] = now;
	if (null)
		now = unknown;
	for (size_t i = 0; i < SLOTS; i++)
		if (content_same(&state->slots[i], &pointer))
			state->slots[i] = now;
}

/* Goes on after a conditional jump; the other path waits. */
static void branch_do(struct visits *visits, struct state *state, const struct bpf_insn *insn)
{
	const struct content tested = state->registers[insn->dst_reg];
	size_t target = state->at + 1 + (size_t)insn->off;
	bool equal = BPF_OP(insn->code) == BPF_JEQ;
	struct state other = *state;

	state->at++;
	if (BPF_SRC(insn->code) == BPF_K && (equal || BPF_OP(insn->code) == BPF_JNE)) {
		if (tested.kind == NUMBER && tested.number == insn->imm) {
			state->at = equal ? target : state->at;
			return;
		}
		if (tested.kind == VALUE_OR_NULL && !insn->imm) {
			pointer_decide(visits, state, tested, !equal);
			pointer_decide(visits, &other, tested, equal);
		}
	}
	state_add(&visits->waiting, &other, target);
}

/* Executes one instruction. False: the program ends. */
static bool insn_do(struct visits *visits, struct state *state)
{
	const struct bpf_insn *insn = &visits->insns[state->at];

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		arithmetic_do(state, insn);
		break;
	case BPF_LDX:
		load_do(state, insn);
		break;
	case BPF_ST:
	case BPF_STX:
		store_do(state, insn);
		break;
	case BPF_LD: /* 64 bits, in two instructions */
		state->registers[insn->dst_reg] = (struct content){
			.kind = insn->src_reg ? MAP : NUMBER,
			.map = insn->src_reg ? (uint16_t)insn->imm : 0,
			.number = insn->src_reg ? 0 : insn->imm,
		};
		state->at++;
		break;
	default:
		if (BPF_OP(insn->code) == BPF_EXIT)
			return false;
		if (BPF_OP(insn->code) == BPF_CALL)
			call_do(state, insn->imm);
		else if (BPF_OP(insn->code) == BPF_JA)
			state->at += (size_t)insn->off;
		else {
			branch_do(visits, state, insn);
			return true;
		}
	}
	state->at++;
	return true;
}

static void way_follow(struct visits *visits, struct state *state)
{
	while (state->at < visits->count && visits->visited < VISITS_MOST &&
	       !state_known(visits, state)) {
		visits->visited++;
		if (!insn_do(visits, state))
			return;
	}
}

/* Finds the instructions where states are compared: where paths meet, and after branches and
 * calls. */
static void meetings_find(struct visits *visits)
{
	for (size_t i = 0; i < visits->count; i++) {
		const struct bpf_insn *insn = &visits->insns[i];
		size_t target = i + 1 + (size_t)insn->off;

		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
		if (BPF_CLASS(insn->code) != BPF_JMP || BPF_OP(insn->code) == BPF_EXIT)
			continue;
		if (BPF_OP(insn->code) != BPF_CALL && target < visits->count)
			visits->met[target] = true;
		if (BPF_OP(insn->code) != BPF_JA && i + 1 < visits->count)
			visits->met[i + 1] = true;
	}
}

size_t visits_count(const struct bpf_insn *insns, size_t count, bool null_unknown)
{
	struct visits visits = {.insns = insns, .count = count, .null_unknown = null_unknown};
	struct state first;

	visits.met = calloc(count, sizeof(*visits.met));
	visits.seen = calloc(count, sizeof(*visits.seen));
	if (!visits.met || !visits.seen)
		abort();
	meetings_find(&visits);
	memset(&first, 0, sizeof(first));
	first.registers[BPF_REG_1].kind = CONTEXT;
	first.registers[BPF_REG_10].kind = FRAME;
	state_add(&visits.waiting, &first, 0);
	while (visits.waiting) {
		struct state *state = visits.waiting;

		visits.waiting = state->next;
		way_follow(&visits, state);
		free(state);
	}
	for (size_t i = 0; i < count; i++)
		states_free(visits.seen[i]);
	free(visits.seen);
	free(visits.met);
	return visits.visited;
}
