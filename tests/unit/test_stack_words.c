/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames to text: functions, names, kernel stacks, the dictionary. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "unwind/elf/elf_symbols.h"
#include "unwind/elf/perf_map.h"
#include "unwind/file_request.h"
#include "unwind/stack_table.h"
#include "unit.h"

static void kernel_stacks_are_parsed(void **state)
{
	static struct kernel_stack stack;
	char deep[8192] = "";

	kernel_stack_parse(&stack, "[<0>] do_nanosleep+0x69/0x180\n[<0>] x.isra.0+0x1/0x2\n"
				   "[<ffffffff8101>] old_one+0x1/0x2 [ext4]\n"
				   "[<ffffffffffffffff>] 0xffffffffffffffff\n");
	assert_int_equal(stack.count, 3);
	assert_string_equal(stack.names[0], "do_nanosleep");
	assert_string_equal(stack.names[1], "x.isra.0");
	assert_string_equal(stack.names[2], "old_one");
	kernel_stack_parse(&stack, "");
	assert_int_equal(stack.count, 0);
	kernel_stack_parse(&stack, "]\n] \n[<0>] +\n[<0>]\nx");
	assert_int_equal(stack.count, 0);
	for (int i = 0; i < 100; i++)
		strcat(deep, "[<0>] f+0x1/0x2\n");
	kernel_stack_parse(&stack, deep);
	assert_int_equal(stack.count, KERNEL_FRAMES_MAX);
}

static void symbols_are_found(void **state)
{
	struct symbol_table table = {.count = 0};

	symbol_table_sort(&table, false);
	assert_null(symbol_find(&table, 1));
	symbol_add(&table, 0x200, 0x10, 2, 0, 5);
	symbol_add(&table, 0x100, 0x50, 0, 0, 1);
	symbol_add(&table, 0x200, 0x10, 1, 1, 7);
	symbol_add(&table, 0x120, 0x8, 0, 0, 2); /* symbol within another */
	symbol_add(&table, 0x300, 0, 0, 0, 3);	 /* a symbol of unknown size */
	symbol_table_sort(&table, false);
	assert_int_equal(table.count, 4);
	assert_null(symbol_find(&table, 0xff));
	assert_int_equal(symbol_location(symbol_find(&table, 0x124)), 2);
	assert_int_equal(symbol_location(symbol_find(&table, 0x130)), 1);
	assert_null(symbol_find(&table, 0x150));
	assert_int_equal(symbol_location(symbol_find(&table, 0x20f)), 7);
	assert_int_equal(symbol_source(symbol_find(&table, 0x20f)), 1);
	assert_null(symbol_find(&table, 0x210));
	assert_int_equal(symbol_location(symbol_find(&table, 0x30000)), 3);
	/* the newest function of a JIT counts */
	symbol_add(&table, 0x120, 0x8, 0, 0, 9);
	symbol_table_sort(&table, true);
	assert_int_equal(symbol_location(symbol_find(&table, 0x124)), 9);
	symbol_add(&table, 1ull << 60, 1, 0, 0, 1);
	symbol_add(&table, 1, 1, 0, 0, 1u << 30);
	assert_int_equal(table.refused, 2);
	symbol_table_done(&table);
}

static void maps_of_jits(void **state)
{
	struct perf_map map = {.fd = memfd_create("map", MFD_CLOEXEC)};
	const char text[] = "1000 20 one\n0x2000 0x10 two words\nnonsense\n3000 0 empty\n400";
	char name[16];

	assert_true(map.fd >= 0);
	assert_int_equal(write(map.fd, text, strlen(text)), strlen(text));
	perf_map_take(&map, dup(map.fd));
	assert_int_equal(map.table.count, 2);
	assert_true(perf_map_name(&map, 0x101f, name, sizeof(name)));
	assert_string_equal(name, "one");
	assert_true(perf_map_name(&map, 0x2000, name, sizeof(name)));
	assert_string_equal(name, "two words");
	assert_false(perf_map_name(&map, 0x1020, name, sizeof(name)));
	/* rest of the last line, and a newer function at the address of an older one */
	assert_int_equal(write(map.fd, "0 10 four\n1000 20 anew\n", 23), 23);
	perf_map_take(&map, dup(map.fd));
	assert_true(perf_map_name(&map, 0x4001, name, sizeof(name)));
	assert_string_equal(name, "four");
	assert_true(perf_map_name(&map, 0x1000, name, sizeof(name)));
	assert_string_equal(name, "anew");
	perf_map_done(&map);
}

static void map_write(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void map_take(struct perf_map *map)
{
	bool refused;
	int fd = perf_map_open("/proc", getpid(), geteuid(), &refused);

	if (fd >= 0)
		perf_map_take(map, fd);
}

/* A map that comes late, begins anew (exec), or becomes another file. */
static void maps_are_replaced(void **state)
{
	struct perf_map map = {.fd = -1};
	char path[64], name[16];
	bool refused;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(perf_map_open("/proc", getpid(), geteuid(), &refused), -ENOENT);
	assert_false(perf_map_name(&map, 0x1000, name, sizeof(name)));
	map_write(path, "1000 10 early\n2000 10 second\n");
	map_take(&map);
	assert_true(perf_map_name(&map, 0x1000, name, sizeof(name)));
	assert_string_equal(name, "early");
	map_write(path, "1000 10 late\n");
	map_take(&map);
	assert_false(perf_map_name(&map, 0x2000, name, sizeof(name)));
	assert_true(perf_map_name(&map, 0x1000, name, sizeof(name)));
	assert_string_equal(name, "late");
	unlink(path);
	map_write(path, "1000 10 other, and longer than the one before\n3000 10 new\n");
	map_take(&map);
	assert_true(perf_map_name(&map, 0x1000, name, sizeof(name)));
	assert_string_equal(name, "other, and long");
	/* a map that was deleted is still known */
	unlink(path);
	map_take(&map);
	assert_true(perf_map_name(&map, 0x3000, name, sizeof(name)));
	perf_map_done(&map);
}

/* Returns the error of opening the map of a process for that user, or 0. */
static int map_error(pid_t pid, int64_t uid)
{
	bool refused;
	int fd = perf_map_open("/proc", pid, uid, &refused);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Checks that a map is refused without opening it: opening alone may block, or have effects. */
static void assert_unopened(const char *path)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event event;
	bool refused;

	assert_true(watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0);
	assert_int_equal(perf_map_open("/proc", getpid(), 0, &refused), -EINVAL);
	assert_true(refused);
	assert_true(read(watch, &event, sizeof(event)) < 0);
	close(watch);
}

/* Maps that are devices, and files that the kernel generates (/proc/kmsg is emptied by reading). */
static void maps_that_are_no_files(void **state)
{
	char path[64];
	int status;
	pid_t child;

	if (geteuid())
		skip();
	child = fork();
	if (!child) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		unlink(path);
		if (!mknod(path, S_IFCHR | 0600, makedev(1, 5))) /* /dev/zero */
			assert_unopened(path);
		unlink(path);
		map_write(path, "");
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("/proc/kmsg", path, NULL, MS_BIND, NULL)) {
			unlink(path);
			_exit(77);
		}
		assert_unopened(path);
		umount(path);
		unlink(path);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Root's map counts if only root can have put it there: in tsnap's own mount namespace. */
static void maps_of_root(void **state)
{
	char path[64];
	int reported[2], err = 0;
	pid_t child;

	if (geteuid() || pipe(reported))
		skip();
	child = fork();
	if (!child) {
		err = unshare(CLONE_NEWNS) ? errno : 0;
		if (write(reported[1], &err, sizeof(err)) == sizeof(err))
			pause();
		_exit(0);
	}
	assert_int_equal(read(reported[0], &err, sizeof(err)), sizeof(err));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", child);
	unlink(path);
	map_write(path, "");
	assert_int_equal(map_error(child, 0), 0);
	assert_int_equal(map_error(child, 4711), err ? 0 : -EPERM);
	unlink(path);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(reported[0]);
	close(reported[1]);
}

/* A file that another user put there, or that is not a regular one, is not read. */
static void maps_of_strangers(void **state)
{
	char path[64];
	struct rlimit limit;
	bool refused;
	int fd;

	if (geteuid())
		skip();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(map_error(getpid(), 0), -ENOENT);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	assert_true(fd >= 0);
	assert_int_equal(map_error(getpid(), 0), 0);
	assert_int_equal(fchown(fd, 4711, 4711), 0);
	assert_int_equal(map_error(getpid(), 0), -EPERM);
	assert_int_equal(map_error(getpid(), 4711), 0);
	close(fd);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_true(perf_map_open("/proc", getpid(), 0, &refused) < 0);
	assert_true(refused);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_unopened(path);
	/* one descriptor is left, and two are needed: not an error of the file */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)fd + 1, limit.rlim_max});
	assert_int_equal(perf_map_open("/proc", getpid(), 0, &refused), -EMFILE);
	assert_false(refused);
	setrlimit(RLIMIT_NOFILE, &limit);
	unlink(path);
}

static void names_are_demangled(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char bomb[1024], text[64];

	if (!name_demangle("_Z3foov", text, sizeof(text)))
		skip(); /* built without libiberty */
	assert_string_equal(text, "foo");
	assert_true(name_demangle("_ZN4shop3boxIiE4waitEi", text, sizeof(text)));
	assert_string_equal(text, "shop::box<int>::wait");
	assert_true(name_demangle("_ZN4core3fmt5write17h0123456789abcdefE", text, sizeof(text)));
	assert_string_equal(text, "core::fmt::write");
	assert_true(name_demangle("_RNvC6_123foo3bar", text, sizeof(text)));
	assert_false(name_demangle("main", text, sizeof(text)));
	assert_false(name_demangle("_Z", text, sizeof(text)));
	/* each argument is a pair of the previous one, twice: 2^30 letters */
	strcpy(bomb, "_Z1fISt4pairI1xS0_E");
	for (int i = 1; i < 30; i++)
		sprintf(bomb + strlen(bomb), "S_IS%c_S%c_E", digits[i], digits[i]);
	strcat(bomb, "EvT28_");
	assert_true(name_demangle(bomb, text, sizeof(text)));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

struct dictionary {
	struct parsers *parsers;
	struct module_table modules;
	struct stack_names *names;
	struct stack_table table;
};

static int dictionary_open(void **state)
{
	struct dictionary *dictionary = calloc(1, sizeof(*dictionary));

	assert_non_null(dictionary);
	dictionary->parsers = parsers_begin(file_service, false, PARSERS_ALL);
	assert_non_null(dictionary->parsers);
	module_table_init(&dictionary->modules, &dictionary->parsers->parser[PARSER_TABLES]);
	dictionary->names = stack_names_new("/proc", &dictionary->modules,
					    &dictionary->parsers->parser[PARSER_NAMES]);
	stack_table_init(&dictionary->table, &dictionary->modules, dictionary->names);
	*state = dictionary;
	return 0;
}

static int dictionary_close(void **state)
{
	struct dictionary *dictionary = *state;

	stack_table_clear(&dictionary->table);
	stack_names_free(dictionary->names);
	module_table_clear(&dictionary->modules);
	parsers_end(dictionary->parsers);
	free(dictionary);
	names_clear();
	return 0;
}

/* Checks that texts of a stack, of which there may be any number, are transient, not permanent. */
static void assert_transient(struct stack_words words)
{
	assert_ptr_not_equal(name_of_string(words.function), words.function);
	assert_ptr_not_equal(name_of_string(words.path), words.path);
	assert_ptr_not_equal(name_of_string(words.folded), words.folded);
}

static void kernel_words(void **state)
{
	static struct kernel_stack stack;
	struct dictionary *dictionary = *state;
	struct stack_words words;
	uint32_t number;

	kernel_stack_parse(&stack, "[<0>] schedule+0x1/0x2\n[<0>] io_schedule+0x1/0x2\n"
				   "[<0>] folio_wait+0x1/0x2\n[<0>] filemap_fault+0x1/0x2\n"
				   "[<0>] do_syscall_64+0x1/0x2\n"
				   "[<0>] entry_SYSCALL_64_after_hwframe+0x1/0x2\n");
	number = stack_of_kernel(&dictionary->table, &stack);
	assert_int_equal(stack_of_kernel(&dictionary->table, &stack), number);
	words = stack_table_words(&dictionary->table, number, true);
	assert_transient(words);
	assert_string_equal(words.function, "folio_wait");
	assert_string_equal(words.path, "filemap_fault>folio_wait");
	assert_string_equal(words.folded,
			    "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];"
			    "filemap_fault_[k];folio_wait_[k];io_schedule_[k];schedule_[k]");
	/* only the scheduler's functions: these are used */
	kernel_stack_parse(&stack, "[<0>] schedule+0x1/0x2\n[<0>] ret_from_fork+0x1/0x2\n");
	number = stack_of_kernel(&dictionary->table, &stack);
	words = stack_table_words(&dictionary->table, number, false);
	assert_string_equal(words.function, "schedule");
	stack.count = 0;
	assert_int_equal(stack_of_kernel(&dictionary->table, &stack), STACK_NONE);
}

/* A full dictionary takes no more stacks, and counts them, until it is cleared. */
static void no_more_stacks_than_fit(void **state)
{
	static struct kernel_stack stack = {.count = 1};
	struct dictionary *dictionary = *state;
	struct stack_table *table = &dictionary->table;

	for (uint32_t i = 0; i < STACKS_MAX; i++) {
		assert_false(stack_table_full(table));
		snprintf(stack.names[0], KERNEL_NAME_SIZE, "f%u", i);
		assert_int_equal(stack_of_kernel(table, &stack), i);
	}
	assert_true(stack_table_full(table));
	assert_int_equal(stack_of_kernel(table, &stack), STACKS_MAX - 1);
	snprintf(stack.names[0], KERNEL_NAME_SIZE, "one more");
	assert_int_equal(stack_of_kernel(table, &stack), STACK_NONE);
	assert_int_equal(table->refused, 1);
	stack_table_clear(table);
	assert_int_equal(stack_of_kernel(table, &stack), 0);
	assert_int_equal(table->refused, 1);
}

/* Words of a stack are all as old as each other: those made before the names were known (the thread
 * that looks for them may have been faster) are made anew. */
static void words_catch_up(struct dictionary *dictionary, uint32_t module, uint64_t address)
{
	static struct stack_walk walk = {.end = WALK_WHOLE, .count = 1};
	struct stack_words words;
	uint32_t stack;

	walk.frames[0] = (struct frame){module, address + 1};
	stack = stack_of_walk(&dictionary->table, &walk);
	words = stack_table_words(&dictionary->table, stack, true);
	assert_transient(words);
	if (!strstr(words.folded, "+0x"))
		assert_string_equal(words.folded, "kernel_words");
	assert_true(stack_names_wait(dictionary->names, clock_monotonic_ns() + 20 * NS_PER_SECOND));
	assert_string_equal(words.files, dictionary->modules.modules[module]->location);
	words = stack_table_words(&dictionary->table, stack, false);
	assert_string_equal(words.function, "kernel_words");
	words = stack_table_words(&dictionary->table, stack, true);
	assert_string_equal(words.folded, "kernel_words");
}

/* Functions of this program, by a thread of its own; code in no function shows its offset. */
static void user_words(void **state)
{
	static struct stack_walk walk;
	struct dictionary *dictionary = *state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint32_t module = module_of_file(&dictionary->modules, fd, "/x/program;1", getpid());
	struct frame_view view;
	struct elf_file *elf;
	uint64_t address;
	uint32_t frame;
	FILE *symbols;
	char line[256];

	assert_int_not_equal(module, MODULE_NONE);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(module_of_file(&dictionary->modules, fd, "/y", getpid()), module);
	elf = &dictionary->modules.modules[module]->elf;
	symbols = fopen("/proc/self/maps", "re");
	assert_non_null(symbols);
	address = 0;
	while (fgets(line, sizeof(line), symbols)) {
		struct mapping mapping;
		uintptr_t here = (uintptr_t)kernel_words;
		char *path;

		if (mapping_parse(line, &mapping, &path) && here >= mapping.start &&
		    here < mapping.end)
			assert_true(elf_address_of(elf, here - mapping.start + mapping.offset,
						   &address));
	}
	fclose(symbols);
	frame = stack_names_frame(dictionary->names, &(struct frame){module, address});
	assert_int_equal(stack_names_frame(dictionary->names, &(struct frame){module, address}),
			 frame);
	view = stack_names_get(dictionary->names, frame);
	assert_false(view.final);
	assert_non_null(strstr(view.name, "program:1+0x"));
	assert_true(stack_names_wait(dictionary->names, clock_monotonic_ns() + 20 * NS_PER_SECOND));
	view = stack_names_get(dictionary->names, frame);
	assert_true(view.final);
	assert_string_equal(view.name, "kernel_words");
	assert_int_equal(view.kind, FRAME_PROGRAM);
	words_catch_up(dictionary, module, address);
	/* an incomplete walk of the stack */
	walk.count = 2;
	walk.end = WALK_LOST;
	walk.frames[0] = (struct frame){module, address};
	walk.frames[1] = (struct frame){MODULE_NONE, 0x1234};
	assert_string_equal(stack_table_words(&dictionary->table,
					      stack_of_walk(&dictionary->table, &walk), true)
				    .folded,
			    "[lost];[?]+0x1234;kernel_words");
	/* forgotten while names are looked up: results for the old numbers are dropped */
	for (uint64_t i = 0; i < 100; i++)
		stack_names_get(dictionary->names,
				stack_names_frame(dictionary->names,
						  &(struct frame){module, address + 16 + i}));
	stack_names_forget(dictionary->names);
	assert_int_equal(stack_names_frame(dictionary->names, &(struct frame){module, 1}), 0);
	assert_false(stack_names_get(dictionary->names, 0).final);
	frame = stack_names_frame(dictionary->names, &(struct frame){module, address});
	assert_int_equal(frame, 1);
	stack_names_get(dictionary->names, frame);
	assert_true(stack_names_wait(dictionary->names, clock_monotonic_ns() + 20 * NS_PER_SECOND));
	assert_string_equal(stack_names_get(dictionary->names, frame).name, "kernel_words");
	assert_true(stack_names_get(dictionary->names, 0).final);
	stack_names_clear(dictionary->names);
	assert_int_equal(stack_names_frame(dictionary->names, &(struct frame){module, 1}), 0);
}

/* A stack of as many frames as there may be, each with a name as long as one may be. */
static void long_names_are_cut(void **state)
{
	static struct stack_walk walk = {.end = WALK_WHOLE, .count = STACK_FRAMES_MAX};
	struct dictionary *dictionary = *state;
	size_t separators = 0;
	const char *folded;
	char name[401];

	for (size_t i = 0; i < sizeof(name) - 1; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 0; i < walk.count; i++)
		walk.frames[i] = frame_of_name(MODULE_PYTHON, name_transient_string(name));
	folded = stack_table_words(&dictionary->table, stack_of_walk(&dictionary->table, &walk),
				   true)
			 .folded;
	assert_in_range(strlen(folded), 50000, 110000);
	for (const char *at = folded; *at; at++)
		separators += *at == ';';
	assert_int_equal(separators, STACK_FRAMES_MAX - 1);
	assert_memory_equal(strchr(folded, ';') - 5, "\xa4_[p]", 5);
	walk.count = 2;
	folded = stack_table_words(&dictionary->table, stack_of_walk(&dictionary->table, &walk),
				   true)
			 .folded;
	assert_int_equal(strlen(folded), 2 * 400 + 2 * 4 + 1);
}

#define MANY_SYMBOLS 700000 /* symbols of 16 bytes: two such files exceed the limit */

/* Makes a file with that number of functions of one name. */
static int many_functions(void)
{
	static const char names[] = "\0.symtab\0.strtab\0many";
	const size_t symbols = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
	Elf64_Ehdr header = {.e_machine = EM_X86_64,
			     .e_shoff = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 3,
			     .e_shstrndx = 2};
	const Elf64_Shdr sections[3] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_SYMTAB,
		 .sh_offset = symbols,
		 .sh_size = MANY_SYMBOLS * sizeof(Elf64_Sym),
		 .sh_link = 2},
		{.sh_name = 9,
		 .sh_offset = symbols + MANY_SYMBOLS * sizeof(Elf64_Sym),
		 .sh_size = sizeof(names)},
	};
	FILE *file = fdopen(memfd_create("many", MFD_CLOEXEC), "w");
	int fd;

	assert_non_null(file);
#if defined(__aarch64__)
	header.e_machine = EM_AARCH64;
#endif
	memcpy(header.e_ident, ELFMAG "\2\1\1", 7);
	fwrite(&header, sizeof(header), 1, file);
	fwrite(sections, sizeof(sections), 1, file);
	for (size_t i = 0; i < MANY_SYMBOLS; i++)
		fwrite(&(Elf64_Sym){.st_name = 17,
				    .st_info = STT_FUNC,
				    .st_shndx = 1,
				    .st_value = 16 * (i + 1)},
		       sizeof(Elf64_Sym), 1, file);
	fwrite(names, sizeof(names), 1, file);
	fflush(file);
	fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	fclose(file);
	return fd;
}

/* Tables of functions beyond the limit are freed, which is counted, and read again. */
static void tables_have_a_limit(void **state)
{
	struct dictionary *dictionary = *state;
	struct symbols_cache cache = {.proc_root = "/proc",
				      .parser = &dictionary->parsers->parser[PARSER_NAMES]};
	char name[FUNCTION_NAME_SIZE];
	struct module *modules[3];

	for (int i = 0; i < 3; i++) {
		int fd = i < 2 ? many_functions() : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		uint32_t number = module_of_file(&dictionary->modules, fd, "x", getpid());

		assert_int_not_equal(number, MODULE_NONE);
		modules[i] = dictionary->modules.modules[number];
	}
	for (int i = 0; i < 4; i++) {
		assert_true(symbols_name(&cache, modules[i % 2], 16, name));
		assert_string_equal(name, "many");
	}
	assert_int_equal(cache.counts.unloaded, 3);
	for (int i = 0; i < 4; i++)
		symbols_name(&cache, modules[1 + i % 2], 16, name);
	assert_int_equal(cache.counts.unloaded, 3);
	symbols_cache_done(&cache);
}

/* The map of a JIT's functions is found by the process, or by the thread that was sampled,
 * whichever has not ended. */
static void maps_outlive_threads(void **state)
{
	static const struct {
		int64_t pid, tid; /* 0: those of this process */
	} rows[] = {{0, INT32_MAX}, {INT32_MAX, 0}};
	struct dictionary *dictionary = *state;
	char path[64], name[FUNCTION_NAME_SIZE];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map_write(path, "1000 10 made\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct symbols_cache cache = {.proc_root = "/proc",
					      .parser = &dictionary->parsers->parser[PARSER_NAMES]};
		uint32_t module = module_of_process(
			&dictionary->modules, rows[i].pid ? rows[i].pid : getpid(),
			rows[i].tid ? rows[i].tid : getpid(), 1, geteuid());

		assert_true(
			symbols_name(&cache, dictionary->modules.modules[module], 0x1001, name));
		assert_string_equal(name, "made");
		symbols_cache_done(&cache);
	}
	unlink(path);
}

/* No thread remains after clearing: a fork follows, whose child must find no lock held. */
static void no_thread_outlives_clearing(void **state)
{
	struct dictionary *dictionary = *state;

	stack_names_want_kernel(dictionary->names);
	stack_names_clear(dictionary->names);
	assert_non_null(stack_names_kernel_symbols(dictionary->names, 0));
}

/* No more files are kept open than this process may have, and that is reported. */
static void modules_have_a_share(void **state)
{
	struct dictionary *dictionary = *state;
	struct module_table *modules = &dictionary->modules;
	char image[8];

	modules->open_max = 3;
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(image, sizeof(image), "%u", i);
		module_of_image(modules, image, sizeof(image), "image");
	}
	assert_int_equal(modules->count, 3);
	assert_int_equal(modules->refused, 2);
}

/* Makes a copy of the file, so that it is a separate module. */
static uint32_t module_of_copy(struct module_table *modules, int number)
{
	static const char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	char bytes[64], path[64];
	int fd;

	memcpy(bytes, elf, sizeof(bytes));
	bytes[18] = 62; /* e_machine: x86-64 */
#if defined(__aarch64__)
	bytes[18] = (char)183;
#endif
	bytes[54] = 56; /* e_phentsize */
	bytes[58] = 64; /* e_shentsize */
	snprintf(path, sizeof(path), "/tmp/tsnap-unit.%d.%d", getpid(), number);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	return module_of_file(modules, fd, path, getpid());
}

static void copies_remove(int count)
{
	char path[64];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/tmp/tsnap-unit.%d.%d", getpid(), i);
		unlink(path);
	}
}

/* The file that no walk has met for longest is closed if there is no capacity for another, and
 * comes back under the same number. */
static void modules_go_by_age(void **state)
{
	struct dictionary *dictionary = *state;
	struct module_table *modules = &dictionary->modules;
	struct stat file;
	char path[64];
	int fd;

	modules->open_max = 3;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(module_of_copy(modules, i), i);
		modules->modules[i]->walked_ns = i == 0 ? 30 : 10 + i;
		modules->modules[i]->mapped = 1;
	}
	assert_false(module_table_mark(modules, true));
	assert_int_equal(module_of_copy(modules, 3), MODULE_NONE);
	assert_int_equal(modules->refused, 1);
	assert_true(module_table_mark(modules, true));
	assert_true(stack_names_close(dictionary->names));
	fd = modules->modules[1]->fd;
	module_table_close(modules);
	assert_true(fstat(fd, &file) < 0);
	assert_true(modules->modules[1]->closed);
	assert_false(modules->modules[0]->closed || modules->modules[2]->closed);
	module_table_next_scan(modules, 1);
	assert_int_equal(module_of_copy(modules, 3), 3);
	modules->open_max = 4;
	snprintf(path, sizeof(path), "/tmp/tsnap-unit.%d.1", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(module_of_file(modules, fd, "again", getpid()), 1);
	assert_false(modules->modules[1]->closed);
	/* time for new files has been spent: another one is not opened */
	assert_false(module_table_may_open(modules));
	modules->open_max = 5;
	assert_true(module_table_may_open(modules));
	modules->spent_ns = 1;
	assert_false(module_table_may_open(modules));
	copies_remove(4);
}

/* A process whose files use up the time of a scan has only its share as soon as another process
 * needs some, and the number of files of a process is limited. */
static void modules_have_shares(void **state)
{
	struct dictionary *dictionary = *state;
	struct module_table *modules = &dictionary->modules;

	module_table_next_scan(modules, 100);
	modules->walked_pid = 1;
	module_table_spend(modules, 99);
	assert_true(module_table_may_open(modules)); /* only process */
	module_table_spend(modules, 1);
	assert_false(module_table_may_open(modules));
	modules->walked_pid = 2;
	assert_false(module_table_may_open(modules));
	assert_int_equal(modules->refused, 2);
	module_table_next_scan(modules, 100);
	modules->walked_pid = 1;
	module_table_spend(modules, 50);
	assert_false(module_table_may_open(modules));
	modules->walked_pid = 2;
	assert_true(module_table_may_open(modules));
	module_table_next_scan(modules, 0); /* no limit */
	modules->walked_pid = 1;
	module_table_spend(modules, 1000);
	assert_true(module_table_may_open(modules));
	for (int i = 0; i < MODULES_PROCESS_MAX; i++) {
		assert_true(module_table_may_open(modules));
		assert_int_not_equal(module_of_process(modules, i, 1, 7, 0), MODULE_NONE);
	}
	assert_false(module_table_may_open(modules));
	modules->walked_pid = 2;
	assert_true(module_table_may_open(modules));
}

/* A file that no process has mapped is closed after a second, not at once: maps are read again,
 * too. */
static void modules_close_unmapped(void **state)
{
	struct dictionary *dictionary = *state;
	struct module_table *modules = &dictionary->modules;

	assert_int_equal(module_of_copy(modules, 0), 0);
	assert_int_equal(module_of_copy(modules, 1), 1);
	modules->modules[0]->mapped = 1;
	assert_false(module_table_mark(modules, true));
	assert_false(module_table_mark(modules, false));
	assert_true(module_table_mark(modules, true));
	module_table_close(modules);
	assert_false(modules->modules[0]->closed);
	assert_true(modules->modules[1]->closed);
	assert_int_equal(modules->modules[1]->fd, -1);
	assert_int_equal(modules->open_count, 1);
	copies_remove(2);
}

/* Half of the modules are dropped if there is no free number, closed ones first, and their numbers
 * are reused. */
static void modules_are_forgotten_by_age(void **state)
{
	struct dictionary *dictionary = *state;
	struct module_table *modules = &dictionary->modules;
	uint64_t serial;

	modules->walked_pid = 7;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(module_of_copy(modules, i), i);
		modules->modules[i]->walked_ns = 10 + i;
		modules->modules[i]->mapped = i != 3;
	}
	assert_false(module_table_full(modules));
	assert_false(module_table_mark(modules, true));
	assert_true(module_table_mark(modules, true));
	module_table_close(modules);
	assert_int_equal(modules->open_count, 3);
	serial = modules->modules[3]->serial;
	module_table_mark_old(modules);
	assert_true(stack_names_close(dictionary->names));
	module_table_forget(modules);
	assert_int_equal(modules->open_count, 2);
	assert_int_equal(*index_find(&modules->known_by, 7), 2);
	/* both modules are made anew */
	assert_int_equal(module_of_copy(modules, 3), 3);
	assert_int_not_equal(modules->modules[3]->serial, serial);
	assert_int_equal(module_of_copy(modules, 0), 0);
	assert_int_equal(modules->modules[0]->mapped, 0);
	assert_int_equal(modules->open_count, 4);
	assert_int_equal(module_of_copy(modules, 4), 4);
	module_table_mark_old(modules);
	module_table_mark_old(modules);
	module_table_forget(modules);
	assert_int_equal(modules->open_count, 3);
	copies_remove(5);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, dictionary_open, dictionary_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_stacks_are_parsed),
		cmocka_unit_test(symbols_are_found),
		cmocka_unit_test(maps_of_jits),
		cmocka_unit_test(maps_of_strangers),
		cmocka_unit_test(maps_of_root),
		cmocka_unit_test(maps_that_are_no_files),
		cmocka_unit_test(maps_are_replaced),
		cmocka_unit_test(names_are_demangled),
		WITH(kernel_words),
		WITH(no_more_stacks_than_fit),
		WITH(no_thread_outlives_clearing),
		WITH(user_words),
		WITH(long_names_are_cut),
		WITH(tables_have_a_limit),
		WITH(maps_outlive_threads),
		WITH(modules_have_a_share),
		WITH(modules_go_by_age),
		WITH(modules_have_shares),
		WITH(modules_close_unmapped),
		WITH(modules_are_forgotten_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
