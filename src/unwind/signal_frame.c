/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/signal_frame.h"
#include "unwind/frame_step.h"

#include <elf.h>
#include <string.h>

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
