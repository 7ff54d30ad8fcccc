/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_step.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#ifdef TSNAP_HAS_UNWINDER
#include <dwarf.h>
#endif

#define FRAME_BYTES_MAX (16ull << 20)

int frame_step_pointer(const struct machine *machine, struct thread_memory *memory,
		       struct user_registers *registers)
{
	uint64_t fp, caller_fp, ip;
	int err;

	if (!user_register_get(registers, machine->fp, &fp))
		return -ENODATA;
	if (!fp) /* all C libraries begin a thread with fp 0 */
		return 1;
	if (fp % machine->word_bytes || fp < registers->sp || fp - registers->sp > FRAME_BYTES_MAX)
		return -EBADMSG;
	err = word_read(machine, memory, fp, &caller_fp);
	if (!err)
		err = word_read(machine, memory, fp + machine->word_bytes, &ip);
	if (err)
		return err;
	ip &= machine->address_mask;
	if (!ip)
		return 1;
	*registers = (struct user_registers){
		.ip = ip, .sp = fp + 2ull * machine->word_bytes, .compat = registers->compat};
	user_register_set(registers, machine->fp, caller_fp);
	return 0;
}

#define CODE_BYTES_MAX 9
#define REGISTERS_MAX 31

/* Offsets of the registers in struct rt_sigframe of the kernel (arch/x86/include/asm/sigframe.h,
 * arch/arm64/kernel/signal.c), from the stack pointer on. */
struct signal_frame {
	uint16_t elf;
	uint8_t code_bytes;
	uint8_t code[CODE_BYTES_MAX]; /* moves __NR_rt_sigreturn to its register; system call */
	uint16_t registers, sp, ip;   /* offsets in bytes */
	uint8_t register_count;
	uint8_t names[REGISTERS_MAX]; /* DWARF's numbers, in the order of struct sigcontext */
};

static const struct signal_frame frames[] = {
	{.elf = EM_X86_64,
	 .code_bytes = 9,
	 .code = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05},
	 .registers = 40,
	 .sp = 40 + 15 * 8,
	 .ip = 40 + 16 * 8,
	 .register_count = 15,
	 .names = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2}},
	{.elf = EM_AARCH64,
	 .code_bytes = 8,
	 .code = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	 .registers = 128 + 176 + 8,
	 .sp = 128 + 176 + 8 + 31 * 8,
	 .ip = 128 + 176 + 8 + 32 * 8,
	 .register_count = 31,
	 .names = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}},
};

static const struct signal_frame *frame_of(const struct machine *machine)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		if (frames[i].elf == machine->elf)
			return &frames[i];
	return NULL;
}

bool signal_frame_is(const struct machine *machine, const struct elf_file *elf, uint64_t offset)
{
	const struct signal_frame *frame = frame_of(machine);
	uint8_t code[CODE_BYTES_MAX];

	return frame && !elf_file_take(elf, offset, code, frame->code_bytes) &&
	       !memcmp(code, frame->code, frame->code_bytes);
}

int signal_frame_step(const struct machine *machine, struct thread_memory *memory,
		      struct user_registers *registers)
{
	const struct signal_frame *frame = frame_of(machine);
	struct user_registers before = {.compat = registers->compat};
	uint64_t from = registers->sp, word;
	int err = word_read(machine, memory, from + frame->ip, &before.ip);

	if (!err)
		err = word_read(machine, memory, from + frame->sp, &before.sp);
	for (uint8_t i = 0; i < frame->register_count && !err; i++) {
		err = word_read(machine, memory, from + frame->registers + 8ull * i, &word);
		user_register_set(&before, frame->names[i], word);
	}
	if (!err)
		*registers = before;
	return err;
}

#ifdef TSNAP_HAS_UNWINDER
#define VALUES_MAX 32	/* depth of an expression's stack */
#define STEPS_MAX 512	/* operations of an expression, which may branch backwards */
#define BRANCH_STEPS 16 /* steps that a search for a branch's target counts as */

static int register_read(const struct machine *machine, const struct user_registers *registers,
			 uint64_t number, uint64_t *value)
{
	if (number == machine->sp) {
		*value = registers->sp;
		return 0;
	}
	if (number == machine->ra && !machine->ra_in_register) {
		*value = registers->ip;
		return 0;
	}
	if (number >= USER_REGISTER_COUNT)
		return -EBADMSG;
	return user_register_get(registers, (int)number, value) ? 0 : -ENODATA;
}

/* State of an expression. It has the operations that frame tables use in practice: all but calls,
 * pieces and thread-local storage. */
struct evaluation {
	const struct machine *machine;
	const struct user_registers *registers;
	struct thread_memory *memory;
	uint64_t cfa;
	uint64_t values[VALUES_MAX];
	size_t count;
};

static int value_push(struct evaluation *to, uint64_t value)
{
	if (to->count == VALUES_MAX)
		return -EBADMSG;
	to->values[to->count++] = value;
	return 0;
}

static int two_join(struct evaluation *to, uint8_t atom)
{
	uint64_t *a = &to->values[to->count - 2], b = to->values[to->count - 1];

	to->count--;
	switch (atom) {
	case DW_OP_plus:
		*a += b;
		return 0;
	case DW_OP_minus:
		*a -= b;
		return 0;
	case DW_OP_mul:
		*a *= b;
		return 0;
	case DW_OP_and:
		*a &= b;
		return 0;
	case DW_OP_or:
		*a |= b;
		return 0;
	case DW_OP_xor:
		*a ^= b;
		return 0;
	case DW_OP_shl:
		*a = b < 64 ? *a << b : 0;
		return 0;
	case DW_OP_shr:
		*a = b < 64 ? *a >> b : 0;
		return 0;
	case DW_OP_shra:
		*a = (uint64_t)((int64_t)*a >> (b < 64 ? b : 63));
		return 0;
	case DW_OP_eq:
		*a = *a == b;
		return 0;
	case DW_OP_ne:
		*a = *a != b;
		return 0;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return 0;
	case DW_OP_gt:
		*a = (int64_t)*a > (int64_t)b;
		return 0;
	case DW_OP_le:
		*a = (int64_t)*a <= (int64_t)b;
		return 0;
	case DW_OP_lt:
		*a = (int64_t)*a < (int64_t)b;
		return 0;
	default:
		return -EBADMSG;
	}
}

static int one_change(struct evaluation *to, const struct frame_operation *operation)
{
	uint64_t *a = &to->values[to->count - 1], address = *a;

	switch (operation->atom) {
	case DW_OP_deref:
		return word_read(to->machine, to->memory, address, a);
	case DW_OP_deref_size:
		if (!operation->number || operation->number > 8)
			return -EBADMSG;
		*a = 0;
		return thread_memory_read(to->memory, address, a, operation->number);
	case DW_OP_plus_uconst:
		*a += operation->number;
		return 0;
	case DW_OP_neg:
		*a = -*a;
		return 0;
	case DW_OP_not:
		*a = ~*a;
		return 0;
	case DW_OP_abs:
		*a = (int64_t)*a < 0 ? -*a : *a;
		return 0;
	case DW_OP_dup:
		return value_push(to, *a);
	case DW_OP_drop:
		to->count--;
		return 0;
	default:
		return -EBADMSG;
	}
}

static int stack_turn(struct evaluation *to, const struct frame_operation *operation)
{
	uint64_t *end = &to->values[to->count], swapped;
	uint64_t depth = operation->atom == DW_OP_over ? 1 : operation->number;

	if (operation->atom == DW_OP_pick || operation->atom == DW_OP_over)
		return depth < to->count ? value_push(to, end[-1 - (int64_t)depth]) : -EBADMSG;
	if (to->count < 2 || (operation->atom == DW_OP_rot && to->count < 3))
		return -EBADMSG;
	swapped = end[-1];
	end[-1] = end[-2];
	end[-2] = swapped;
	if (operation->atom == DW_OP_rot) {
		swapped = end[-2];
		end[-2] = end[-3];
		end[-3] = swapped;
	}
	return 0;
}

static int operation_do(struct evaluation *to, const struct frame_operation *operation)
{
	uint8_t atom = operation->atom;
	uint64_t value;
	int err;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return value_push(to, (uint64_t)(atom - DW_OP_lit0));
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		err = register_read(to->machine, to->registers, atom - DW_OP_breg0, &value);
		return err ? err : value_push(to, value + operation->number);
	}
	switch (atom) {
	case DW_OP_bregx:
		err = register_read(to->machine, to->registers, operation->number, &value);
		return err ? err : value_push(to, value + operation->number2);
	case DW_OP_call_frame_cfa:
		return value_push(to, to->cfa);
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return value_push(to, operation->number);
	case DW_OP_nop:
		return 0;
	case DW_OP_swap:
	case DW_OP_rot:
	case DW_OP_pick:
	case DW_OP_over:
		return stack_turn(to, operation);
	case DW_OP_deref:
	case DW_OP_deref_size:
	case DW_OP_plus_uconst:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_abs:
	case DW_OP_dup:
	case DW_OP_drop:
		return to->count ? one_change(to, operation) : -EBADMSG;
	default:
		return to->count >= 2 ? two_join(to, atom) : -EBADMSG;
	}
}

/* True if the walk may still do that many steps. */
static bool step_take(struct evaluation *to, unsigned int steps)
{
	if (to->memory->steps_left < steps)
		return false;
	to->memory->steps_left -= steps;
	return true;
}

/* Returns the index of the operation that a branch leads to, or count. */
static size_t branch_target(const struct frame_operation *operations, size_t count, size_t at)
{
	/* the operation's three bytes, then the distance */
	uint64_t byte =
		operations[at].offset + 3 + (uint64_t)(int64_t)(int16_t)operations[at].number;
	size_t target = 0;

	while (target < count && operations[target].offset != byte)
		target++;
	return target;
}

static int expression_evaluate(struct evaluation *to, const struct frame_operation *operations,
			       const struct frame_rule *rule, uint64_t *value)
{
	size_t at = 0;
	int err = 0;

	to->count = 0;
	for (int steps = 0; at < rule->count && !err; steps++) {
		const struct frame_operation *operation = &operations[at++];

		if (steps == STEPS_MAX || !step_take(to, 1))
			return -EBADMSG;
		if ((operation->atom == DW_OP_skip || operation->atom == DW_OP_bra) &&
		    !step_take(to, BRANCH_STEPS))
			return -EBADMSG;
		if (operation->atom == DW_OP_skip) {
			at = branch_target(operations, rule->count, at - 1);
		} else if (operation->atom == DW_OP_bra) {
			if (!to->count)
				return -EBADMSG;
			if (to->values[--to->count])
				at = branch_target(operations, rule->count, at - 1);
		} else {
			err = operation_do(to, operation);
		}
	}
	if (err || !to->count)
		return err ? err : -EBADMSG;
	*value = to->values[to->count - 1];
	return 0;
}

/* Applies a rule. Returns 1: undefined; 0 or -errno. */
static int rule_apply(struct evaluation *to, const struct frame_operation *operations,
		      const struct frame_rule *rule, uint8_t number, uint64_t *value)
{
	uint64_t offset = (uint64_t)(int64_t)rule->offset;
	int err;

	switch ((enum frame_rule_kind)rule->kind) {
	case RULE_UNDEFINED:
		return 1;
	case RULE_SAME:
		return register_read(to->machine, to->registers, number, value);
	case RULE_AT_CFA:
		return word_read(to->machine, to->memory, to->cfa + offset, value);
	case RULE_CFA:
		*value = to->cfa + offset;
		return 0;
	case RULE_REGISTER:
		err = register_read(to->machine, to->registers, rule->number, value);
		*value += offset;
		return err;
	case RULE_AT:
		err = expression_evaluate(to, operations + rule->offset, rule, value);
		return err ? err : word_read(to->machine, to->memory, *value, value);
	case RULE_EXPRESSION:
		return expression_evaluate(to, operations + rule->offset, rule, value);
	}
	return -EBADMSG;
}

int frame_step_row(const struct machine *machine, const struct frame_operation *operations,
		   const struct frame_row *row, struct thread_memory *memory,
		   struct user_registers *registers)
{
	struct evaluation to = {.machine = machine, .registers = registers, .memory = memory};
	struct user_registers caller = *registers;
	uint64_t value = 0;
	int err = rule_apply(&to, operations, &row->cfa, machine->sp, &to.cfa);

	if (err)
		return err < 0 ? err : -EBADMSG;
	to.cfa &= machine->word_bytes == 4 ? UINT32_MAX : UINT64_MAX;
	err = rule_apply(&to, operations, &row->ra, machine->ra, &value);
	if (err)
		return err;
	caller.ip = value & machine->address_mask;
	caller.known = 0; /* a function gives back the registers below, no others */
	for (int i = 0; i < machine->saved_count; i++) {
		uint8_t number = machine->saved[i];

		if (row->saved[i].kind == RULE_SAME) { /* true of most registers */
			caller.known |= registers->known & 1u << number;
			continue;
		}
		err = rule_apply(&to, operations, &row->saved[i], number, &value);
		/* an error does not matter here: the register may never be needed */
		if (!err)
			user_register_set(&caller, number, value);
	}
	caller.sp = to.cfa;
	*registers = caller;
	return 0;
}
#else
int frame_step_row(const struct machine *machine, const struct frame_operation *operations,
		   const struct frame_row *row, struct thread_memory *memory,
		   struct user_registers *registers)
{
	(void)machine;
	(void)operations;
	(void)row;
	(void)memory;
	(void)registers;
	return -EBADMSG;
}
#endif
