/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/apps.h"
#include "apps/app_modules.h"
#include "apps/app_program.h"
#include "apps/golang.h"
#include "apps/otel.h"
#include "apps/tls.h"
#include "apps/variables.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/present_pages.h"
#include "keeper/avoid.h"
#include "proc/proc.h"
#include "proc/user_memory.h"
#include "sample/query_fold.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"
#include "unwind/process_maps.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES_MAX 16384
#define THREADS_MAX 65536
#define FILES_MAX 64
#define FILES_IDLE_NS (600 * NS_PER_SECOND)
/* Time after which a process is looked at again: an exec may have passed unseen. Of a known program
 * that shows in its memory. */
#define OTHER_OLD_NS (5 * NS_PER_SECOND)
#define KNOWN_OLD_NS (60 * NS_PER_SECOND)
#define FAILED_NS (1 * NS_PER_SECOND) /* the same after a read that failed */
/* Time for which a process' memory that was not locked is taken not to be: its threads share it. */
#define FREE_NS (NS_PER_MS / 2)
/* The same for what any program may publish. Most begin to when they start: a process that
 * publishes nothing is looked at after a second, then after twice as long each time. */
#define SILENT_LOOKS 5 /* until that is 32 s */
#define SPEAKING_OLD_NS (10 * NS_PER_SECOND)
#define LOOK_SHARE 1000		     /* divisor of the time for looking at one process */
#define LOOK_SCAN_NS (2 * NS_PER_MS) /* time in one scan, for all processes; others come later */
#define SIBLINGS_MAX 1000
#define SPAN_BYTES 1024
#define OPEN_MOST 512 /* processes whose memory stays open */
/* Memory that processes of a server share is read in windows: a server's rows for its processes lie
 * side by side, and one read of some pages takes no longer than two of one page each. */
#define WINDOWS 64
#define WINDOW_BYTES 32768
#define PAGE_BYTES 4096

/* What processes have in common that were forked by one, without an exec since: where their program
 * is. A read that fails shows that it is not so. */
struct app_family {
	struct cache_entry entry; /* key: process that forked them */
	int64_t read_ns;
	const struct app_program *program;
	uint64_t symbols[APP_SYMBOLS_MAX];
	int64_t layout[APP_LAYOUT_MAX];
	const void *version;
};

/* Memory that processes which were forked by one share. */
struct app_window {
	uint64_t start;
	int64_t parent;
	int64_t read_ns;       /* when the read began; 0: there is none */
	uint64_t from, behind; /* addresses of what was read of it */
	char bytes[WINDOW_BYTES];
};

/* Symbols of a program's file. */
struct app_file {
	struct cache_entry entry; /* key: hash of device and inode */
	uint64_t device, inode;
	const struct app_program *program;
	struct elf_file elf;
	uint64_t symbols[APP_SYMBOLS_MAX]; /* addresses, as the file has them */
	int64_t layout[APP_LAYOUT_MAX];
};

struct app_process {
	struct cache_entry entry; /* key: pid */
	int64_t start_ns;	  /* start of its first thread; 0: not known */
	int64_t next_look_ns;
	bool failed;			   /* the last read failed */
	const struct app_program *program; /* NULL: none */
	struct app_reader reader;
	int64_t next_modules_ns;
	unsigned int silent_looks;
	struct otel *otel;    /* owned; NULL: nothing is published */
	struct golang golang; /* zeroed: it is no such program */
	/* owned, PROGRAM_VARIABLES_MAX of them; NULL: it has none of them */
	struct variable_place *variables;
};

#define DISPLACED_NS 100000 /* looks at CPUs come as late as that */

/* Words of a thread. */
struct app_thread {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	uint64_t sequence;
	uint64_t known;	       /* needs that were read */
	uint64_t published_ns; /* of the process context, when they were */
	uint64_t looked_ns;    /* the same, since when looks at the thread's CPU read; 0: none do */
	uint64_t pointer;      /* its pointer to its thread-local storage; 0: not known */
	struct sample_app facts;
};

struct apps {
	const char *root;
	struct parser *parser;
	app_pointer_reader *read_pointer;
	app_look_setter *set_look;
	void *look_setter;
	bool hides_texts;
	struct variable_seen seen[PROGRAM_VARIABLES_MAX];
	struct app_window *windows; /* by address, WINDOWS of them; NULL: none was wanted */
	struct cache processes, families, threads, files, variables, golang_files;
	struct user_memory memory;
	unsigned int open_count, open_most; /* processes whose memory is open */
	int64_t scan_ns, spent_ns;	    /* time that looking took in a scan, of all processes */
};

static const struct app_program *const programs[] = {
	&mariadb_program,
	&php_program,
	&postgres_program,
};

/* --- memory of processes. Its files stay open, as opening them takes longer than all that is read
 * of a thread. They refer to the memory that the process had when they were opened: after an exec
 * nothing more can be read there. */

static void memory_close(struct app_reader *reader)
{
	if (!reader->open)
		return;
	close(reader->mem);
	close(reader->pagemap);
	reader->open = false;
	reader->apps->open_count--;
}

static void process_drop(void *entry)
{
	struct app_process *process = entry;

	memory_close(&process->reader);
	free(process->otel);
	free(process->variables);
	process->otel = NULL;
	process->variables = NULL;
	process->golang.labelled = false;
}

/* Begins to read of a thread, which has not run since since_ns; 0: not known. */
static void memory_begin(struct app_reader *reader, int64_t tid, int64_t since_ns, int64_t now_ns)
{
	reader->tid = tid;
	reader->since_ns = since_ns;
	reader->now_ns = now_ns;
	reader->state = MEMORY_UNASKED;
	reader->asked_pointer = reader->old_pointer = false;
	reader->pages.count = reader->near.count = 0;
}

static bool memory_open(struct app_reader *reader)
{
	const char *root = reader->apps->root;

	reader->pagemap = proc_file_open(root, reader->pid, reader->tid, "pagemap");
	if (reader->pagemap < 0)
		return false;
	reader->mem = proc_file_open(root, reader->pid, reader->tid, "mem");
	if (reader->mem < 0) {
		close(reader->pagemap);
		return false;
	}
	reader->open = true;
	reader->apps->open_count++;
	return true;
}

/* False: the process' memory is locked. */
static bool memory_free(struct app_reader *reader)
{
	int64_t now_ns = clock_monotonic_ns();

	if (now_ns - reader->free_ns < FREE_NS)
		return true;
	if (avoids_memory(reader->tid))
		return false;
	reader->free_ns = now_ns;
	return true;
}

/* False: the process' memory can't be read now. It is asked once for each thread, and not for what
 * is known already. */
static bool memory_ready(struct app_reader *reader)
{
	if (reader->state == MEMORY_UNASKED)
		reader->state = memory_free(reader) && (reader->open || memory_open(reader))
					? MEMORY_READY
					: MEMORY_REFUSED;
	return reader->state == MEMORY_READY;
}

/* Reads as many bytes as are in memory, at least one. Returns their count, or 0. */
static size_t memory_read(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	ssize_t got;

	if (!address || address > INT64_MAX - bytes)
		return 0;
	if (!memory_ready(reader))
		return 0;
	bytes = present_bytes_near(reader->pagemap, &reader->pages, address, bytes);
	got = bytes ? pread(reader->mem, to, bytes, (off_t)address) : 0;
	return got > 0 ? (size_t)got : 0;
}

/* Those that are near each other are read at once. */
void app_words(struct app_reader *reader)
{
	uint64_t left = (UINT64_C(1) << APP_SYMBOLS_MAX) - 1;
	char bytes[SPAN_BYTES];

	memset(reader->words, 0, sizeof(reader->words));
	while (left) {
		uint64_t from = UINT64_MAX, behind;
		size_t got;

		for (int i = 0; i < APP_SYMBOLS_MAX; i++)
			if (left >> i & 1 && reader->symbols[i] && reader->symbols[i] < from)
				from = reader->symbols[i];
		if (from == UINT64_MAX)
			return;
		got = memory_read(reader, from, bytes, sizeof(bytes));
		for (int i = 0; i < APP_SYMBOLS_MAX; i++) {
			behind = reader->symbols[i] - from;
			if (!(left >> i & 1) || !reader->symbols[i])
				continue;
			if (behind + sizeof(reader->words[i]) <= got)
				memcpy(&reader->words[i], bytes + behind, sizeof(reader->words[i]));
			if (behind + sizeof(reader->words[i]) <= got || !behind)
				left &= ~(UINT64_C(1) << i);
		}
	}
}

static void memory_end(struct app_process *process, bool done)
{
	struct app_reader *reader = &process->reader;

	process->failed = !done;
	if (!done && process->next_look_ns > reader->now_ns + FAILED_NS)
		process->next_look_ns = reader->now_ns + FAILED_NS;
	if (!done && process->next_modules_ns > reader->now_ns + FAILED_NS)
		process->next_modules_ns = reader->now_ns + FAILED_NS;
	if (!done || reader->apps->open_count > reader->apps->open_most)
		memory_close(reader);
}

/* --- all programs */

struct apps *apps_new(const char *proc_root)
{
	struct apps *apps = memory_get(sizeof(*apps));

	apps->root = proc_root;
	apps->processes = (struct cache){.entry_bytes = sizeof(struct app_process),
					 .entries_max = PROCESSES_MAX,
					 .drop = process_drop};
	apps->open_most = descriptors_share(2 * OPEN_MOST, 16) / 2;
	apps->families = (struct cache){.entry_bytes = sizeof(struct app_family),
					.entries_max = PROCESSES_MAX};
	apps->threads = (struct cache){.entry_bytes = sizeof(struct app_thread),
				       .entries_max = THREADS_MAX};
	apps->files =
		(struct cache){.entry_bytes = sizeof(struct app_file), .entries_max = FILES_MAX};
	app_variables_init(&apps->variables);
	golang_init(&apps->golang_files);
	return apps;
}

void apps_free(struct apps *apps)
{
	cache_done(&apps->processes);
	cache_done(&apps->families);
	cache_done(&apps->threads);
	cache_done(&apps->files);
	cache_done(&apps->variables);
	cache_done(&apps->golang_files);
	user_memory_sweep(&apps->memory, INT64_MAX);
	free(apps->windows);
	free(apps);
}

void apps_set_parser(struct apps *apps, struct parser *parser)
{
	apps->parser = parser;
}

void apps_set_look_setter(struct apps *apps, app_look_setter *set, void *of)
{
	apps->set_look = set;
	apps->look_setter = of;
}

void apps_set_pointer_reader(struct apps *apps, app_pointer_reader *read)
{
	apps->read_pointer = read;
}

void apps_hide_texts(struct apps *apps)
{
	apps->hides_texts = true;
}

void apps_sweep(struct apps *apps, int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&apps->processes, now_ns, idle_ns);
	cache_sweep(&apps->families, now_ns, KNOWN_OLD_NS);
	cache_sweep(&apps->threads, now_ns, idle_ns);
	cache_sweep(&apps->files, now_ns, FILES_IDLE_NS);
	cache_sweep(&apps->variables, now_ns, FILES_IDLE_NS);
	cache_sweep(&apps->golang_files, now_ns, FILES_IDLE_NS);
	user_memory_sweep(&apps->memory, now_ns);
}

/* --- for programs */

struct parser *app_parser(struct app_reader *reader)
{
	return reader->apps->parser;
}

size_t app_read_some(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	return memory_read(reader, address, to, bytes);
}

bool app_read(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	return memory_read(reader, address, to, bytes) == bytes;
}

const char *app_text(struct app_reader *reader, uint64_t address)
{
	return app_text_part(reader, address, UINT64_MAX);
}

const char *app_text_part(struct app_reader *reader, uint64_t address, uint64_t bytes)
{
	char text[APP_TEXT_BYTES];
	size_t got = memory_read(reader, address, text,
				 bytes < sizeof(text) ? (size_t)bytes : sizeof(text));
	size_t length = got ? strnlen(text, got) : 0;

	if (got && length == got && got != bytes) { /* there is more: cut before a character */
		length--;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	return length ? name_transient(text, length) : NULL;
}

const char *app_text_near(struct app_reader *reader, uint64_t address, uint64_t bytes)
{
	const uint64_t before = address % PAGE_BYTES;
	uint64_t within = address - reader->near.from;
	size_t most, length;

	if (within >= reader->near.count) {
		within = before < APP_NEAR_BYTES / 2 ? before : APP_NEAR_BYTES / 2;
		if (PAGE_BYTES - before < APP_NEAR_BYTES - within)
			within = APP_NEAR_BYTES - (PAGE_BYTES - before);
		reader->near.from = address - within;
		reader->near.count = memory_read(reader, reader->near.from, reader->near.bytes,
						 sizeof(reader->near.bytes));
	}
	if (within >= reader->near.count)
		return NULL;
	most = reader->near.count - within;
	most = bytes < most ? (size_t)bytes : most;
	length = strnlen(reader->near.bytes + within, most);
	/* else it goes on */
	if (length == most && most < bytes)
		return app_text_part(reader, address, bytes);
	return length ? name_transient(reader->near.bytes + within, length) : NULL;
}

uint64_t app_pointer(struct app_reader *reader)
{
	const struct apps *apps = reader->apps;

	if (!reader->asked_pointer && (!memory_ready(reader) || !apps->read_pointer ||
				       !apps->read_pointer(reader->tid, &reader->pointer)))
		reader->pointer = 0;
	reader->asked_pointer = true;
	return reader->pointer;
}

bool app_pointer_changed(struct app_reader *reader)
{
	uint64_t before = reader->pointer;

	if (!reader->old_pointer)
		return false;
	reader->asked_pointer = reader->old_pointer = false;
	return app_pointer(reader) != before;
}

/* Reads memory of the process' parent, if that runs the same program. Returns the count of bytes
 * that are in memory there, or 0. */
static size_t parent_read(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	struct apps *apps = reader->apps;
	ssize_t got =
		reader->parent_same
			? user_memory_read_again(&apps->memory, apps->root, reader->parent,
						 reader->parent, reader->now_ns, address, to, bytes)
			: 0;

	return got > 0 ? (size_t)got : 0;
}

/* Reads the window of a page: of the parent, which has set up all that the processes share, or from
 * that page on of the process itself, which has used little else of it. */
static void window_read(struct app_reader *reader, struct app_window *window, uint64_t page)
{
	const uint64_t start = page - page % WINDOW_BYTES, enough = page + PAGE_BYTES;
	const int64_t began_ns = clock_monotonic_ns();
	char *bytes = window->bytes + (page - start);
	const size_t size = WINDOW_BYTES - (page - start);

	window->start = window->from = start;
	window->parent = reader->parent;
	window->behind = start + parent_read(reader, start, window->bytes, WINDOW_BYTES);
	if (window->behind < enough) {
		window->from = page;
		window->behind = page + parent_read(reader, page, bytes, size);
	}
	if (window->behind < enough)
		window->behind = page + memory_read(reader, page, bytes, size);
	window->read_ns = began_ns;
}

/* Returns the page's bytes, or NULL: it is not in memory. */
static const char *page_get(struct app_reader *reader, uint64_t page)
{
	struct apps *apps = reader->apps;
	struct app_window *window;

	if (!apps->windows)
		apps->windows = memory_get(WINDOWS * sizeof(*apps->windows));
	window = &apps->windows[(page / WINDOW_BYTES + hash_u64((uint64_t)reader->parent)) %
				WINDOWS];
	if (window->start != page - page % WINDOW_BYTES || window->parent != reader->parent ||
	    window->read_ns <= reader->since_ns || window->from > page ||
	    window->behind < page + PAGE_BYTES)
		window_read(reader, window, page);
	return window->from <= page && window->behind >= page + PAGE_BYTES
		       ? window->bytes + (page - window->start)
		       : NULL;
}

bool app_read_kin(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	if (!reader->since_ns || address < PAGE_BYTES || address > INT64_MAX - WINDOW_BYTES - bytes)
		return app_read(reader, address, to, bytes);
	while (bytes) {
		uint64_t within = address % PAGE_BYTES;
		size_t part = PAGE_BYTES - within < bytes ? PAGE_BYTES - within : bytes;
		const char *page = page_get(reader, address - within);

		if (!page)
			return app_read(reader, address, to, bytes);
		memcpy(to, page + within, part);
		to = (char *)to + part;
		address += part;
		bytes -= part;
	}
	return true;
}

bool app_read_shared(struct app_reader *reader, uint64_t address, void *to, size_t bytes)
{
	return app_read(reader, address, to, bytes) ||
	       (address && parent_read(reader, address, to, bytes) == bytes);
}

struct sibling_walk {
	struct app_reader *reader;
	int64_t inner_pid, found;
	int count;
};

static bool sibling_visit(void *to, int64_t pid)
{
	struct sibling_walk *walk = to;

	if (thread_inner_tid(walk->reader->apps->root, pid) == walk->inner_pid)
		walk->found = pid;
	return !walk->found && ++walk->count < SIBLINGS_MAX;
}

int64_t app_sibling(struct app_reader *reader, int64_t inner_pid)
{
	struct sibling_walk walk = {.reader = reader, .inner_pid = inner_pid};

	if (reader->inner_pid == reader->pid)
		return inner_pid;
	proc_children_walk(reader->apps->root, reader->parent, reader->parent, sibling_visit,
			   &walk);
	return walk.found;
}

bool app_file_begin(struct app_reader *reader, const char *path, void *to, size_t bytes)
{
	const struct apps *apps = reader->apps;
	char link[PATH_MAX];
	bool done;
	int fd;

	if (avoids_process(reader->tid))
		return false;
	snprintf(link, sizeof(link), "%s/%lld/cwd/%s", apps->root, (long long)reader->tid, path);
	fd = process_link_open(AT_FDCWD, link);
	if (fd < 0)
		return false;
	done = !file_begin_request(apps->parser, fd, to, bytes);
	close(fd);
	return done;
}

int app_file_open(struct app_reader *reader, const struct mapping *mapping)
{
	return mapping_open(mapping, reader->apps->root, reader->tid);
}

/* --- processes */

/* Returns the program whose programs have a file of that path, or NULL. */
static const struct app_program *program_of(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t length = name ? app_name_length(++name) : 0;

	/* php-fpm8.2 */
	while (length > 1 && strchr("0123456789.", name[length - 1]))
		length--;
	for (size_t i = 0; name && i < sizeof(programs) / sizeof(programs[0]); i++)
		for (const char *const *wanted = programs[i]->names; *wanted; wanted++)
			if (strlen(*wanted) == length && !memcmp(name, *wanted, length))
				return programs[i];
	return NULL;
}

/* Returns what is known of the file, which a parser reads when it is first met; NULL: it is no ELF
 * file, or none of the program's. */
static const struct app_file *file_find(struct apps *apps, const struct app_program *program,
					int fd, int64_t now_ns)
{
	struct file_symbols_answer symbols;
	struct app_file *known;
	unsigned int count = 0;
	struct stat file;
	uint64_t key;
	bool added;

	if (fstat(fd, &file))
		return NULL;
	key = hash_u64(hash_u64((uint64_t)file.st_dev) ^ (uint64_t)file.st_ino);
	known = cache_get(&apps->files, key, now_ns, &added);
	if (known->program == program && known->device == (uint64_t)file.st_dev &&
	    known->inode == (uint64_t)file.st_ino)
		return known;
	known->program = NULL;
	known->elf = (struct elf_file){.fd = fd, .bytes = (uint64_t)file.st_size};
	while (program->symbols[count])
		count++;
	memset(known->layout, 0, sizeof(known->layout));
	if (file_head_request(apps->parser, &known->elf) ||
	    file_symbols_request(apps->parser, &known->elf, program->symbols, count, &symbols) ||
	    (program->learn && !program->learn(&symbols, known->layout)))
		return NULL;
	memcpy(known->symbols, symbols.addresses, sizeof(known->symbols));
	known->program = program;
	known->device = (uint64_t)file.st_dev;
	known->inode = (uint64_t)file.st_ino;
	known->elf.fd = -1;
	return known;
}

/* Finds the program's file among the mappings, and where its symbols are. */
static bool place_find(struct apps *apps, const struct app_program *program,
		       const struct stack_thread *thread, struct app_reader *reader)
{
	const struct app_file *file = NULL;
	struct process_maps *maps;
	struct cache processes;
	uint64_t address;
	int err;

	process_maps_cache_init(&processes);
	maps = process_maps_get(&processes, apps->root, thread, &err);
	for (size_t i = 0; maps && i < maps->count && !file; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		int fd = mapping->path && mapping->inode && program_of(mapping->path) == program
				 ? mapping_open(mapping, apps->root, thread->tid)
				 : -1;

		file = fd >= 0 ? file_find(apps, program, fd, thread->now_ns) : NULL;
		if (fd >= 0)
			close(fd);
		if (file && !elf_address_of(&file->elf, mapping->offset, &address))
			file = NULL;
		if (file)
			memcpy(reader->layout, file->layout, sizeof(file->layout));
		for (size_t symbol = 0; file && symbol < APP_SYMBOLS_MAX; symbol++)
			reader->symbols[symbol] =
				file->symbols[symbol]
					? file->symbols[symbol] + mapping->start - address
					: 0;
	}
	cache_done(&processes);
	return file;
}

/* Forgets what was read of the process, which may run another program by now. */
static void reader_begin(struct apps *apps, struct app_process *process, int64_t pid, int64_t tid)
{
	memory_close(&process->reader);
	process->reader = (struct app_reader){.apps = apps, .pid = pid, .tid = tid};
}

static void process_look(struct apps *apps, struct app_process *process, int64_t pid, int64_t tid,
			 int64_t now_ns)
{
	const struct stack_thread thread = {.pid = pid, .tid = tid, .now_ns = now_ns};
	struct app_family *family;
	struct proc_stat stat;
	char path[PATH_MAX], parent_path[PATH_MAX];
	bool added;

	process->program = NULL;
	if (proc_link_read(apps->root, thread.pid, thread.tid, "exe", path, sizeof(path)) <= 0)
		return;
	reader_begin(apps, process, pid, tid);
	process->program = program_of(path);
	if (!process->program)
		return;
	process->reader.inner_pid = thread_inner_tid(apps->root, thread.pid);
	process->reader.parent =
		proc_stat_read(apps->root, thread.pid, thread.pid, &stat) ? 0 : stat.ppid;
	process->reader.parent_same =
		process->reader.parent > 0 &&
		proc_link_read(apps->root, process->reader.parent, process->reader.parent, "exe",
			       parent_path, sizeof(parent_path)) > 0 &&
		!strcmp(path, parent_path);
	family = cache_get(&apps->families, (uint64_t)process->reader.parent, now_ns, &added);
	if (!process->failed && family->program == process->program &&
	    now_ns - family->read_ns < KNOWN_OLD_NS) {
		memcpy(process->reader.symbols, family->symbols, sizeof(family->symbols));
		memcpy(process->reader.layout, family->layout, sizeof(family->layout));
		process->reader.version = family->version;
		return;
	}
	if (!place_find(apps, process->program, &thread, &process->reader)) {
		process->program = NULL;
		return;
	}
	process->reader.now_ns = now_ns;
	if (process->program->take)
		process->program->take(&process->reader);
	family->program = process->program;
	family->read_ns = now_ns;
	family->version = process->reader.version;
	memcpy(family->symbols, process->reader.symbols, sizeof(family->symbols));
	memcpy(family->layout, process->reader.layout, sizeof(family->layout));
}

/* Finds what the process publishes, and where its threads do. */
static void otel_look(struct apps *apps, struct app_process *process,
		      const struct app_modules *modules)
{
	struct app_reader *reader = &process->reader;
	struct elf_variable variable;
	struct tls_linker linker = {0};
	struct otel *otel;
	uint64_t distance;

	if (!modules->marked) {
		free(process->otel);
		process->otel = NULL;
		return;
	}
	if (!process->otel)
		process->otel = memory_get(sizeof(*process->otel));
	otel = process->otel;
	if (otel->header != modules->marked)
		*otel = (struct otel){.header = modules->marked};
	otel_read(reader, otel);
	otel->place.found = false;
	for (size_t i = 0; otel->schema_known && i < modules->count && !otel->place.found; i++)
		if (app_variable_find(&apps->variables, reader, &modules->files[i], OTEL_VARIABLE,
				      i != modules->program, &variable, &distance) &&
		    variable.thread_local_storage) {
			if (i != modules->program)
				tls_linker_find(reader, modules, &apps->variables, &linker);
			tls_place_find(reader, &variable, distance, i == modules->program, &linker,
				       &otel->place);
		}
}

static void golang_look(struct apps *apps, struct app_process *process,
			const struct app_modules *modules)
{
	const struct golang *golang = golang_find(&process->reader, modules, &apps->golang_files);

	process->golang = golang ? *golang : (struct golang){.labelled = false};
}

static void variables_look(struct apps *apps, struct app_process *process,
			   const struct app_modules *modules)
{
	if (!process->variables)
		process->variables =
			memory_get(PROGRAM_VARIABLES_MAX * sizeof(*process->variables));
	if (!variables_find(&process->reader, modules, &apps->variables, process->variables,
			    apps->seen)) {
		free(process->variables);
		process->variables = NULL;
	}
}

/* Finds what there is in the files that the process has mapped, whatever program it is. */
static void modules_look(struct apps *apps, struct app_process *process, int64_t pid, int64_t tid,
			 uint64_t needs, int64_t now_ns)
{
	struct app_modules modules;

	if (!process->program)
		reader_begin(apps, process, pid, tid);
	memory_begin(&process->reader, tid, 0, now_ns);
	if (app_modules_read(&modules, otel_is_header, apps->root, pid, tid) &&
	    memory_ready(&process->reader)) {
		if (needs & NEEDS_OF_OTEL)
			otel_look(apps, process, &modules);
		if (needs & NEED_CONTEXT)
			golang_look(apps, process, &modules);
		if (needs & NEED_VARIABLES)
			variables_look(apps, process, &modules);
		memory_end(process, true);
	}
	app_modules_done(&modules);
}

/* Returns the thread's process, which is looked at now if that is due and the scan has time for it.
 * started_ns: start of its first thread; 0: not known. */
static struct app_process *process_get(struct apps *apps, int64_t pid, int64_t tid,
				       int64_t started_ns, uint64_t needs, int64_t now_ns)
{
	int64_t start_ns, took_ns;
	bool added, modules = needs & NEEDS_OF_MODULES, own = needs & ~NEEDS_OF_MODULES;
	struct app_process *process = cache_get(&apps->processes, (uint64_t)pid, now_ns, &added);

	if (apps->scan_ns != now_ns)
		apps->spent_ns = 0;
	apps->scan_ns = now_ns;
	if (started_ns && process->start_ns != started_ns) {
		process->program = NULL; /* another process has its id */
		process->next_look_ns = process->next_modules_ns = 0;
		process->silent_looks = 0;
		process->start_ns = started_ns;
		process_drop(process);
	}
	own = own && now_ns >= process->next_look_ns;
	modules = modules && now_ns >= process->next_modules_ns;
	if (!(own || modules) || apps->spent_ns >= LOOK_SCAN_NS)
		return process;
	start_ns = clock_monotonic_ns();
	if (own)
		process_look(apps, process, pid, tid, now_ns);
	if (modules)
		modules_look(apps, process, pid, tid, needs, now_ns);
	took_ns = clock_monotonic_ns() - start_ns;
	apps->spent_ns += took_ns;
	if (own)
		process->next_look_ns = now_ns + (process->program ? KNOWN_OLD_NS : OTHER_OLD_NS) +
					took_ns * LOOK_SHARE;
	if (modules)
		process->next_modules_ns =
			now_ns + took_ns * LOOK_SHARE +
			(process->otel || process->variables || process->golang.labelled
				 ? SPEAKING_OLD_NS
				 : NS_PER_SECOND << process->silent_looks);
	if (modules && process->silent_looks < SILENT_LOOKS)
		process->silent_looks++;
	return process;
}

static struct app_thread *thread_get(struct apps *apps, const struct sample *sample,
				     uint64_t sequence, int64_t now_ns)
{
	bool added;
	struct app_thread *thread =
		cache_get(&apps->threads, (uint64_t)sample->thread.tid, now_ns, &added);
	struct cache_entry entry = thread->entry;
	bool same = !added && thread->start_ns == sample->thread.start_ns;
	uint64_t looked_ns = same ? thread->looked_ns : 0, pointer = same ? thread->pointer : 0;

	if (!same || thread->sequence != sequence)
		*thread = (struct app_thread){.entry = entry,
					      .start_ns = sample->thread.start_ns,
					      .sequence = sequence,
					      .looked_ns = looked_ns,
					      .pointer = pointer,
					      .facts = sample_absent()->app};
	return thread;
}

static void texts_hide(struct sample_app *facts)
{
	static struct text folded;

	facts->context = NULL;
	if (!facts->query)
		return;
	text_clear(&folded);
	query_fold(&folded, facts->query);
	facts->query = name_transient_string(text_string(&folded));
}

/* A process may end what it publishes while its threads wait. */
static void otel_absent(struct sample_app *facts, bool labelled)
{
	facts->service = facts->instance = facts->trace = facts->span = NULL;
	if (!labelled)
		facts->context = NULL;
}

/* Reads what is missing of the thread's words. */
static void thread_read(struct apps *apps, struct app_process *process, struct app_thread *thread,
			uint64_t missing, int64_t tid, int64_t since_ns, int64_t now_ns)
{
	uint64_t own = process->program ? missing & ~NEEDS_OF_MODULES : 0;
	uint64_t published = process->otel ? missing & NEEDS_OF_OTEL : 0;
	uint64_t variables = process->variables ? missing & NEED_VARIABLES : 0, pointer = 0;
	uint64_t labels = process->golang.labelled ? missing & NEED_CONTEXT : 0;
	struct app_reader *reader = &process->reader;
	bool done;

	if (!(own | published | variables | labels))
		return;
	memory_begin(reader, tid, since_ns, now_ns);
	if (published & ~NEED_SERVICE || variables || labels) {
		pointer = app_pointer(reader);
	} else if (thread->pointer) {
		reader->pointer = thread->pointer;
		reader->asked_pointer = reader->old_pointer = true;
	}
	done = (!own || process->program->read(reader, own, &thread->facts)) &&
	       (!published || otel_fill(reader, process->otel, published, pointer, &thread->facts));
	if (done && labels && !thread->facts.context)
		thread->facts.context = golang_labels(reader, &process->golang, pointer);
	if (apps->hides_texts)
		texts_hide(&thread->facts);
	done = done && (!(variables | labels) || memory_ready(reader));
	if (done && variables)
		variables_fill(reader, process->variables, pointer, &thread->facts);
	if (reader->asked_pointer)
		thread->pointer = reader->pointer;
	memory_end(process, done);
	/* else it has forked, or made an exec, just now */
	thread->known |= done ? own | published | variables | labels : 0;
	if (published)
		thread->published_ns = process->otel->published_ns;
}

/* True if what was read of what the thread publishes no longer holds: the process context has what
 * it means. */
static bool published_old(const struct app_process *process, const struct app_thread *thread,
			  int64_t now_ns)
{
	return process->otel && (otel_due(process->otel, now_ns) ||
				 process->otel->published_ns != thread->published_ns);
}

/* True if the thread left its CPU at the scan time, as the one does whose CPU tsnap needs: what is
 * read of it is of that time, as a look at a CPU is. */
static bool is_displaced(const struct lookup_hint *hint, int64_t now_ns)
{
	return hint->since_ns >= now_ns && hint->since_ns <= now_ns + DISPLACED_NS;
}

void apps_fill(struct apps *apps, struct sample *sample, const struct lookup_hint *hint,
	       uint64_t needs, int64_t now_ns)
{
	struct app_process *process;
	struct app_thread *thread;

	needs &= NEEDS_OF_APP;
	if (!needs || !apps->parser || sample->thread.kthread == 1 ||
	    (sample->now.state == STATE_ON && !is_displaced(hint, now_ns)) ||
	    sample->now.state == STATE_ZOMBIE)
		return;
	process =
		process_get(apps, sample->thread.pid, sample->thread.tid,
			    sample->thread.tid == sample->thread.pid ? sample->thread.start_ns : 0,
			    needs, now_ns);
	if (!process->program && !process->otel && !process->variables && !process->golang.labelled)
		return;
	thread = thread_get(apps, sample, hint->sequence, now_ns);
	if (published_old(process, thread, now_ns))
		thread->known &= ~NEEDS_OF_OTEL;
	thread_read(apps, process, thread, needs & ~thread->known, sample->thread.tid,
		    hint->since_ns, now_ns);
	sample->app = thread->facts;
	if (!process->otel)
		otel_absent(&sample->app, process->golang.labelled);
}

/* Has looks at the thread's CPU read its record. */
static void look_set(struct apps *apps, struct app_process *process, struct app_thread *thread)
{
	struct app_reader *reader = &process->reader;
	uint64_t pointer = process->otel->place.found ? app_pointer(reader) : 0;
	uint64_t address = pointer ? tls_address(reader, &process->otel->place, pointer) : 0;

	if (!address)
		return;
	apps->set_look(apps->look_setter, reader->tid, address);
	thread->looked_ns = process->otel->published_ns;
}

/* Fills what the process publishes, and what a look at the thread's CPU has read. False: it can't
 * be read. */
static bool published_fill(struct apps *apps, struct app_process *process,
			   const struct sample *sample, uint64_t needs, const struct app_look *look,
			   struct sample_app *facts)
{
	struct app_reader *reader = &process->reader;
	struct otel *otel = process->otel;
	struct sample_app said = sample_absent()->app;
	struct app_thread *thread;

	if (!otel_fill(reader, otel, NEED_SERVICE, 0, &said))
		return false;
	facts->service = said.service;
	facts->instance = said.instance;
	if (!(needs & ~NEED_SERVICE) || !apps->set_look || sample->now.state != STATE_ON)
		return true;
	thread = thread_get(apps, sample, UINT64_MAX, reader->now_ns); /* it is in no wait */
	/* what another program, or a thread that is gone, had there is none of this one's */
	if (look->bytes && thread->looked_ns == otel->published_ns)
		otel_take(reader, otel, needs, look->data, look->bytes, facts);
	else
		look_set(apps, process, thread);
	return true;
}

void apps_fill_running(struct apps *apps, struct sample *sample, uint64_t needs, int64_t now_ns,
		       const struct app_look *look)
{
	const struct sample_thread *thread = &sample->thread;
	struct sample_app facts = sample->app;
	struct app_process *process;
	bool says, done;

	needs &= NEED_QUERY | NEED_APP | NEEDS_OF_OTEL;
	if (!needs || !apps->parser || thread->kthread == 1 || sample->now.state == STATE_ZOMBIE)
		return;
	process = process_get(apps, thread->pid, thread->tid,
			      thread->tid == thread->pid ? thread->start_ns : 0, needs, now_ns);
	says = needs & ~NEEDS_OF_OTEL && process->program && process->program->read_running;
	if (!says && !(process->otel && needs & NEEDS_OF_OTEL))
		return;
	memory_begin(&process->reader, thread->tid, 0, now_ns);
	done = !says || process->program->read_running(&process->reader, needs, &facts,
						       clock_utc_of_us(now_ns));
	if (process->otel && needs & NEEDS_OF_OTEL)
		done &= published_fill(apps, process, sample, needs & NEEDS_OF_OTEL, look, &facts);
	if (done && apps->hides_texts)
		texts_hide(&facts);
	if (done)
		sample->app = facts;
	memory_end(process, done);
}

void apps_lacking(const struct apps *apps, app_lacking_callback *take, void *to)
{
	static struct text words;

	for (size_t i = 0; i < program_variable_count; i++) {
		text_clear(&words);
		if (variable_lacks(i, &apps->seen[i], &words))
			take(to, text_string(&words));
	}
}

/* Begins to read of a thread whose program is known. NULL: it is not. */
static struct app_process *process_begin(struct apps *apps, int64_t pid, int64_t tid,
					 int64_t now_ns)
{
	struct app_process *process =
		apps->parser ? process_get(apps, pid, tid, 0, NEED_APP, now_ns) : NULL;

	if (!process || !process->program)
		return NULL;
	memory_begin(&process->reader, tid, 0, now_ns);
	return process;
}

bool app_lock_find(void *of, int64_t pid, int64_t tid, int64_t now_ns, struct app_lock *lock)
{
	struct app_process *process = process_begin(of, pid, tid, now_ns);
	bool done;

	*lock = (struct app_lock){.waits = false};
	if (!process || !process->program->lock)
		return false;
	done = process->program->lock(&process->reader, lock);
	memory_end(process, done);
	return done;
}

bool app_serves_find(void *of, int64_t pid, int64_t tid, int64_t now_ns, bool *serves)
{
	struct app_process *process = process_begin(of, pid, tid, now_ns);
	bool done;

	*serves = false;
	if (!process || !process->program->serves)
		return false;
	done = process->program->serves(&process->reader, serves);
	memory_end(process, done);
	return done;
}
