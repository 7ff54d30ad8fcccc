/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_frames.h"
#include "base/clock.h"
#include "base/index.h"
#include "unwind/runtime/java_service.h"

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

void java_frames_init(struct java_frames *java, const char *proc_root, struct module_table *modules,
		      struct parser *parser)
{
	*java = (struct java_frames){
		.reader = {.proc_root = proc_root, .parser = parser},
		.modules = modules,
		.processes = {.entry_bytes = sizeof(struct java_process),
			      .entries_max = PROCESSES_MAX,
			      .drop = process_drop},
	};
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
	static union {
		char bytes[PARSER_MESSAGE_MAX];
		struct java_code_answer answer;
	} got;
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
					count * sizeof(*addresses), true, head, got.bytes);
	const struct java_code_answer *answer = &got.answer;

	if (bytes < 0 || !answer->known || answer->heap_count > JAVA_HEAPS_MAX ||
	    answer->count > count ||
	    (size_t)bytes != head + answer->count * sizeof(answer->codes[0]))
		return NULL;
	process->calls_left -=
		answer->calls_used < process->calls_left ? answer->calls_used : process->calls_left;
	return answer;
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
