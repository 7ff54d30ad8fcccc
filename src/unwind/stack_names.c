/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/stack_names.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "base/thread.h"
#include "unwind/elf/perf_map.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEBUG_PATH "usr/lib/debug/.build-id/"
#define AGAIN_NS (50 * NS_PER_MS)
#define STARVED_TRIES 3

void symbols_cache_done(struct symbols_cache *cache)
{
	file_forget(cache->parser);
}

/* True if the present parser knows the file. */
static bool is_reported(const struct symbols_cache *cache, const struct module *module)
{
	return module->named.generation && module->named.generation == cache->parser->generation;
}

/* Has the parser forget a module that is closing. */
static void symbols_cache_close(struct symbols_cache *cache, struct module *module)
{
	if (is_reported(cache, module))
		file_drop(cache->parser, module->number);
	module->named.generation = 0;
}

/* Opens the separate debug file as gdb finds it by the build-id: the process' own first, then this
 * host's. */
static int debug_open(const struct symbols_cache *cache, const struct module *module)
{
	struct text path = {0};
	int fd;

	if (module->elf.build_id_bytes < 2)
		return -ENOENT;
	text_add_string(&path, DEBUG_PATH);
	for (uint32_t i = 0; i < module->elf.build_id_bytes; i++)
		text_add_format(&path, "%02x%s", module->elf.build_id[i], i ? "" : "/");
	text_add_string(&path, ".debug");
	fd = process_file_open(cache->proc_root, module->tid, text_string(&path), false);
	if (fd < 0)
		fd = process_file_open("/proc", getpid(), text_string(&path), false);
	text_done(&path);
	return fd;
}

/* Opens a process' perf map, through that one of its two known threads that is still there. */
static int map_open(struct symbols_cache *cache, struct module *module)
{
	bool refused;
	int64_t tid = process_has_root(cache->proc_root, module->pid) ? module->pid : module->tid;
	int fd = perf_map_open(cache->proc_root, tid, module->uid, &refused);

	cache->counts.refused += refused && !module->named.refused;
	module->named.refused = module->named.refused || refused;
	return fd;
}

/* Waits for a parser: after one that ended the next may not be started at once. */
static int parser_wait(struct parser *parser)
{
	const struct timespec pause = {0, AGAIN_NS};
	int err;

	while ((err = parser_ready(parser)) == -EAGAIN && !parser->stop)
		nanosleep(&pause, NULL);
	return err;
}

/* Requests a name, and sends what the parser lacks of the module as well. map: the descriptor of
 * its perf map, or below 0. Returns 0 or -errno. */
static int name_request(struct symbols_cache *cache, struct module *module, uint64_t address,
			int map, struct file_name_answer *answer)
{
	bool jit = module->kind == FRAME_JIT, opens = jit ? map >= 0 : !is_reported(cache, module);
	const struct file_request request = {.kind = FILE_NAME,
					     .number = module->number,
					     .address = address,
					     .bytes = module->elf.bytes,
					     .opens = opens,
					     .jit = jit};
	struct parser_message message = {.fd_count = 0};
	int debug = opens && !jit ? debug_open(cache, module) : -1, err;

	if (opens && !jit && module->image) {
		message.body = module->image;
		message.body_bytes = module->elf.bytes;
	} else if (opens) {
		message.fds[message.fd_count++] = jit ? map : module->fd;
		if (debug >= 0)
			message.fds[message.fd_count++] = debug;
	}
	err = file_name_request(cache->parser, &request, &message, answer);
	if (debug >= 0)
		close(debug);
	if (!err)
		module->named.generation = cache->parser->generation;
	return err;
}

/* Requests a name, from the next parser where this one ends over the request. */
static bool name_get(struct symbols_cache *cache, struct module *module, uint64_t address, int map,
		     struct file_name_answer *answer)
{
	int err = -EPIPE, tries = 0;

	while ((err == -EPIPE || (err == -EAGAIN && ++tries < STARVED_TRIES)) &&
	       module->named.ended < FILE_ENDS_MAX && !cache->parser->stop) {
		err = parser_wait(cache->parser);
		if (!err)
			err = name_request(cache, module, address, map, answer);
		module->named.ended += err == -EPIPE && !cache->parser->stop;
	}
	if (err)
		return false;
	cache->counts.cut += answer->cut && !module->named.cut;
	module->named.cut = module->named.cut || answer->cut;
	cache->counts.unloaded += answer->unloaded;
	answer->name[FUNCTION_NAME_SIZE - 1] = '\0';
	return answer->found;
}

/* Finds a name in the perf map of code that is in no file; a miss opens the map again, which may
 * have grown. */
static bool jit_name_get(struct symbols_cache *cache, struct module *module, uint64_t address,
			 struct file_name_answer *answer)
{
	bool known;
	int map;

	if (is_reported(cache, module) && name_get(cache, module, address, -1, answer))
		return true;
	map = map_open(cache, module);
	known = map >= 0 && name_get(cache, module, address, map, answer);
	if (map >= 0)
		close(map);
	return known;
}

bool symbols_name(struct symbols_cache *cache, struct module *module, uint64_t address,
		  char name[FUNCTION_NAME_SIZE])
{
	struct file_name_answer answer;
	bool jit = module->kind == FRAME_JIT;

	if (!cache->parser || !(jit ? jit_name_get(cache, module, address, &answer)
				    : name_get(cache, module, address, -1, &answer)))
		return false;
	memcpy(name, answer.name, FUNCTION_NAME_SIZE);
	function_name_clean(name);
	return *name;
}

#define QUEUE_MAX 4096
#define KERNEL_SYMBOLS "/proc/kallsyms"
#define MODULE_KERNEL (UINT32_MAX - 1)

enum name_state { NAME_NEW, NAME_QUEUED, NAME_KNOWN, NAME_NONE };

struct named_frame {
	struct frame frame;
	const char *name, *location; /* location: module+0xOFFSET */
	enum name_state state;
};

struct name_work {
	struct module *module;
	uint64_t address;
	uint32_t frame, round;
	bool found;
	char name[FUNCTION_NAME_SIZE];
};

struct stack_names {
	struct module_table *modules;
	struct index at; /* hash of a frame, to number */
	struct named_frame *frames;
	uint32_t count;
	uint32_t round; /* times that frames were forgotten: work of earlier rounds is dropped */
	size_t capacity;
	/* Shared with the thread: work from done on to todo is waiting, from taken on to done is
	 * done; indexes into work are these numbers modulo QUEUE_MAX. */
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	struct name_work *work;
	uint64_t taken, done, todo;
	struct stack_names_counts counts;
	pthread_t kernel_thread;
	bool kernel_threaded, kernel_read;
	struct kernel_symbols kernel; /* owned by kernel_thread until kernel_read */
	bool end;
	/* Members that only the thread uses. */
	pthread_t thread;
	bool threaded;
	struct symbols_cache symbols;
};

/* Reads the kernel's names, in a thread of its own: on slow machines it takes seconds, and other
 * names must not wait for it. */
static void *kernel_thread(void *of)
{
	struct stack_names *names = of;

	kernel_symbols_read(&names->kernel, KERNEL_SYMBOLS);
	pthread_mutex_lock(&names->lock);
	names->kernel_read = true;
	pthread_cond_signal(&names->less);
	pthread_mutex_unlock(&names->lock);
	return NULL;
}

static void *names_thread(void *of)
{
	struct stack_names *names = of;

	pthread_mutex_lock(&names->lock);
	while (!names->end) {
		struct name_work *work = &names->work[names->done % QUEUE_MAX];

		if (names->done == names->todo) {
			pthread_cond_wait(&names->more, &names->lock);
			continue;
		}
		pthread_mutex_unlock(&names->lock);
		work->found =
			symbols_name(&names->symbols, work->module, work->address, work->name);
		pthread_mutex_lock(&names->lock);
		names->counts = names->symbols.counts;
		names->done++;
		if (names->done == names->todo)
			pthread_cond_signal(&names->less);
	}
	pthread_mutex_unlock(&names->lock);
	return NULL;
}

static void thread_start(struct stack_names *names)
{
	names->end = false;
	names->threaded = !thread_begin(&names->thread, names_thread, names);
}

static void parser_stop(struct stack_names *names, bool stop)
{
	if (names->symbols.parser)
		names->symbols.parser->stop = stop;
}

/* Ends the thread: the name that is being looked for is given up, and the rest of the work is
 * dropped. */
static void thread_stop(struct stack_names *names)
{
	if (!names->threaded)
		return;
	parser_stop(names, true);
	pthread_mutex_lock(&names->lock);
	names->end = true;
	pthread_cond_signal(&names->more);
	pthread_mutex_unlock(&names->lock);
	pthread_join(names->thread, NULL);
	parser_stop(names, false);
	names->threaded = false;
	names->taken = names->done = names->todo = 0;
}

/* Waits until the kernel's names are all read. */
static void kernel_thread_end(struct stack_names *names)
{
	if (names->kernel_threaded)
		pthread_join(names->kernel_thread, NULL);
	names->kernel_threaded = false;
}

struct stack_names *stack_names_new(const char *proc_root, struct module_table *modules,
				    struct parser *parser)
{
	struct stack_names *names = memory_get(sizeof(*names));
	pthread_condattr_t clock;

	names->modules = modules;
	names->work = memory_get(QUEUE_MAX * sizeof(*names->work));
	names->symbols = (struct symbols_cache){.proc_root = proc_root, .parser = parser};
	pthread_mutex_init(&names->lock, NULL);
	pthread_cond_init(&names->more, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&names->less, &clock);
	pthread_condattr_destroy(&clock);
	return names;
}

void stack_names_clear(struct stack_names *names)
{
	thread_stop(names);
	kernel_thread_end(names);
	symbols_cache_done(&names->symbols);
	index_clear(&names->at);
	names->count = 0;
}

void stack_names_forget(struct stack_names *names)
{
	pthread_mutex_lock(&names->lock);
	/* the name that is being looked for keeps its index */
	if (names->todo > names->done)
		names->todo = names->done + 1;
	pthread_mutex_unlock(&names->lock);
	names->round++;
	index_clear(&names->at);
	names->count = 0;
}

void stack_names_free(struct stack_names *names)
{
	if (!names)
		return;
	stack_names_clear(names);
	kernel_symbols_done(&names->kernel);
	pthread_cond_destroy(&names->more);
	pthread_cond_destroy(&names->less);
	pthread_mutex_destroy(&names->lock);
	free(names->frames);
	free(names->work);
	free(names);
}

static uint32_t frame_number(struct stack_names *names, const struct frame *frame, const char *name)
{
	const uint64_t words[] = {frame->module, frame->address};
	uint64_t key = hash_bytes(words, sizeof(words)), *number = index_find(&names->at, key);

	if (number)
		return (uint32_t)*number;
	if (names->count == FRAMES_MAX)
		return FRAME_REFUSED;
	names->frames = memory_grow(names->frames, &names->capacity, names->count + 1,
				    sizeof(*names->frames));
	*index_put(&names->at, key, NULL) = names->count;
	names->frames[names->count] = (struct named_frame){
		.frame = *frame, .name = name, .state = name ? NAME_KNOWN : NAME_NEW};
	return names->count++;
}

bool stack_names_full(const struct stack_names *names)
{
	return names->count == FRAMES_MAX;
}

uint32_t stack_names_frame(struct stack_names *names, const struct frame *frame)
{
	return frame_number(names, frame, frame_own_name(frame));
}

uint32_t stack_names_kernel(struct stack_names *names, const char *function)
{
	const char *name = name_transient_string(function);
	/* equal names have one address */
	struct frame frame = {MODULE_KERNEL, (uint64_t)(uintptr_t)name};

	return frame_number(names, &frame, name);
}

/* Takes the names that the thread has found. */
static void work_collect(struct stack_names *names)
{
	uint64_t done;

	pthread_mutex_lock(&names->lock);
	done = names->done;
	pthread_mutex_unlock(&names->lock);
	for (; names->taken < done; names->taken++) {
		struct name_work *work = &names->work[names->taken % QUEUE_MAX];
		struct named_frame *frame = &names->frames[work->frame];

		if (work->round != names->round)
			continue;
		frame->state = work->found ? NAME_KNOWN : NAME_NONE;
		frame->location = NULL; /* that of the function, not of the address in it */
		if (work->found)
			frame->name = name_transient_string(work->name);
	}
}

static void work_add(struct stack_names *names, uint32_t number)
{
	struct named_frame *frame = &names->frames[number];

	if (frame->frame.module == MODULE_NONE ||
	    names->modules->modules[frame->frame.module]->closed) {
		frame->state = NAME_NONE;
		return;
	}
	if (!names->threaded)
		thread_start(names);
	if (!names->threaded || names->todo - names->taken == QUEUE_MAX)
		return; /* the name is queued by a later call */
	pthread_mutex_lock(&names->lock);
	names->work[names->todo % QUEUE_MAX] =
		(struct name_work){.module = names->modules->modules[frame->frame.module],
				   .address = frame->frame.address,
				   .frame = number,
				   .round = names->round};
	names->todo++;
	pthread_cond_signal(&names->more);
	pthread_mutex_unlock(&names->lock);
	frame->state = NAME_QUEUED;
}

/* The address of a frame whose function has no name: the function's begin where the unwind table
 * has it, so that a function is one name. */
static uint64_t nameless_address(struct stack_names *names, const struct named_frame *frame,
				 struct module *module)
{
	const struct frame_row *row = NULL;

	if (frame->state == NAME_NONE && module && !module->closed && module->kind != FRAME_JIT)
		row = module_row(names->modules, module, frame->frame.address);
	return row ? row->begin : frame->frame.address;
}

static const char *frame_location(struct stack_names *names, struct named_frame *frame,
				  struct module *module)
{
	char text[256];

	if (!frame->location) {
		snprintf(text, sizeof(text), "%.200s+0x%llx", module ? module->name : "[?]",
			 (unsigned long long)nameless_address(names, frame, module));
		function_name_clean(text); /* any user may have chosen the file's name */
		frame->location = name_transient_string(text);
	}
	return frame->location;
}

struct frame_view stack_names_get(struct stack_names *names, uint32_t number)
{
	struct frame_view view = {.name = "[too many frames]", .final = true};
	struct module *module = NULL;
	struct named_frame *frame;

	if (number >= names->count)
		return view;
	frame = &names->frames[number];
	if (frame->frame.module == MODULE_KERNEL || frame_own_name(&frame->frame))
		return (struct frame_view){
			.name = frame->name,
			.kind = frame->frame.module == MODULE_KERNEL   ? FRAME_KERNEL
				: frame->frame.module == MODULE_PYTHON ? FRAME_PYTHON
								       : FRAME_PROGRAM,
			.libc = frame->frame.module == MODULE_MARK, /* passed like these */
			.final = true};
	if (frame->state == NAME_QUEUED || frame->state == NAME_NEW)
		work_collect(names);
	if (frame->state == NAME_NEW)
		work_add(names, number);
	if (frame->frame.module != MODULE_NONE)
		module = names->modules->modules[frame->frame.module];
	return (struct frame_view){
		.name = frame->state == NAME_KNOWN ? frame->name
						   : frame_location(names, frame, module),
		.module = module,
		.kind = module ? module->kind : FRAME_PROGRAM,
		.libc = module && module->libc,
		.final = frame->state == NAME_KNOWN || frame->state == NAME_NONE,
	};
}

bool stack_names_close(struct stack_names *names)
{
	bool idle;

	pthread_mutex_lock(&names->lock);
	idle = names->done == names->todo; /* no work is added while the lock is held */
	for (uint32_t i = 0; idle && i < names->modules->count; i++)
		if (names->modules->modules[i]->closing && names->symbols.parser)
			symbols_cache_close(&names->symbols, names->modules->modules[i]);
	pthread_mutex_unlock(&names->lock);
	return idle;
}

struct stack_names_counts stack_names_count(struct stack_names *names)
{
	struct stack_names_counts counts;

	pthread_mutex_lock(&names->lock);
	counts = names->counts;
	pthread_mutex_unlock(&names->lock);
	return counts;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ns / NS_PER_SECOND, ns % NS_PER_SECOND};
}

void stack_names_want_kernel(struct stack_names *names)
{
	if (!names->kernel_threaded)
		names->kernel_threaded = !thread_begin(&names->kernel_thread, kernel_thread, names);
}

const struct kernel_symbols *stack_names_kernel_symbols(struct stack_names *names, int64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);
	bool read;

	pthread_mutex_lock(&names->lock);
	while (names->kernel_threaded && !names->kernel_read &&
	       pthread_cond_timedwait(&names->less, &names->lock, &until) != ETIMEDOUT)
		;
	read = names->kernel_read;
	pthread_mutex_unlock(&names->lock);
	return read ? &names->kernel : NULL;
}

bool stack_names_wait(struct stack_names *names, int64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);
	bool all;

	pthread_mutex_lock(&names->lock);
	while (names->done != names->todo &&
	       pthread_cond_timedwait(&names->less, &names->lock, &until) != ETIMEDOUT)
		;
	all = names->done == names->todo;
	pthread_mutex_unlock(&names->lock);
	work_collect(names);
	return all;
}
