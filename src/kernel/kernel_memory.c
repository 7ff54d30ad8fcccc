/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/kernel_memory.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE_WORDS (MEMORY_STACK / 4) /* read at a time: a program's stack has 512 bytes */

enum kind { KIND_NONE, KIND_WORDS, KIND_LINKS, KIND_STACK, KIND_TASK };

/* Value of the program's map. */
struct request {
	uint64_t address;
	uint64_t kind; /* the program sets it to KIND_NONE */
	uint64_t words[MEMORY_STACK];
};

struct kernel_memory {
	int program, map, event; /* -1: none */
	struct request *request; /* mapped, or a copy where a page fault runs the program */
	volatile char *page;	 /* it is touched for a page fault; NULL: none is needed */
	long page_bytes;
};

#define AT(member) ((short)offsetof(struct request, member))
#define WORD_AT(i) ((short)(AT(words) + 8 * (i)))
enum { KEY = -8, PIECE = KEY - 8 * PIECE_WORDS };

#define COUNT_(...) ((short)(sizeof((struct bpf_insn[]){__VA_ARGS__}) / sizeof(struct bpf_insn)))
#define END_() BPF_SET_(BPF_REG_0, 0), BPF_EXIT_()
/* Instructions for requests of one kind, which is in register 1. */
#define FOR_(kind, ...)                                                                      \
	BPF_OP_(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_1, 0, COUNT_(__VA_ARGS__, END_()), kind), \
		__VA_ARGS__, END_()
/* Reads so many words at register 7 + from into the program's stack: helpers before 4.14 do not
 * write to maps. */
#define READ_(count, from)                                                        \
	BPF_STACK_(BPF_REG_1, PIECE), BPF_SET_(BPF_REG_2, 8 * (count)),           \
		BPF_COPY_(BPF_REG_3, BPF_REG_7), BPF_ADD_(BPF_REG_3, 8 * (from)), \
		BPF_CALL_(helper)
#define KEEP_(i, to)                                       \
	BPF_LOAD_(BPF_REG_1, BPF_REG_10, PIECE + 8 * (i)), \
		BPF_STORE_(BPF_REG_6, WORD_AT((to) + (i)), BPF_REG_1)
#define KEEP_8_(i, to)                                                            \
	KEEP_(i, to), KEEP_((i) + 1, to), KEEP_((i) + 2, to), KEEP_((i) + 3, to), \
		KEEP_((i) + 4, to), KEEP_((i) + 5, to), KEEP_((i) + 6, to), KEEP_((i) + 7, to)
#define PIECE_(from)                                                                     \
	READ_(PIECE_WORDS, from), KEEP_8_(0, from), KEEP_8_(8, from), KEEP_8_(16, from), \
		KEEP_8_(24, from)
#define FOLLOW_(i)                                            \
	READ_(1, 0), BPF_LOAD_(BPF_REG_7, BPF_REG_10, PIECE), \
		BPF_STORE_(BPF_REG_6, WORD_AT(i), BPF_REG_7)
#define FOLLOW_8_(i)                                                                        \
	FOLLOW_(i), FOLLOW_((i) + 1), FOLLOW_((i) + 2), FOLLOW_((i) + 3), FOLLOW_((i) + 4), \
		FOLLOW_((i) + 5), FOLLOW_((i) + 6), FOLLOW_((i) + 7)
_Static_assert(PIECE_WORDS == 32 && MEMORY_LINKS == 64, "as the program has them");

/* Register 6: the map's value, 7: the address. Some 1000 instructions, without a way back. */
static int program_load(int map, bool by_fault, int helper)
{
	const struct bpf_insn program[] = {
		BPF_STORE_IMM_(BPF_REG_10, KEY, 0),
		BPF_MAP_(BPF_REG_1, map),
		BPF_STACK_(BPF_REG_2, KEY),
		BPF_CALL_(BPF_FUNC_map_lookup_elem),
		BPF_OP_(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 2, 0),
		END_(),
		BPF_COPY_(BPF_REG_6, BPF_REG_0),
		BPF_LOAD_(BPF_REG_7, BPF_REG_6, AT(address)),
		BPF_LOAD_(BPF_REG_1, BPF_REG_6, AT(kind)),
		BPF_STORE_IMM_(BPF_REG_6, AT(kind), KIND_NONE),
		FOR_(KIND_WORDS, READ_(MEMORY_WORDS, 0), KEEP_8_(0, 0)),
		FOR_(KIND_LINKS, FOLLOW_8_(0), FOLLOW_8_(8), FOLLOW_8_(16), FOLLOW_8_(24),
		     FOLLOW_8_(32), FOLLOW_8_(40), FOLLOW_8_(48), FOLLOW_8_(56)),
		FOR_(KIND_STACK, PIECE_(0), PIECE_(32), PIECE_(64), PIECE_(96)),
		FOR_(KIND_TASK, BPF_CALL_(BPF_FUNC_get_current_task),
		     BPF_STORE_(BPF_REG_6, WORD_AT(0), BPF_REG_0)),
		END_(),
	};

	return bpf_call_load_described(&(struct bpf_load){
		.type = by_fault ? BPF_PROG_TYPE_PERF_EVENT : BPF_PROG_TYPE_RAW_TRACEPOINT,
		.name = "ts_memory",
		.instructions = program,
		.count = sizeof(program) / sizeof(program[0])});
}

/* Has page faults of this thread run the program. */
static int faults_open(struct kernel_memory *memory)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .sample_period = 1,
				       .disabled = 1};
	void *page;

	memory->page_bytes = sysconf(_SC_PAGESIZE);
	page = mmap(NULL, (size_t)memory->page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	memory->page = page;
	munlock(page,
		(size_t)memory->page_bytes); /* a locked page can't be given back (mlockall) */
	memory->request = memory_get(sizeof(*memory->request));
	memory->event = perf_call_open(&attr, 0, -1);
	return memory->event < 0 ? memory->event : perf_call_run(memory->event, memory->program);
}

static int request_open(struct kernel_memory *memory, bool by_fault)
{
	void *mapped = NULL;
	int result;

	memory->map = by_fault ? bpf_call_map(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
					      sizeof(struct request), 1)
			       : bpf_call_map_mappable(sizeof(struct request), 1);
	if (memory->map < 0)
		return memory->map;
	result = memory->program = program_load(memory->map, by_fault, BPF_FUNC_probe_read_kernel);
	if (result < 0) /* until 5.4 */
		result = memory->program = program_load(memory->map, by_fault, BPF_FUNC_probe_read);
	if (result < 0 || by_fault)
		return result < 0 ? result : faults_open(memory);
	result = bpf_call_map_mapped(memory->map, sizeof(struct request), &mapped);
	memory->request = mapped;
	return result;
}

static int program_run(struct kernel_memory *memory)
{
	const uint32_t key = 0;

	if (!memory->page)
		return bpf_call_run(memory->program, 0);
	if (bpf_update_elem(memory->map, (void *)&key, memory->request, BPF_ANY) ||
	    madvise((void *)memory->page, (size_t)memory->page_bytes, MADV_DONTNEED))
		return -errno;
	(void)*memory->page;
	return bpf_lookup_elem(memory->map, (void *)&key, memory->request) ? -errno : 0;
}

static const uint64_t *request_run(struct kernel_memory *memory, enum kind kind, uint64_t address)
{
	struct request *request = memory->request;

	request->address = address;
	request->kind = kind;
	if (program_run(memory) || request->kind != KIND_NONE)
		memset(request->words, 0, sizeof(request->words));
	return request->words;
}

const uint64_t *kernel_memory_words(struct kernel_memory *memory, uint64_t address)
{
	return request_run(memory, KIND_WORDS, address);
}

const uint64_t *kernel_memory_links(struct kernel_memory *memory, uint64_t address)
{
	return request_run(memory, KIND_LINKS, address);
}

const uint64_t *kernel_memory_stack(struct kernel_memory *memory, uint64_t address)
{
	return request_run(memory, KIND_STACK, address);
}

uint64_t kernel_memory_task(struct kernel_memory *memory)
{
	return *request_run(memory, KIND_TASK, 0);
}

int kernel_memory_open(struct kernel_memory **memory, bool by_fault)
{
	struct kernel_memory *opened = memory_get(sizeof(*opened));
	int result;

	*opened = (struct kernel_memory){.program = -1, .map = -1, .event = -1};
	result = request_open(opened, by_fault);
	if (result >= 0 && (!opened->request || !kernel_memory_task(opened)))
		result = -ENODATA; /* the program did not run */
	if (result < 0) {
		kernel_memory_close(opened);
		return result;
	}
	*memory = opened;
	return 0;
}

void kernel_memory_close(struct kernel_memory *memory)
{
	if (!memory)
		return;
	if (memory->event >= 0)
		close(memory->event);
	if (memory->program >= 0)
		close(memory->program);
	if (memory->map >= 0)
		close(memory->map);
	if (memory->page) {
		munmap((void *)memory->page, (size_t)memory->page_bytes);
		free(memory->request);
	} else if (memory->request) {
		munmap(memory->request, sizeof(*memory->request));
	}
	free(memory);
}
