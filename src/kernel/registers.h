/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Meaning of the registers that were saved at the last kernel entry. One file a CPU:
 * registers_<machine>.c; CMake takes the one of the machine that is built for. */
#ifndef TSNAP_KERNEL_REGISTERS_H
#define TSNAP_KERNEL_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/user_registers.h"
#include "kernel/field_table.h"

struct registers_call {
	int64_t nr; /* negative: not in a system call */
	uint64_t arg[6];
	bool compat; /* made by 32-bit code */
};

/* Decodes a system call. words: THREAD_REGISTER_COUNT of them, as bpf_text/thread_state.h has them.
 * marked: native system calls leave their mark on this host, so that a call without it was made
 * through the 32-bit entry. */
void registers_decode(const uint64_t *words, bool marked, struct registers_call *call);

/* Decodes user registers. words: STACK_REGISTER_COUNT of them. */
void registers_user(const uint64_t *words, struct user_registers *registers);
/* Decodes user registers from THREAD_REGISTER_COUNT words, which lack some, such as sp, which the
 * caller must know. False: too many are lacking. */
bool registers_user_few(const uint64_t *words, uint64_t sp, struct user_registers *registers);

/* Registers that a perf sample is to have (PERF_SAMPLE_REGS_USER), as bits, and their decoder:
 * words in the order of the bits. compat: registers of 32-bit code. */
extern const uint64_t registers_sample_mask;
void registers_sampled(const uint64_t *words, bool compat, struct user_registers *registers);

/* What the kernel keeps of the registers of a native system call. */
enum registers_kept {
	/* a mark: on x86-64 the instruction syscall puts the user's ip into cx and the flags into
	 * r11 (with FRED it does not) */
	REGISTERS_MARKED = 1,
	/* sp: before 4.0 x86-64 leaves that of an earlier entry in its place, also for perf and in
	 * /proc/TID/syscall */
	REGISTERS_STACK = 2,
	/* what functions preserve, such as the frame pointer: before 4.16 x86-64 leaves those of an
	 * earlier entry in their place */
	REGISTERS_PRESERVED = 4,
};

/* Returns which were kept (enum registers_kept) of a call that this process made from a function
 * with that frame address. words: THREAD_REGISTER_COUNT of them; sp: the word of sp. */
unsigned int registers_kept(const uint64_t *words, uint64_t sp, uint64_t frame);

/* Sizes of a kernel stack (THREAD_SIZE), likeliest first, 0 at the end. */
extern const uint32_t registers_stack_sizes[];

/* Distances of the saved registers from the end of the kernel stack, likeliest first, 0 at the end.
 */
extern const uint32_t registers_below_top[];

/* Offsets of the first two arguments of a function in the struct pt_regs of a kprobe program. */
extern const uint16_t registers_arguments[2];

/* struct pt_regs and PT_REGS_PARMn for kprobe programs, as C text: the generated header has no
 * other. */
extern const char registers_text[];

/* Finds the bytes from task->stack to the saved registers, *offset, and which of them native calls
 * keep (enum registers_kept), by sleeping in a known system call and looking where its own
 * arguments are: the size of the stack and the padding at its end differ by configuration (KASAN,
 * FRED). 0; -ENOENT where no candidate fits; another -errno where trying is not possible (no perf
 * software events). */
int calibrate_registers(const struct field_layout *layout, uint32_t *offset, unsigned int *kept);

#endif
