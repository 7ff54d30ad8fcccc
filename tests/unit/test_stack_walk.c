/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks of invalid stacks: each ends, is counted, and does no harm. tests/stack has valid ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/unwinder.h"
#include "sleeper.h"
#include "unit.h"

#if defined(__aarch64__)
#define FP 29
#else
#define FP 6
#endif

#define WORDS 8192
#define PAGE 4096

/* A child with code that is in no file and code in a file without a table, and a stack that the
 * test writes. */
struct scene {
	pid_t child;
	uint64_t *stack; /* shared with the child, at the same address */
	uint64_t code;
	char path[32];
	char *file; /* file whose first page is code; the second is not */
	struct module_table modules;
	struct unwinder unwinder;
	struct stack_walk walk;
};

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#define SIGNAL_SP 70 /* offset from the frame, in words */
#define SIGNAL_IP 71
static const uint8_t signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#else
#define MACHINE EM_X86_64
#define SIGNAL_SP 20 /* offset from the frame, in words */
#define SIGNAL_IP 21
static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#endif
#define SIGNAL_RETURN 1024 /* offset of the code in both pages; the second also begins with it */

static char *file_map(char path[32])
{
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		.e_machine = MACHINE,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {.p_type = PT_LOAD, .p_filesz = 2 * PAGE, .p_memsz = 2 * PAGE};
	char bytes[2 * PAGE], *file;
	int fd = mkstemp(strcpy(path, "/tmp/test_stack_walk.XXXXXX"));

	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
	for (size_t i = 0; i < 3; i++)
		memcpy(bytes + (size_t[]){SIGNAL_RETURN, PAGE, PAGE + SIGNAL_RETURN}[i],
		       signal_return, sizeof(signal_return));
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	file = mmap(NULL, sizeof(bytes), PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file != MAP_FAILED);
	assert_int_equal(mprotect(file, PAGE, PROT_READ | PROT_EXEC), 0);
	close(fd);
	return file;
}

/* Has the kernel bring memory of the child in, as if the child had used it. */
static void child_use(const struct scene *scene, void *memory, size_t bytes)
{
	char *copy = malloc(bytes);
	struct iovec here = {copy, bytes}, there = {memory, bytes};

	assert_int_equal(process_vm_readv(scene->child, &here, 1, &there, 1, 0), bytes);
	free(copy);
}

static int scene_open(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_non_null(scene);
	/* no memory follows it */
	scene->stack = mmap(NULL, WORDS * 8 + 4096, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED && scene->stack != MAP_FAILED);
	assert_int_equal(mprotect(scene->stack + WORDS, 4096, PROT_NONE), 0);
	memset(code, 0x90, 4096);
	scene->code = (uintptr_t)code + 64;
	scene->file = file_map(scene->path);
	scene->child = fork();
	if (!scene->child) {
		pause();
		_exit(0);
	}
	child_use(scene, scene->stack, WORDS * 8);
	child_use(scene, scene->file, 2 * PAGE);
	module_table_init(&scene->modules, NULL);
	unwinder_init(&scene->unwinder, "/proc", &scene->modules, NULL, STACK_COPY_BYTES);
	*state = scene;
	return 0;
}

static void child_end(struct scene *scene)
{
	if (scene->child) {
		kill(scene->child, SIGKILL);
		waitpid(scene->child, NULL, 0);
	}
	scene->child = 0;
}

static int scene_close(void **state)
{
	struct scene *scene = *state;

	child_end(scene);
	unwinder_done(&scene->unwinder);
	module_table_clear(&scene->modules);
	munmap(scene->stack, WORDS * 8 + 4096);
	munmap(scene->file, 2 * PAGE);
	unlink(scene->path);
	free(scene);
	return 0;
}

static void walk(struct scene *scene, uint64_t ip, uint64_t sp, uint64_t fp)
{
	const struct stack_thread thread = {scene->child, scene->child, 1, clock_monotonic_ns(), 0};
	struct user_registers registers = {.ip = ip, .sp = sp};

	user_register_set(&registers, FP, fp);
	unwinder_walk(&scene->unwinder, &thread, &registers, NULL, &scene->walk);
}

static uint64_t at(const struct scene *scene, size_t word)
{
	return (uintptr_t)&scene->stack[word];
}

static void child_write(const struct scene *scene, uint64_t to, const void *bytes, size_t count)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", scene->child);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, bytes, count, (off_t)to), count);
	close(fd);
}

/* Code that is in no file has frame pointers; the outermost one is 0. */
static void frame_pointers(void **state)
{
	struct scene *scene = *state;

	for (size_t i = 0; i < 100; i++) {
		scene->stack[10 + i * 4] = i < 99 ? at(scene, 10 + (i + 1) * 4) : 0;
		scene->stack[11 + i * 4] = scene->code + i;
	}
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_WHOLE);
	assert_int_equal(scene->walk.count, 101);
	assert_int_equal(scene->walk.frames[0].address, scene->code);
	/* a caller's frame has the byte before the return address */
	assert_int_equal(scene->walk.frames[50].address, scene->code + 48);
	assert_int_equal(scene->modules.modules[scene->walk.frames[0].module]->kind, FRAME_JIT);
}

#if defined(__x86_64__)
/* Code on a CPU may have saved the frame pointer, which is still its caller's, or may be about to
 * restore it. */
static void frame_pointers_on_top(void **state)
{
	static const uint8_t codes[][3] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}, {0x5d, 0xc3}};
	static const uint8_t call[] = {0xe8, 0, 0, 0, 0};
	struct scene *scene = *state;
	uint64_t caller = scene->code + 100;

	child_write(scene, caller - sizeof(call), call, sizeof(call));
	scene->stack[0] = at(scene, 10);
	scene->stack[1] = caller;
	scene->stack[10] = 0;
	scene->stack[11] = scene->code + 200;
	for (size_t i = 0; i < 3; i++) {
		child_write(scene, scene->code, codes[i], 3);
		walk(scene, scene->code, at(scene, 0), at(scene, 10));
		assert_int_equal(scene->walk.end, WALK_WHOLE);
		assert_int_equal(scene->walk.count, 3);
		assert_int_equal(scene->walk.frames[1].address, caller - 1);
	}
}
#endif

static void cycles_end(void **state)
{
	struct scene *scene = *state;

	scene->stack[10] = at(scene, 10);
	scene->stack[11] = scene->code;
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_LOST);
	assert_true(scene->walk.count >= 1 && scene->walk.count <= 3);
	assert_int_equal(scene->unwinder.ended[WALK_LOST], 1);
	/* a frame pointer that goes down */
	scene->stack[20] = at(scene, 10);
	scene->stack[21] = scene->code;
	walk(scene, scene->code, at(scene, 0), at(scene, 20));
	assert_int_equal(scene->walk.end, WALK_LOST);
}

/* The innermost frames of a deep stack are kept, and the outermost ones, down to the first. */
static void deep_ones_keep_both_ends(void **state)
{
	const uint32_t inner = STACK_FRAMES_MAX / 2;
	struct scene *scene = *state;
	const struct stack_walk *walked = &scene->walk;
	uint64_t first = scene->code + 64;

	for (size_t i = 0; i < 2000; i++) {
		scene->stack[10 + i * 4] = at(scene, 10 + (i + 1) * 4);
		scene->stack[11 + i * 4] = scene->code;
	}
	scene->stack[11 + 1999 * 4] = first;
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(walked->end, WALK_WHOLE);
	assert_in_range(walked->count, inner + STACK_FRAMES_MAX / 4, STACK_FRAMES_MAX);
	assert_int_equal(walked->frames[inner - 1].address, scene->code - 1);
	assert_string_equal(frame_own_name(&walked->frames[inner]), MARK_DEEP);
	assert_int_equal(walked->frames[inner + 1].address, scene->code - 1);
	assert_int_equal(walked->frames[walked->count - 1].address, first - 1);
}

static void leads_outside(void **state)
{
	struct scene *scene = *state;

	scene->stack[10] = at(scene, 20);
	scene->stack[11] = at(scene, 0); /* memory without code */
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_OUTSIDE);
	assert_int_equal(scene->walk.count, 1);
	walk(scene, 0x10, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_OUTSIDE);
	assert_int_equal(scene->walk.count, 0);
}

/* A return from a signal handler that lies after the end of the code. */
static void returns_behind_code(void **state)
{
	struct scene *scene = *state;

	scene->stack[10] = at(scene, 20);
	scene->stack[11] = (uintptr_t)scene->file + PAGE;
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_OUTSIDE);
	assert_int_equal(scene->walk.count, 1);
}

/* Returns from signal handlers are known by the file for all processes, whatever the first process
 * that is walked has made of its copy. */
static void signals_of_files(void **state)
{
	struct scene *scene = *state;
	uint64_t handler_return = (uintptr_t)scene->file + SIGNAL_RETURN;
	const uint8_t other[sizeof(signal_return)] = {0};

	scene->stack[10] = 0;
	scene->stack[11] = handler_return;
	memset(&scene->stack[12], 0, 100 * 8);
	scene->stack[12 + SIGNAL_IP] = scene->code + 8;
	scene->stack[12 + SIGNAL_SP] = at(scene, 200);
	child_write(scene, handler_return, other, sizeof(other));
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	child_write(scene, handler_return, signal_return, sizeof(signal_return));
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_WHOLE);
	assert_int_equal(scene->walk.count, 3);
	assert_string_equal(frame_own_name(&scene->walk.frames[1]), MARK_SIGNAL);
	assert_int_equal(scene->walk.frames[2].address, scene->code + 8);
}

static void stack_is_nowhere(void **state)
{
	static const uint64_t nowhere[] = {0, 8, 0x1000, 1ull << 63, UINT64_MAX, UINT64_MAX - 4096};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		walk(scene, scene->code, nowhere[i], nowhere[i] | 16);
		assert_true(scene->walk.end == WALK_UNREAD || scene->walk.end == WALK_LOST);
		assert_int_equal(scene->walk.count, 1);
	}
	/* the end of the stack's memory */
	walk(scene, scene->code, at(scene, WORDS - 1), at(scene, WORDS - 1));
	assert_int_not_equal(scene->walk.end, WALK_WHOLE);
}

/* A running thread is walked from a copy: its memory has changed since, and memory beyond the copy
 * is not read. */
static void copies(void **state)
{
	struct scene *scene = *state;
	const struct stack_thread thread = {scene->child, scene->child, 1, clock_monotonic_ns(), 0};
	struct user_registers registers = {.ip = scene->code, .sp = at(scene, 0)};
	uint64_t copy[90];

	for (size_t i = 0; i < 30; i++) {
		scene->stack[10 + i * 4] = i < 29 ? at(scene, 10 + (i + 1) * 4) : 0;
		scene->stack[11 + i * 4] = scene->code + i;
	}
	memcpy(copy, scene->stack, sizeof(copy));
	user_register_set(&registers, FP, at(scene, 10));
	memset(scene->stack, 0, sizeof(copy));
	unwinder_walk(&scene->unwinder, &thread, &registers,
		      &(struct stack_bytes){copy, sizeof(copy)}, &scene->walk);
	assert_int_equal(scene->walk.end, WALK_CUT);
	assert_int_equal(scene->walk.count, 21);
	assert_int_equal(scene->walk.frames[20].address, scene->code + 18);
	assert_int_equal(scene->unwinder.ended[WALK_CUT], 1);
	/* the next thread, which sleeps, is read directly */
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_WHOLE);
	unwinder_walk(&scene->unwinder, &thread, &registers, &(struct stack_bytes){NULL, 0},
		      &scene->walk);
	assert_int_equal(scene->walk.end, WALK_CUT);
	assert_int_equal(scene->walk.count, 1);
}

static void chains(void **state)
{
	struct scene *scene = *state;
	const struct stack_thread thread = {scene->child, scene->child, 1, clock_monotonic_ns(), 0};
	uint64_t chain[STACK_FRAMES_MAX + 1];

	for (size_t i = 0; i < STACK_FRAMES_MAX + 1; i++)
		chain[i] = scene->code + i;
	unwinder_walk_chain(&scene->unwinder, &thread, chain, 3, &scene->walk);
	assert_int_equal(scene->walk.end, WALK_WHOLE);
	assert_int_equal(scene->walk.count, 3);
	assert_int_equal(scene->walk.frames[0].address, scene->code);
	assert_int_equal(scene->walk.frames[2].address, scene->code + 1);
	unwinder_walk_chain(&scene->unwinder, &thread, chain, STACK_FRAMES_MAX + 1, &scene->walk);
	assert_int_equal(scene->walk.end, WALK_DEEP);
	chain[1] = 16;
	unwinder_walk_chain(&scene->unwinder, &thread, chain, 3, &scene->walk);
	assert_int_equal(scene->walk.end, WALK_OUTSIDE);
	assert_int_equal(scene->walk.count, 1);
}

static void dead_threads(void **state)
{
	struct scene *scene = *state;
	pid_t tid = scene->child;

	walk(scene, scene->code, at(scene, 0), 0);
	assert_int_equal(scene->walk.end, WALK_WHOLE);
	/* a zombie, whose maps are known; then no process */
	kill(tid, SIGKILL);
	waitid(P_PID, (id_t)tid, &(siginfo_t){.si_signo = 0}, WEXITED | WNOWAIT);
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_GONE);
	child_end(scene);
	scene->child = tid;
	walk(scene, scene->code, at(scene, 0), at(scene, 10));
	assert_int_equal(scene->walk.end, WALK_GONE);
	scene->child = 0;
}

static void maps_are_parsed(void **state)
{
	char code[] = "7f0a00000000-7f0a00021000 r-xp 00001000 08:01 1234    /usr/lib/a b.so";
	char data[] = "7f0a00021000-7f0a00022000 rw-p 00000000 00:00 0";
	char none[] = "7f0a00021000-7f0a00221000 ---p 00021000 08:01 1234 /usr/lib/a b.so";
	char jit[] = "7f0a00021000-7f0a00022000 rwxp 00000000 00:00 0 ";
	static const char *const bad[] = {"",
					  "-",
					  "1-2",
					  "2-1 r-xp 0 0:0 0",
					  "1-2 r-x",
					  "1-2 r-xp",
					  "1-2 r-xp 0",
					  "1-2 r-xp x 0:0 0",
					  "1-2 r-xp 0 0:0 ",
					  "11111111111111111-2 r-xp 0 0:0 0"};
	struct mapping mapping;
	char *path;

	assert_true(mapping_parse(code, &mapping, &path));
	assert_int_equal(mapping.start, 0x7f0a00000000);
	assert_int_equal(mapping.end, 0x7f0a00021000);
	assert_int_equal(mapping.offset, 0x1000);
	assert_int_equal(mapping.inode, 1234);
	assert_false(mapping.jit);
	assert_string_equal(path, "/usr/lib/a b.so");
	assert_true(mapping.executable);
	assert_true(mapping_parse(data, &mapping, &path));
	assert_false(mapping.executable);
	assert_false(mapping_parse(none, &mapping, &path));
	assert_true(mapping_parse(jit, &mapping, &path));
	assert_true(mapping.jit);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char line[64];

		strcpy(line, bad[i]);
		assert_false(mapping_parse(line, &mapping, &path));
	}
}

#define NO_PLACE UINT64_MAX

/* Returns the offset in a file of the code in those pages, by other pages of it; or NO_PLACE. */
static uint64_t place(const struct elf_file *elf, const struct elf_pages *of_file, uint64_t start,
		      uint64_t end)
{
	struct elf_pages code = {.start = start, .end = end};

	return elf_place_code(elf, of_file, &code) ? code.offset : NO_PLACE;
}

static void code_in_place_of_files(void **state)
{
	/* as gold and lld lay it out: pages of the file at the end of one segment are also those
	 * at the start of the next one, which lies a page further in memory */
	const struct elf_file shared = {
		.segment_count = 4,
		.segments = {{0, 0x2345, 0, 0x2345, false},
			     {0x2350, 0x10000, 0x3350, 0x10000, true},
			     {0x12350, 0x100, 0x14350, 0x100, false},
			     {0x12450, 0x300, 0x15450, 0x9000, false}},
	};
	/* as older linkers do: code first, and data in other pages of 2 MB */
	const struct elf_file old = {
		.segment_count = 2,
		.segments = {{0, 0x3800, 0x400000, 0x3800, true},
			     {0x3e00, 0x400, 0x603e00, 0x5000, false}},
	};
	const struct elf_pages head = {0x7000000, 0x7003000, 0, false},
			       code_start = {0x7003000, 0x7005000, 0x2000, true},
			       data = {0x603000, 0x605000, 0x3000, false},
			       whole = {0x7000000, 0x7020000, 0, false};

	assert_int_equal(place(&shared, &head, 0x7003000, 0x7014000), 0x2000);
	assert_int_equal(place(&shared, &head, 0x7005000, 0x7006000), 0x4000);
	assert_int_equal(place(&shared, &code_start, 0x7005000, 0x7006000), 0x4000);
	assert_int_equal(place(&old, &data, 0x400000, 0x404000), 0);
	/* more than the code, in the gap between segments, and in what the file does not have */
	assert_int_equal(place(&shared, &head, 0x7003000, 0x7015000), NO_PLACE);
	assert_int_equal(place(&old, &data, 0x404000, 0x405000), NO_PLACE);
	assert_int_equal(place(&shared, &head, 0x7016000, 0x7017000), NO_PLACE);
	/* a file that is mapped to be read */
	assert_int_equal(place(&shared, &whole, 0x7005000, 0x7006000), NO_PLACE);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		SCENE(frame_pointers_on_top),
#endif
		SCENE(frame_pointers),
		SCENE(cycles_end),
		SCENE(deep_ones_keep_both_ends),
		SCENE(leads_outside),
		SCENE(returns_behind_code),
		SCENE(signals_of_files),
		SCENE(stack_is_nowhere),
		SCENE(copies),
		SCENE(chains),
		SCENE(dead_threads),
		cmocka_unit_test(maps_are_parsed),
		cmocka_unit_test(code_in_place_of_files),
	};

	const struct CMUnitTest pure[] = {cmocka_unit_test(maps_are_parsed),
					  cmocka_unit_test(code_in_place_of_files)};

	/* the /proc of an emulator shows the emulator's own memory */
	if (sleeper_is_emulated())
		return cmocka_run_group_tests(pure, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
