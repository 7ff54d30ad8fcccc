/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/registers.h"

/* struct pt_regs, arch/arm64/include/asm/ptrace.h: x0 to x30, sp, pc, pstate, orig_x0, syscallno
 * (s32) */
enum { SP = 31, PC, PSTATE, ORIG_X0, SYSCALLNO, WORDS };

#define PSTATE_MODE32 0x10 /* PSR_MODE32_BIT */

bool registers_marked(const uint64_t *words)
{
	(void)words; /* and none is needed: 64-bit code has no 32-bit entry */
	return false;
}

void registers_decode(const uint64_t *words, bool marked, struct registers_call *call)
{
	(void)marked;
	call->compat = words[PSTATE] & PSTATE_MODE32;
	call->nr = (int32_t)words[SYSCALLNO];
	call->arg[0] = words[ORIG_X0];
	for (int i = 1; i < 6; i++)
		call->arg[i] = words[i];
	for (int i = 0; call->compat && i < 6; i++)
		call->arg[i] = (uint32_t)call->arg[i];
}

/* The struct has grown at its end: 5.4 has 304 bytes, later ones up to 352 */
const uint32_t registers_below_top[] = {336, 320, 304, 352, 288, 368, 0};

const char registers_text[] = "struct pt_regs { unsigned long regs[31], sp, pc, pstate; };\n"
			      "#undef PT_REGS_PARM1\n"
			      "#define PT_REGS_PARM1(ctx) ((ctx)->regs[0])\n"
			      "#undef PT_REGS_PARM2\n"
			      "#define PT_REGS_PARM2(ctx) ((ctx)->regs[1])\n";
