/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_frames.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "unwind/frame_step.h"
#include "unwind/runtime/java_memory.h"
#include "unwind/unwinder.h"
#include "unwind/walker.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* code comes and goes */
#define LIBRARIES_MAX 8 /* mappings of files named libjvm.so that are looked at */
#define LOCATIONS_KEPT_MAX 65536
#define LOCATIONS_CALLS 16384 /* reads of memory for all look-ups of PROCESS_OLD_NS */

/* Bits of java_process.locations beside JAVA_CODE_*. */
#define LOCATION_LOOKED (1ull << 32)
#define LOCATION_USED (1ull << 36) /* looked up since the words got old last */

struct java_process {
	struct cache_entry entry; /* key: pid */
	int64_t maps_read_ns;	  /* read_ns of the maps that were searched */
	int64_t kept_ns;
	const struct module *module; /* libjvm.so; distance: how far from its addresses it lies */
	uint64_t distance;
	struct runtime_standing standing;
	uint32_t heap_count;
	struct java_range heaps[JAVA_HEAPS_MAX];
	struct index locations; /* addresses to words of java_code */
	uint32_t calls_left;
};

static void process_drop(void *entry)
{
	index_clear(&((struct java_process *)entry)->locations);
}

struct java_frames *java_frames_new(const char *proc_root, struct module_table *modules,
				    struct parser *parser)
{
	struct java_frames *java = memory_get(sizeof(*java));

	*java = (struct java_frames){
		.reader = {.proc_root = proc_root, .parser = parser},
		.modules = modules,
		.processes = {.entry_bytes = sizeof(struct java_process),
			      .entries_max = PROCESSES_MAX,
			      .drop = process_drop},
	};
	return java;
}

void java_frames_clear(struct java_frames *java)
{
	cache_done(&java->processes);
}

void java_frames_sweep(struct java_frames *java, int64_t now_ns)
{
	cache_sweep(&java->processes, now_ns, PROCESS_IDLE_NS);
}

static const struct module *hotspot_find(const struct java_frames *java,
					 const struct stack_thread *thread,
					 struct process_maps *maps, struct thread_memory *memory,
					 uint64_t *distance)
{
	unsigned int left = LIBRARIES_MAX;

	for (size_t i = 0; i < maps->count && left; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		const struct runtime_exports *exports;
		struct module *module;
		uint64_t address;

		if (!mapping->path || !strstr(mapping->path, "/libjvm.so"))
			continue;
		left--;
		mapping = mapping_find(maps, java->reader.proc_root, thread, java->modules, memory,
				       mapping->start);
		if (!mapping || mapping->jit || mapping->module == MODULE_NONE)
			continue;
		module = java->modules->modules[mapping->module];
		exports = module_exports(java->modules, module);
		if (!exports->java[MODULE_JAVA_TYPES] ||
		    !elf_address_of(&module->elf, mapping->offset, &address))
			continue;
		*distance = mapping->start - address;
		return module;
	}
	return NULL;
}

/* Requests a parser's answer about a process and addresses. anew: its heaps are read again, too.
 * NULL: nothing is known. */
static const struct java_code_answer *code_request(struct java_frames *java,
						   struct java_process *process,
						   const struct stack_thread *thread, bool anew,
						   const uint64_t *addresses, uint32_t count)
{
	static struct java_code_answer answer;
	const size_t head = offsetof(struct java_code_answer, codes);
	const struct runtime_request request = {.kind = RUNTIME_JAVA_CODE,
						.count = count,
						.pid = thread->pid,
						.tid = thread->tid,
						.now_ns = thread->now_ns,
						.distance = process->distance,
						.exports = process->module->exports,
						.calls_left = process->calls_left,
						.anew = anew};
	ssize_t bytes = runtime_request(&java->reader, &process->standing, &request, addresses,
					&answer, sizeof(answer));

	if (bytes < (ssize_t)head || !answer.known || answer.heap_count > JAVA_HEAPS_MAX ||
	    answer.count > count || (size_t)bytes != head + answer.count * sizeof(answer.codes[0]))
		return NULL;
	process->calls_left -=
		answer.calls_used < process->calls_left ? answer.calls_used : process->calls_left;
	return &answer;
}

/* Makes a word of java_process.locations from one that a parser sent. */
static uint64_t location_of_code(uint64_t code)
{
	uint32_t words = (uint32_t)code;

	if (words > JAVA_FRAME_WORDS_MAX)
		return LOCATION_LOOKED;
	return LOCATION_LOOKED | words |
	       (code & (JAVA_CODE_FOUND | JAVA_CODE_INCOMPLETE | JAVA_CODE_INTERPRETER));
}

/* Forgets what is known of addresses, and fills those that were looked up since the last call.
 * Returns how many. */
static uint32_t locations_take(struct java_process *process, int64_t now_ns,
			       uint64_t addresses[JAVA_CODES_MAX])
{
	uint64_t address, location;
	uint32_t count = 0;
	size_t at = 0;

	while (count < JAVA_CODES_MAX && index_next(&process->locations, &at, &address, &location))
		if (location & LOCATION_USED)
			addresses[count++] = address;
	index_clear(&process->locations);
	process->calls_left = LOCATIONS_CALLS;
	process->kept_ns = now_ns;
	return count;
}

/* Renews what is known of a process after its maps were read. */
static void process_renew(struct java_frames *java, struct java_process *process,
			  const struct stack_thread *thread, struct process_maps *maps,
			  struct thread_memory *memory)
{
	static uint64_t addresses[JAVA_CODES_MAX];
	const struct java_code_answer *answer = NULL;
	uint64_t distance = 0;
	const struct module *module = hotspot_find(java, thread, maps, memory, &distance);
	bool other = module != process->module || distance != process->distance;
	uint32_t count = 0;

	process->maps_read_ns = maps->read_ns;
	process->module = module;
	process->distance = distance;
	if (other || thread->now_ns - process->kept_ns >= PROCESS_OLD_NS)
		count = locations_take(process, thread->now_ns, addresses);
	if (module)
		answer = code_request(java, process, thread, true, addresses, other ? 0 : count);
	process->heap_count = answer ? answer->heap_count : 0;
	if (!answer)
		return;
	memcpy(process->heaps, answer->heaps, sizeof(process->heaps));
	for (uint32_t i = 0; i < answer->count; i++)
		*index_put(&process->locations, addresses[i], NULL) =
			location_of_code(answer->codes[i]);
}

/* Returns whether there is code at an address in a heap; fills *code from what is known, or by a
 * request now. */
static bool code_get(struct java_frames *java, struct java_process *process,
		     const struct stack_thread *thread, uint64_t address, struct java_code *code)
{
	const struct java_code_answer *answer;
	uint64_t *location;

	if (process->locations.used >= LOCATIONS_KEPT_MAX)
		index_clear(&process->locations);
	location = index_put(&process->locations, address, NULL);
	if (!(*location & LOCATION_LOOKED) && process->calls_left) {
		answer = code_request(java, process, thread, false, &address, 1);
		*location = answer && answer->count ? location_of_code(answer->codes[0])
						    : LOCATION_LOOKED;
	}
	*location |= LOCATION_USED;
	*code = (struct java_code){.frame_words = (uint32_t)*location,
				   .incomplete = *location & JAVA_CODE_INCOMPLETE,
				   .interpreter = *location & JAVA_CODE_INTERPRETER};
	return *location & JAVA_CODE_FOUND;
}

bool java_frames_find(struct java_frames *java, const struct stack_thread *thread,
		      struct process_maps *maps, struct thread_memory *memory, uint64_t address,
		      struct java_code *code)
{
	bool added;
	struct java_process *process =
		cache_get(&java->processes, (uint64_t)thread->pid, thread->now_ns, &added);

	*code = (struct java_code){.frame_words = 0};
	if (added || process->maps_read_ns != maps->read_ns)
		process_renew(java, process, thread, maps, memory);
	for (uint32_t i = 0; i < process->heap_count; i++)
		if (address >= process->heaps[i].first && address < process->heaps[i].end)
			return code_get(java, process, thread, address, code);
	return false;
}

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
