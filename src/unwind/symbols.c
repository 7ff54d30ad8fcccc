/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/symbols.h"
#include "base/clock.h"
#include "base/text.h"
#include "unwind/elf/perf_map.h"
#include "unwind/elf/process_file.h"
#include "unwind/name_clean.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEBUG_PATH "usr/lib/debug/.build-id/"
#define NAME_NS (30 * NS_PER_SECOND) /* limit of an answer: a large file, on a full host */
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

void symbols_cache_close(struct symbols_cache *cache, struct module *module)
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

	cache->refused_count += refused && !module->named.refused;
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
	struct parser_message message = {.head = &request, .head_bytes = sizeof(request)};
	int debug = opens && !jit ? debug_open(cache, module) : -1;
	static char bytes[PARSER_MESSAGE_MAX];
	ssize_t got;

	if (opens && !jit && module->image) {
		message.body = module->image;
		message.body_bytes = module->elf.bytes;
	} else if (opens) {
		message.fds[message.fd_count++] = jit ? map : module->fd;
		if (debug >= 0)
			message.fds[message.fd_count++] = debug;
	}
	got = parser_request(cache->parser, &message, bytes, NAME_NS);
	if (debug >= 0)
		close(debug);
	if (got != sizeof(*answer))
		return got < 0 ? (int)got : -EBADMSG;
	memcpy(answer, bytes, sizeof(*answer));
	module->named.generation = cache->parser->generation;
	return 0;
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
	cache->cut_count += answer->cut && !module->named.cut;
	module->named.cut = module->named.cut || answer->cut;
	cache->unloaded_count += answer->unloaded;
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
