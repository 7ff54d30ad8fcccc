/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/memory.h"
#include "unwind/frame_step.h"
#include "unwind/runtime/java_frames.h"
#include "unwind/unwinder.h"
#include "unwind/walker.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define POP_FP 0x5d /* pop %rbp */
#define FP_BYTES 3
#define JAVA_ARGUMENT_BYTES_MAX 65536

/* Goes to the caller whose return address is in that word of the stack; the frame pointer of x86 is
 * always saved below it. -EBADMSG: the word is no return address. */
static int jit_return(struct walker *walker, uint32_t word)
{
	const struct machine *machine = walker->machine;
	struct user_registers *registers = &walker->registers;
	uint64_t at = registers->sp + 8ull * word, ip, fp;
	bool fp_known = user_register_get(registers, machine->fp, &fp);
	int err = word_read(machine, &walker->unwinder->memory, at, &ip);

	if (err)
		return err;
	if (!ip || (walker->exact ? !walker_is_return(walker, ip) : !walker_code(walker, ip - 1)))
		return -EBADMSG;
	if (word)
		fp_known = walker_word(walker, at - 8, &fp);
	*registers = (struct user_registers){.ip = ip, .sp = at + 8};
	if (fp_known)
		user_register_set(registers, machine->fp, fp);
	return 0;
}

/* True if x86-64 code is about to make its frame, having saved the frame pointer, or to take the
 * frame pointer back. */
static bool fp_is_on_top(struct walker *walker)
{
	/* mov %rsp,%rbp, in its two encodings */
	static const uint8_t sets_fp[2][FP_BYTES] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}};
	uint8_t bytes[FP_BYTES];

	return !thread_memory_read_code(&walker->unwinder->memory, walker->registers.ip, bytes,
					sizeof(bytes)) &&
	       (bytes[0] == POP_FP || !memcmp(bytes, sets_fp[0], FP_BYTES) ||
		!memcmp(bytes, sets_fp[1], FP_BYTES));
}

/* Goes to the caller of code that HotSpot has compiled, for x86-64. Where the code was interrupted
 * it may be about to make its frame, or have just taken it back. Frames have an even number of
 * words, so that no other frame's return address is taken for its own. */
static int java_step(struct walker *walker, const struct java_code *code)
{
	int err;

	if (!walker->exact)
		return jit_return(walker, code->frame_words - 1);
	if (code->incomplete && (!jit_return(walker, 0) || !jit_return(walker, 1)))
		return 0;
	err = jit_return(walker, code->frame_words - 1);
	return err && !jit_return(walker, 0) ? 0 : err;
}

/* Corrects sp after the interpreter's frame: bytecode's caller may have had less on its stack than
 * the callee was called with; where the caller's stack ended is saved below the frame pointer
 * (frame_x86.hpp, interpreter_frame_sender_sp_offset). */
static void java_interpreter_leave(struct walker *walker, uint64_t fp)
{
	struct user_registers *registers = &walker->registers;
	uint64_t sp;

	if (walker_word(walker, fp - 8, &sp) && sp % 8 == 0 && sp > registers->sp &&
	    sp - registers->sp <= JAVA_ARGUMENT_BYTES_MAX)
		registers->sp = sp;
}

int walker_leave_jit(struct walker *walker)
{
	struct user_registers before = walker->registers;
	struct java_code java = {.frame_words = 0};
	bool x86 = walker->machine->elf == EM_X86_64;
	int err;

	if (x86 && walker->exact && fp_is_on_top(walker) && !jit_return(walker, 1))
		return 0;
	if (x86 &&
	    java_frames_find(walker->unwinder->java, walker->thread, walker->maps,
			     &walker->unwinder->memory, before.ip - !walker->exact, &java) &&
	    java.frame_words) {
		err = java_step(walker, &java);
		if (!err || err == -ENOSPC)
			return err;
	}
	if (walker->exact && walker_return_at_once(walker))
		return 0;
	err = frame_step_pointer(walker->machine, &walker->unwinder->memory, &walker->registers);
	if (!err && java.interpreter)
		java_interpreter_leave(walker, before.word[walker->machine->fp]);
	return err;
}

struct java_frames *walker_jit_new(const char *proc_root, struct module_table *modules,
				   struct parser *memory)
{
	struct java_frames *java = memory_get(sizeof(*java));

	java_frames_init(java, proc_root, modules, memory);
	return java;
}

void walker_jit_forget(struct java_frames *java)
{
	java_frames_clear(java);
}

void walker_jit_sweep(struct java_frames *java, int64_t now_ns)
{
	java_frames_sweep(java, now_ns);
}
