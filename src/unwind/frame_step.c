/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_step.h"

#include <errno.h>

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
