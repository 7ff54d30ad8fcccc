/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/registers.h"
#include "kernel/record.h"

/* Words of struct pt_regs, arch/x86/include/asm/ptrace.h, the same since 2.6, that
 * bpf_text/thread_state.h keeps */
enum {
	BP,
	BX,
	R11,
	R10,
	R9,
	R8,
	AX,
	CX,
	DX,
	SI,
	DI,
	ORIG_AX,
	IP,
	CS,
	WORDS,
};

_Static_assert(WORDS == THREAD_REGISTER_COUNT, "these are the words of the record");

#define PT_REGS_BYTES (21 * 8)

#define USER32_CS 0x23 /* __USER32_CS: code that runs in 32-bit mode */

/* only the low half of cs is defined */
static bool code_is_32_bit(uint64_t cs)
{
	return (cs & 0xffff) == USER32_CS;
}

bool registers_marked(const uint64_t *words)
{
	return words[CX] == words[IP];
}

void registers_decode(const uint64_t *words, bool marked, struct registers_call *call)
{
	static const unsigned char order[2][6] = {{DI, SI, DX, R10, R8, R9},
						  {BX, CX, DX, SI, DI, BP}};

	/* 64-bit code may use int 0x80, too */
	call->compat = code_is_32_bit(words[CS]) ||
		       (marked && (int64_t)words[ORIG_AX] >= 0 && words[CX] != words[IP]);
	call->nr = call->compat ? (int32_t)words[ORIG_AX] : (int64_t)words[ORIG_AX];
	for (int i = 0; i < 6; i++)
		call->arg[i] = call->compat ? (uint32_t)words[order[1][i]] : words[order[0][i]];
}

void registers_user(const uint64_t *words, struct user_registers *registers)
{
	/* DWARF's numbers in the order of STACK_REGISTER_PIECES: r15 to r12, bp, bx */
	static const int numbers[2][6] = {{15, 14, 13, 12, 6, 3}, {-1, -1, -1, -1, 5, 3}};

	*registers = (struct user_registers){.ip = words[6], .sp = words[8]};
	registers->compat = code_is_32_bit(words[7]);
	for (int i = 0; i < 6; i++)
		if (numbers[registers->compat][i] >= 0)
			user_register_set(registers, numbers[registers->compat][i], words[i]);
}

bool registers_user_few(const uint64_t *words, uint64_t sp, struct user_registers *registers)
{
	*registers = (struct user_registers){.ip = words[IP], .sp = sp};
	registers->compat = code_is_32_bit(words[CS]);
	user_register_set(registers, registers->compat ? 5 : 6, words[BP]);
	user_register_set(registers, 3, words[BX]);
	return true;
}

/* arch/x86/include/asm/page_64_types.h: 16 KB since 3.15, twice that with KASAN, four times with
 * KASAN_EXTRA (4.18 to 5.0) */
const uint32_t registers_stack_sizes[] = {16384, 32768, 65536, 8192, 0};

/* TOP_OF_KERNEL_STACK_PADDING is 0, or 16 with FRED (6.9), on 64 bits */
const uint32_t registers_below_top[] = {PT_REGS_BYTES, PT_REGS_BYTES + 16, PT_REGS_BYTES + 8, 0};

const char registers_text[] =
	"struct pt_regs { unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx,\n"
	"	si, di, orig_ax, ip, cs, flags, sp, ss; };\n"
	"#undef PT_REGS_PARM1\n"
	"#define PT_REGS_PARM1(ctx) ((ctx)->di)\n"
	"#undef PT_REGS_PARM2\n"
	"#define PT_REGS_PARM2(ctx) ((ctx)->si)\n";
