/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of a thread that this one has stopped by ptrace, in the form that a walk needs. */
#ifndef TSNAP_TESTS_THREAD_REGISTERS_H
#define TSNAP_TESTS_THREAD_REGISTERS_H

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/user_registers.h"

static inline int thread_registers_get(pid_t tid, struct user_registers *registers)
{
	uint64_t words[64];
	struct iovec set = {words, sizeof(words)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &set))
		return -errno;
	memset(registers, 0, sizeof(*registers));
#if defined(__aarch64__)
	for (int i = 19; i <= 30; i++)
		user_register_set(registers, i, words[i]);
	registers->sp = words[31];
	registers->ip = words[32];
#else
	if (set.iov_len < 27 * sizeof(*words)) {
		/* i386: bx cx dx si di bp ax ds es fs gs orig_ax ip cs flags sp ss, 32 bits each */
		const uint32_t *narrow = (const uint32_t *)words;

		registers->compat = true;
		registers->ip = narrow[12];
		registers->sp = narrow[15];
		user_register_set(registers, 3, narrow[0]);
		user_register_set(registers, 1, narrow[1]);
		user_register_set(registers, 2, narrow[2]);
		user_register_set(registers, 5, narrow[5]);
		user_register_set(registers, 6, narrow[3]);
		user_register_set(registers, 7, narrow[4]);
		return 0;
	}
	/* r15 r14 r13 r12 bp bx ... ip cs flags sp */
	user_register_set(registers, 15, words[0]);
	user_register_set(registers, 14, words[1]);
	user_register_set(registers, 13, words[2]);
	user_register_set(registers, 12, words[3]);
	user_register_set(registers, 6, words[4]);
	user_register_set(registers, 3, words[5]);
	/* ... dx si di: vfork has its return address in di */
	user_register_set(registers, 1, words[12]);
	user_register_set(registers, 4, words[13]);
	user_register_set(registers, 5, words[14]);
	registers->ip = words[16];
	registers->sp = words[19];
#endif
	return 0;
}

#endif
