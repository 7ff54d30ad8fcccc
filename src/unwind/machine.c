/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/machine.h"

#include <elf.h>
#include <stddef.h>

#if defined(__aarch64__)
static const struct machine native = {
	.elf = EM_AARCH64,
	.word_bytes = 8,
	.sp = 31,
	.fp = 29,
	.ra = 30,
	.ra_in_register = true,
	/* pointer authentication signs in the bits above the address (52 bits with large ones) */
	.address_mask = (1ull << 52) - 1,
	.saved_count = 12,
	.saved = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30},
};
static const struct machine *const narrow;
#elif defined(__x86_64__)
static const struct machine native = {
	.elf = EM_X86_64,
	.word_bytes = 8,
	.sp = 7,
	.fp = 6,
	.ra = 16,
	.address_mask = UINT64_MAX,
	.saved_count = 6,
	.saved = {3, 6, 12, 13, 14, 15},
};
static const struct machine i386 = {
	.elf = EM_386,
	.word_bytes = 4,
	.sp = 4,
	.fp = 5,
	.ra = 8,
	.address_mask = UINT32_MAX,
	.saved_count = 4,
	.saved = {3, 5, 6, 7},
};
static const struct machine *const narrow = &i386;
#else
#error "unknown CPU: its registers are described here"
#endif

const struct machine *machine_of(bool compat)
{
	return compat ? narrow : &native;
}

const struct machine *machine_of_elf(uint16_t elf)
{
	if (elf == native.elf)
		return &native;
	return narrow && elf == narrow->elf ? narrow : NULL;
}
