/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/registers.h"
#include "kernel/own_switch.h"
#include "kernel/record.h"

#include <sys/syscall.h>

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

unsigned int registers_kept(const uint64_t *words, uint64_t sp, uint64_t frame)
{
	unsigned int kept = 0;

	if (sp < frame && frame - sp < OWN_SWITCH_STEP)
		kept |= REGISTERS_STACK;
	if (words[BP] == frame)
		kept |= REGISTERS_PRESERVED;
	/* a mark that an earlier entry left is none */
	if (kept & REGISTERS_STACK && words[CX] == words[IP])
		kept |= REGISTERS_MARKED;
	return kept;
}

/* True for a program that has not begun: exec took the mark with all other registers
 * (ELF_PLAT_INIT, arch/x86/include/asm/elf.h), and the segment is the new program's. With these
 * numbers int 0x80 makes oldolduname and timerfd_create, which have arguments. */
static bool executed(const uint64_t *words)
{
	return (words[ORIG_AX] == SYS_execve || words[ORIG_AX] == SYS_execveat) &&
	       !(words[CX] | words[BX] | words[DX] | words[SI] | words[DI] | words[BP]);
}

void registers_decode(const uint64_t *words, bool marked, struct registers_call *call)
{
	static const unsigned char order[2][6] = {{DI, SI, DX, R10, R8, R9},
						  {BX, CX, DX, SI, DI, BP}};

	/* 64-bit code may use int 0x80, too */
	call->compat = !executed(words) &&
		       (code_is_32_bit(words[CS]) ||
			(marked && (int64_t)words[ORIG_AX] >= 0 && words[CX] != words[IP]));
	call->nr = call->compat ? (int32_t)words[ORIG_AX] : (int64_t)words[ORIG_AX];
	for (int i = 0; i < 6; i++)
		call->arg[i] = call->compat ? (uint32_t)words[order[1][i]] : words[order[0][i]];
}

/* word: index of a word as the record keeps them, bp to di. */
static void dwarf_set(struct user_registers *registers, int word, uint64_t value)
{
	static const int numbers[2][DI + 1] = {
		{6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5},
		{5, 3, -1, -1, -1, -1, 0, 1, 2, 6, 7},
	};
	int number = numbers[registers->compat][word];

	if (number >= 0)
		user_register_set(registers, number, value);
}

void registers_user(const uint64_t *words, struct user_registers *registers)
{
	*registers = (struct user_registers){.ip = words[16], .sp = words[19]};
	registers->compat = code_is_32_bit(words[17]);
	/* r15 to r12, then as in the record */
	for (int i = 0; i < 4 && !registers->compat; i++)
		user_register_set(registers, 15 - i, words[i]);
	for (int i = BP; i <= DI; i++)
		dwarf_set(registers, i, words[4 + i]);
}

bool registers_user_few(const uint64_t *words, uint64_t sp, struct user_registers *registers)
{
	*registers = (struct user_registers){.ip = words[IP], .sp = sp};
	registers->compat = code_is_32_bit(words[CS]);
	for (int i = BP; i <= DI; i++)
		dwarf_set(registers, i, words[i]);
	return true;
}

/* enum perf_event_x86_regs of arch/x86/include/uapi/asm/perf_regs.h: ax, bx, cx, dx, si, di, bp,
 * sp, ip, and r8 to r15 from bit 16 on */
const uint64_t registers_sample_mask = 0xff01ff;

/* True if registers are lacking: until 5.10 the kernel has -1 for those that a system call need not
 * save. */
static bool saved_lacking(const uint64_t *words)
{
	return (words[1] & words[6] & words[13] & words[14] & words[15] & words[16]) == UINT64_MAX;
}

void registers_sampled(const uint64_t *words, bool compat, struct user_registers *registers)
{
	/* DWARF's numbers of those words; -1: none, sp and ip are apart */
	static const int numbers[2][17] = {
		{0, 3, 2, 1, 4, 5, 6, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15},
		{0, 3, 1, 2, 6, 7, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
	};
	bool lacking = saved_lacking(words);

	*registers = (struct user_registers){.ip = words[8], .sp = words[7], .compat = compat};
	for (int i = 0; i < 17; i++)
		if (numbers[compat][i] >= 0 && !(lacking && words[i] == UINT64_MAX))
			user_register_set(registers, numbers[compat][i], words[i]);
}

/* arch/x86/include/asm/page_64_types.h: 16 KB since 3.15, twice that with KASAN, four times with
 * KASAN_EXTRA (4.18 to 5.0) */
const uint32_t registers_stack_sizes[] = {16384, 32768, 65536, 8192, 0};

/* TOP_OF_KERNEL_STACK_PADDING is 0, or 16 with FRED (6.9), on 64 bits */
const uint32_t registers_below_top[] = {PT_REGS_BYTES, PT_REGS_BYTES + 16, PT_REGS_BYTES + 8, 0};

const uint16_t registers_arguments[2] = {14 * 8, 13 * 8}; /* di, si */

const char registers_text[] =
	"struct pt_regs { unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx,\n"
	"	si, di, orig_ax, ip, cs, flags, sp, ss; };\n"
	"#undef PT_REGS_PARM1\n"
	"#define PT_REGS_PARM1(ctx) ((ctx)->di)\n"
	"#undef PT_REGS_PARM2\n"
	"#define PT_REGS_PARM2(ctx) ((ctx)->si)\n"
	"#undef PT_REGS_PARM3\n"
	"#define PT_REGS_PARM3(ctx) ((ctx)->dx)\n";
