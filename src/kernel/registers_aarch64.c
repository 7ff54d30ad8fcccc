/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/registers.h"
#include "kernel/record.h"

/* Words of struct pt_regs, arch/arm64/include/asm/ptrace.h, that bpf_text/thread_state.h keeps */
enum { X1, X2, X3, X4, X5, PSTATE, ORIG_X0, SYSCALLNO, WORDS };

_Static_assert(WORDS == THREAD_REGISTER_COUNT, "these are the words of the record");

#define PSTATE_MODE32 0x10 /* PSR_MODE32_BIT: came from AArch32 code */

unsigned int registers_kept(const uint64_t *words, uint64_t sp, uint64_t frame)
{
	(void)words;
	(void)sp;
	(void)frame;
	/* no mark is needed: 64-bit code has no 32-bit entry */
	return REGISTERS_STACK | REGISTERS_PRESERVED;
}

/* el0_svc_common() in arch/arm64/kernel/syscall.c keeps x0, which the result will replace, and the
 * number. syscallno is an s32 (an u64 until 4.13), whatever follows it in the word (pmr
 * since 6.13): NO_SYSCALL, -1, where the entry was none (kernel_entry in entry.S). */
void registers_decode(const uint64_t *words, bool marked, struct registers_call *call)
{
	(void)marked;
	call->compat = words[PSTATE] & PSTATE_MODE32;
	call->nr = (int32_t)words[SYSCALLNO];
	call->arg[0] = words[ORIG_X0];
	for (int i = 1; i < 6; i++)
		call->arg[i] = words[X1 + i - 1];
	for (int i = 0; call->compat && i < 6; i++)
		call->arg[i] = (uint32_t)call->arg[i];
}

void registers_user(const uint64_t *words, struct user_registers *registers)
{
	*registers = (struct user_registers){.ip = words[13], .sp = words[12]};
	for (int i = 0; i < 12; i++)
		user_register_set(registers, 19 + i, words[i]);
}

bool registers_user_few(const uint64_t *words, uint64_t sp, struct user_registers *registers)
{
	(void)words;
	(void)sp;
	(void)registers;
	return false; /* without x29 and x30 no walk gets far */
}

/* enum perf_event_arm_regs of arch/arm64/include/uapi/asm/perf_regs.h: x0 to x30, sp, pc */
const uint64_t registers_sample_mask = (1ull << 33) - 1;

void registers_sampled(const uint64_t *words, bool compat, struct user_registers *registers)
{
	*registers = (struct user_registers){.ip = words[32], .sp = words[31], .compat = compat};
	for (int i = 0; i < 31; i++)
		user_register_set(registers, i, words[i]);
}

/* arch/arm64/include/asm/memory.h: 16 KB, or a page where that is more (64 KB), or 32 KB with KASAN
 */
const uint32_t registers_stack_sizes[] = {16384, 65536, 32768, 0};

/* task_pt_regs() in arch/arm64/include/asm/processor.h: sizeof(struct pt_regs), which is 304 before
 * 4.14 and lies 16 below the top there; then 320, from 5.10 on 336, in 7.2 320 again; a multiple of
 * 16 always */
const uint32_t registers_below_top[] = {336, 320, 352, 0};

/* A kprobe program sees struct user_pt_regs (bpf_user_pt_regs_t). */
const uint16_t registers_arguments[2] = {0, 8}; /* x0, x1 */

const char registers_text[] = "struct pt_regs { unsigned long regs[31], sp, pc, pstate; };\n"
			      "#undef PT_REGS_PARM1\n"
			      "#define PT_REGS_PARM1(ctx) ((ctx)->regs[0])\n"
			      "#undef PT_REGS_PARM2\n"
			      "#define PT_REGS_PARM2(ctx) ((ctx)->regs[1])\n"
			      "#undef PT_REGS_PARM3\n"
			      "#define PT_REGS_PARM3(ctx) ((ctx)->regs[2])\n";
