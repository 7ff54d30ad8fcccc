/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_request.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGERS_SHARE 50	     /* divisor of the time for processes that don't answer */
#define FILES_MAX 4		     /* files with such names that are read, of one process */
#define LOOK_SHARE 1000		     /* divisor of the time for looking in one process */
#define LOOK_SCAN_NS (2 * NS_PER_MS) /* time in one scan, for all processes; others come later */
#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (120 * NS_PER_SECOND)
#define OTHER_OLD_NS \
	(60 * NS_PER_SECOND) /* before a process without a runtime is looked at again */

/* Adds the descriptors of a process' memory to a message. Returns 0 or -errno. */
static int memory_open(const struct runtime_reader *reader, const struct runtime_request *request,
		       struct parser_message *message)
{
	int fd = process_open(reader->proc_root, request->tid, "mem");

	if (fd < 0)
		return fd;
	message->fds[message->fd_count++] = fd;
	if (request->kind != RUNTIME_GILS && request->kind != RUNTIME_GIL &&
	    request->kind != RUNTIME_JAVA_MONITOR)
		return 0;
	fd = process_open(reader->proc_root, request->tid, "pagemap");
	if (fd >= 0)
		message->fds[message->fd_count++] = fd;
	return fd < 0 ? fd : 0;
}

static ssize_t here_request(const struct runtime_reader *reader,
			    const struct parser_message *message, void *answer, size_t size)
{
	static char bytes[PARSER_MESSAGE_MAX];
	static _Alignas(8) char got[PARSER_MESSAGE_MAX];
	struct parser_request request = {.bytes = bytes,
					 .count = message->head_bytes + message->body_bytes,
					 .fds = {message->fds[0], message->fds[1]},
					 .fd_count = message->fd_count};
	size_t count;

	memcpy(bytes, message->head, message->head_bytes);
	if (message->body_bytes)
		memcpy(bytes + message->head_bytes, message->body, message->body_bytes);
	count = reader->service(&request, got);
	memcpy(answer, got, count < size ? count : size);
	return (ssize_t)count;
}

/* True if a request about the process may be made now. */
static bool may_request(const struct runtime_reader *reader,
			const struct runtime_standing *standing,
			const struct runtime_request *request)
{
	return !standing->ended &&
	       (standing->answered || request->now_ns >= reader->strangers_ns) &&
	       !avoids_process(request->tid);
}

ssize_t runtime_request(struct runtime_reader *reader, struct runtime_standing *standing,
			const struct runtime_request *request, const uint64_t *addresses,
			void *answer, size_t size)
{
	struct parser_message message = {.head = request,
					 .head_bytes = sizeof(*request),
					 .body = addresses,
					 .body_bytes = request->count * sizeof(*addresses)};
	ssize_t got = -ECHILD;

	if (!may_request(reader, standing, request))
		return -ETIMEDOUT;
	if (reader->parser)
		got = parser_ready(reader->parser);
	else if (reader->service)
		got = 0;
	if (!got)
		got = memory_open(reader, request, &message);
	if (!got)
		got = reader->parser
			      ? parser_request(reader->parser, &message, answer, size, RUNTIME_NS)
			      : here_request(reader, &message, answer, size);
	while (message.fd_count)
		close(message.fds[--message.fd_count]);
	if (got == -EPIPE) {
		standing->ended = true;
		reader->strangers_ns = request->now_ns + STRANGERS_SHARE * RUNTIME_NS;
	}
	standing->answered = standing->answered || got >= 0;
	return got;
}

static bool has_name(const struct mapping *mapping, const struct runtime_kind *kind)
{
	const char *name = mapping->path ? strrchr(mapping->path, '/') : NULL;

	if (!name || !mapping->inode)
		return false;
	for (const char *const *begin = kind->names; *begin; begin++)
		if (!strncmp(name, *begin, strlen(*begin)))
			return true;
	return false;
}

static bool mapping_take(struct runtime_finder *finder, struct runtime_process *process,
			 const struct mapping *mapping, int fd)
{
	struct elf_file elf = {.fd = fd};
	struct stat file;
	uint64_t address;

	if (fstat(fd, &file))
		return false;
	elf.bytes = (uint64_t)file.st_size;
	if (file_head_request(finder->reader.parser, &elf) ||
	    file_exports_request(finder->reader.parser, &elf, &process->exports) ||
	    !elf_address_of(&elf, mapping->offset, &address))
		return false;
	process->distance = mapping->start - address;
	return finder->kind->is(&process->exports);
}

/* Has a parser read the process' files with such names, until one is such a runtime. */
static bool runtime_find(struct runtime_finder *finder, struct runtime_process *process,
			 const struct stack_thread *thread)
{
	unsigned int files = 0;
	struct process_maps *maps;
	struct cache processes;
	bool found = false;
	int err;

	if (!finder->reader.parser)
		return false;
	process_maps_cache_init(&processes);
	maps = process_maps_get(&processes, finder->reader.proc_root, thread, &err);
	for (size_t i = 0; maps && i < maps->count && !found && files < FILES_MAX; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		int fd = has_name(mapping, finder->kind)
				 ? mapping_open(mapping, finder->reader.proc_root, thread->tid)
				 : -1;

		files += fd >= 0;
		found = fd >= 0 && mapping_take(finder, process, mapping, fd);
		if (fd >= 0)
			close(fd);
	}
	cache_done(&processes);
	return found;
}

void runtime_finder_init(struct runtime_finder *finder, const struct runtime_kind *kind,
			 const char *proc_root, struct parser *parser)
{
	*finder = (struct runtime_finder){
		.kind = kind,
		.reader = {.proc_root = proc_root, .parser = parser},
		.processes = {.entry_bytes = kind->process_bytes,
			      .entries_max = PROCESSES_MAX,
			      .drop = kind->drop},
	};
}

void runtime_finder_done(struct runtime_finder *finder)
{
	cache_done(&finder->processes);
}

void runtime_finder_sweep(struct runtime_finder *finder, int64_t now_ns)
{
	cache_sweep(&finder->processes, now_ns, PROCESS_IDLE_NS);
}

struct runtime_process *runtime_process_get(struct runtime_finder *finder,
					    const struct stack_thread *thread)
{
	int64_t now_ns = thread->now_ns, start_ns, took_ns;
	bool added;
	struct runtime_process *process =
		cache_get(&finder->processes, (uint64_t)thread->pid, now_ns, &added);

	if (finder->scan_ns != now_ns)
		finder->spent_ns = 0;
	finder->scan_ns = now_ns;
	if (now_ns < process->next_look_ns || finder->spent_ns >= LOOK_SCAN_NS)
		return process;
	start_ns = clock_monotonic_ns();
	process->known = runtime_find(finder, process, thread) &&
			 finder->kind->take(finder, process, thread);
	took_ns = clock_monotonic_ns() - start_ns;
	finder->spent_ns += took_ns;
	process->next_look_ns = now_ns + took_ns * LOOK_SHARE +
				(process->known ? finder->kind->old_ns : OTHER_OLD_NS);
	return process;
}

bool runtime_process_due(struct runtime_finder *finder, const struct stack_thread *thread)
{
	const struct runtime_process *process =
		cache_find(&finder->processes, (uint64_t)thread->pid);

	return !process || thread->now_ns >= process->next_look_ns;
}

int runtime_process_request(struct runtime_finder *finder, struct runtime_process *process,
			    const struct stack_thread *thread, struct runtime_request *request,
			    void *answer, size_t bytes)
{
	ssize_t got;

	request->pid = thread->pid;
	request->tid = thread->tid;
	request->now_ns = thread->now_ns;
	request->distance = process->distance;
	request->exports = process->exports;
	got = runtime_request(&finder->reader, &process->standing, request, NULL, answer, bytes);
	return got < 0 ? (int)got : (size_t)got == bytes ? 0 : -EBADMSG;
}
