/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/file_request.h"
#include "base/clock.h"
#include "base/memory.h"
#include "unwind/elf/elf_symbols.h"
#include "unwind/elf/go_program.h"
#include "unwind/elf/perf_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS_MAX 65536
#define ROW_NS (2 * NS_PER_SECOND) /* limit of an answer that a scan waits for */
#define GO_NS (10 * NS_PER_SECOND)
#define NAME_NS (30 * NS_PER_SECOND)  /* a large file, on a full host */
#define SYMBOLS_BYTES_MAX (20u << 20) /* bytes of tables of functions; one may be larger alone */

_Static_assert(sizeof(struct file_row_answer) <= PARSER_MESSAGE_MAX, "an answer is one message");
_Static_assert(sizeof(struct file_usdt_answer) <= PARSER_MESSAGE_MAX, "an answer is one message");

/* A file, of which rows or names are requested. */
struct known_file {
	uint32_t number;
	bool jit; /* the file is a perf map */
	struct elf_file elf;
	int fd, debug_fd; /* -1: none */
	char *image;
	struct frame_source *source;
	struct go_end *ends; /* functions of a program of Go where walks end */
	size_t end_count;
	struct go_table go; /* functions of a program of Go whose goroutines are read */
	bool has_go;
	const struct machine *machine;
	struct elf_symbols symbols;
	struct perf_map map;
	bool loaded; /* symbols are loaded */
	int64_t used;
	struct known_file *next;
};

/* Files that this parser knows. */
static struct {
	struct known_file *files[NUMBERS_MAX];
	struct known_file *first;
	int64_t uses;
	uint64_t unloaded;
} known;

static void names_unload(struct known_file *file)
{
	elf_symbols_done(&file->symbols);
	perf_map_done(&file->map);
	file->loaded = false;
}

static void known_drop(uint32_t number)
{
	struct known_file *file = known.files[number], **at = &known.first;

	if (!file)
		return;
	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	known.files[number] = NULL;
	names_unload(file);
	frame_source_close(file->source);
	free(file->ends);
	if (file->fd >= 0)
		close(file->fd);
	if (file->debug_fd >= 0)
		close(file->debug_fd);
	free(file->image);
	free(file);
}

/* Takes a descriptor that came with the request, or -1. */
static int fd_take(struct parser_request *request, unsigned int number)
{
	int fd = number < request->fd_count ? request->fds[number] : -1;

	if (fd >= 0)
		request->fds[number] = -1;
	return fd;
}

/* Reads the ELF file of the request's descriptor, which stays the request's, or of the bytes that
 * follow the request. */
static bool elf_read(struct elf_file *elf, const struct parser_request *request,
		     const struct file_request *of)
{
	const char *behind = (const char *)request->bytes + sizeof(*of);

	return request->fd_count ? !elf_file_read(elf, request->fds[0], NULL, of->bytes)
				 : of->bytes == request->count - sizeof(*of) &&
					   !elf_file_read(elf, -1, behind, of->bytes);
}

static void head_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_head_answer *answer = to;

	answer->is_elf = elf_read(&answer->elf, request, of);
	answer->elf.image = NULL;
}

static void exports_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct runtime_exports *answer = to;
	struct elf_file elf;

	if (elf_read(&elf, request, of))
		runtime_exports_read(&elf, answer);
}

/* Finds the symbols whose names follow the request, each with its NUL. */
static void symbols_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	const char *at = (const char *)request->bytes + sizeof(*of);
	const char *end = (const char *)request->bytes + request->count;
	struct file_symbols_answer *answer = to;
	const char *names[FILE_SYMBOLS_MAX];
	unsigned int count = 0;
	struct elf_file elf;

	for (; count < FILE_SYMBOLS_MAX && memchr(at, '\0', (size_t)(end - at));
	     at += strlen(at) + 1)
		names[count++] = at;
	if (!request->fd_count || !elf_read(&elf, request, of))
		return;
	elf_exports(&elf, names, answer->addresses, count);
	for (unsigned int i = 0; i < count; i++) {
		uint64_t offset, left, most = sizeof(answer->begins[i]);

		if (answer->addresses[i] &&
		    elf_offset_of(&elf, answer->addresses[i], &offset, &left))
			elf_file_take(&elf, offset, answer->begins[i], left < most ? left : most);
	}
}

static void begin_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_begin_answer *answer = to;
	ssize_t got = request->fd_count
			      ? pread(request->fds[0], answer->bytes, sizeof(answer->bytes), 0)
			      : 0;

	(void)of;
	answer->count = got > 0 ? (uint32_t)got : 0;
}

/* Returns the name that follows the request, or NULL. */
static const char *name_behind(const struct parser_request *request)
{
	const char *name = (const char *)request->bytes + sizeof(struct file_request);

	return memchr(name, '\0', request->count - sizeof(struct file_request)) ? name : NULL;
}

static void variable_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_variable_answer *answer = to;
	const char *name = name_behind(request);
	struct elf_file elf;

	if (!name || !request->fd_count || !elf_read(&elf, request, of))
		return;
	answer->is_elf = true;
	answer->is_mapped = elf_address_of(&elf, of->address, &answer->mapped);
	elf_variable_find(&elf, name, of->exact, &answer->variable);
}

static void nearest_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_nearest_answer *answer = to;
	const char *name = name_behind(request);
	struct elf_file elf;

	if (name && request->fd_count && elf_read(&elf, request, of))
		elf_variable_nearest(&elf, name, answer->name);
}

static void section_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_section_answer *answer = to;
	const char *name = name_behind(request);
	struct elf_section section;
	struct elf_file elf;

	if (!name || !request->fd_count || !elf_read(&elf, request, of))
		return;
	answer->is_mapped = elf_address_of(&elf, of->address, &answer->mapped);
	if (!elf_file_section(&elf, name, &section))
		answer->address = section.address;
}

static void function_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_function_answer *answer = to;
	const char *name = name_behind(request);
	struct elf_file elf;

	answer->is_elf = name && request->fd_count && elf_read(&elf, request, of);
	if (answer->is_elf)
		elf_function_find(&elf, name, &answer->function);
}

/* The name is "provider:name". */
static void usdt_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_usdt_answer *answer = to;
	const char *both = name_behind(request), *name = both ? strchr(both, ':') : NULL;
	char provider[PROBE_NAME_BYTES];
	struct elf_file elf;

	if (!name || (size_t)(name - both) >= sizeof(provider) || !request->fd_count)
		return;
	memcpy(provider, both, (size_t)(name - both));
	provider[name - both] = '\0';
	answer->is_elf = elf_read(&elf, request, of);
	if (answer->is_elf)
		elf_usdt_find(&elf, provider, name + 1, &answer->usdt);
}

static void returns_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_returns_answer *answer = to;
	struct elf_file elf;

	if (elf_read(&elf, request, of))
		answer->count =
			(uint32_t)x86_returns_find(&elf, of->address, of->exact, answer->returns);
}

static struct known_file *known_add(struct parser_request *request, const struct file_request *of)
{
	struct known_file *file = memory_get(sizeof(*file));
	size_t bytes = request->count - sizeof(*of);

	known_drop(of->number);
	*file = (struct known_file){
		.number = of->number, .jit = of->jit, .map = {.fd = -1}, .next = known.first};
	file->fd = of->jit ? -1 : fd_take(request, 0);
	file->debug_fd = of->jit ? -1 : fd_take(request, 1);
	if (file->fd < 0 && !of->jit) {
		file->image = memory_get(bytes);
		memcpy(file->image, (const char *)request->bytes + sizeof(*of), bytes);
	}
	if (!of->jit && (file->fd >= 0 || of->bytes == bytes) &&
	    !elf_file_read(&file->elf, file->fd, file->image, of->bytes))
		file->machine = machine_of_elf(file->elf.machine);
	known.first = known.files[of->number] = file;
	return file;
}

static void ends_read(struct known_file *file)
{
	struct go_end ends[GO_ENDS_MAX];
	struct go_table table;

	if (!file->machine || go_table_read(&table, &file->elf))
		return;
	file->end_count = go_table_ends(&table, &file->elf, ends);
	file->ends = memory_get(sizeof(ends));
	memcpy(file->ends, ends, file->end_count * sizeof(ends[0]));
}

static uint8_t end_find(const struct known_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->end_count; i++)
		if (address >= file->ends[i].from && address < file->ends[i].to)
			return file->ends[i].may_return ? STACK_ENDS_IF_LOST : STACK_ENDS;
	return STACK_GOES_ON;
}

static void row_fill(struct known_file *file, uint64_t address, struct file_row_answer *answer)
{
	static struct frame_operations operations;
	struct frame_row row = {.found = false};
	struct file_row *head = &answer->head;

	operations.count = 0;
	if (frame_source_row(file->source, file->machine, &operations, address, &row) || !row.found)
		return;
	head->found = true;
	head->signal = row.signal;
	head->begin = row.begin;
	head->cfa = row.cfa;
	head->ra = row.ra;
	memcpy(head->saved, row.saved, sizeof(head->saved));
	head->operation_count = (uint32_t)operations.count;
	memcpy(answer->operations, operations.all, operations.count * sizeof(operations.all[0]));
}

static size_t row_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_row_answer *answer = to;
	struct known_file *file = known.files[of->number];

	memset(&answer->head, 0, sizeof(answer->head));
	if (of->opens) {
		file = known_add(request, of);
		file->source = file->machine ? frame_source_open(&file->elf) : NULL;
		ends_read(file);
		/* source has a copy */
		if (file->fd >= 0)
			close(file->fd);
		file->fd = -1;
	}
	answer->head.without = !file || (!file->source && !file->end_count);
	if (file)
		answer->head.end = end_find(file, of->address);
	if (file && file->source) {
		row_fill(file, of->address, answer);
		answer->head.table_bytes = frame_source_bytes(file->source);
	}
	return sizeof(answer->head) + answer->head.operation_count * sizeof(answer->operations[0]);
}

static void names_load(struct known_file *file)
{
	file->loaded = true;
	if (!file->machine)
		return;
	elf_symbols_add(&file->symbols, &file->elf);
	if (!file->symbols.whole && file->debug_fd >= 0)
		elf_symbols_add_debug(&file->symbols, dup(file->debug_fd), &file->elf);
	elf_symbols_sort(&file->symbols);
}

static void names_trim(const struct known_file *newest)
{
	for (;;) {
		struct known_file *oldest = NULL;
		size_t bytes = 0;

		for (struct known_file *at = known.first; at; at = at->next) {
			bytes += elf_symbols_bytes(&at->symbols) +
				 at->map.table.capacity * sizeof(struct symbol);
			if (at->loaded && at != newest && (!oldest || at->used < oldest->used))
				oldest = at;
		}
		if (bytes <= SYMBOLS_BYTES_MAX || !oldest)
			return;
		names_unload(oldest);
		known.unloaded++;
	}
}

static bool name_find(const struct known_file *file, uint64_t address, char *name)
{
	char found[FUNCTION_NAME_SIZE];

	if (!(file->jit ? perf_map_name(&file->map, address, found, sizeof(found))
			: elf_symbol_name(&file->symbols, address, found, sizeof(found))))
		return false;
	if (name_demangle(found, name, FUNCTION_NAME_SIZE))
		return true;
	/* the name may be foo@@VERSION */
	if (!file->jit)
		found[strcspn(found, "@")] = '\0';
	memcpy(name, found, sizeof(found));
	return true;
}

static void name_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_name_answer *answer = to;
	struct known_file *file = known.files[of->number];

	if (of->opens && (!of->jit || !file || !file->jit))
		file = known_add(request, of);
	if (!file)
		return;
	if (of->opens && of->jit && request->fd_count)
		perf_map_take(&file->map, fd_take(request, 0));
	if (!file->loaded && !file->jit)
		names_load(file);
	file->loaded = true;
	file->used = ++known.uses;
	names_trim(file);
	answer->found = name_find(file, of->address, answer->name);
	answer->cut = file->map.cut || file->map.table.refused || file->symbols.table.refused;
	answer->unloaded = known.unloaded;
	known.unloaded = 0;
}

static void go_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	struct file_go_answer *answer = to;
	struct known_file *file = known_add(request, of);

	answer->is_go = file->machine && !go_program_read(&answer->program, &file->elf);
	file->has_go = answer->is_go && !go_table_read(&file->go, &file->elf);
	answer->has_functions = file->has_go;
}

void file_go_frame(uint32_t number, uint64_t address, struct file_go_frame_answer *answer)
{
	const struct known_file *file = number < NUMBERS_MAX ? known.files[number] : NULL;
	struct go_function function;

	memset(answer, 0, sizeof(*answer));
	if (!file || !file->has_go || !go_table_find(&file->go, &file->elf, address, &function))
		return;
	answer->depth = go_table_depth(&file->go, &file->elf, &function, address);
	answer->found = go_table_name(&file->go, &file->elf, function.record, answer->name,
				      sizeof(answer->name));
}

static void go_frame_answer(struct parser_request *request, const struct file_request *of, void *to)
{
	(void)request;
	file_go_frame(of->number, of->address, to);
}

/* Requests whose answers are as long for all files. */
static const struct {
	size_t bytes;
	int64_t most_ns; /* limit of the answer's time */
	void (*answer)(struct parser_request *request, const struct file_request *of, void *to);
} kinds[] = {
	[FILE_NAME] = {sizeof(struct file_name_answer), NAME_NS, name_answer},
	[FILE_GO] = {sizeof(struct file_go_answer), GO_NS, go_answer},
	[FILE_GO_FRAME] = {sizeof(struct file_go_frame_answer), GO_NS, go_frame_answer},
	[FILE_HEAD] = {sizeof(struct file_head_answer), ROW_NS, head_answer},
	[FILE_EXPORTS] = {sizeof(struct runtime_exports), ROW_NS, exports_answer},
	[FILE_RETURNS] = {sizeof(struct file_returns_answer), ROW_NS, returns_answer},
	[FILE_SYMBOLS] = {sizeof(struct file_symbols_answer), ROW_NS, symbols_answer},
	[FILE_BEGIN] = {sizeof(struct file_begin_answer), ROW_NS, begin_answer},
	[FILE_VARIABLE] = {sizeof(struct file_variable_answer), ROW_NS, variable_answer},
	[FILE_NEAREST] = {sizeof(struct file_nearest_answer), GO_NS, nearest_answer},
	[FILE_FUNCTION] = {sizeof(struct file_function_answer), GO_NS, function_answer},
	[FILE_USDT] = {sizeof(struct file_usdt_answer), GO_NS, usdt_answer},
	[FILE_SECTION] = {sizeof(struct file_section_answer), ROW_NS, section_answer},
};

size_t file_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct file_request of;

	if (request->count < sizeof(of))
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	if (of.number >= NUMBERS_MAX)
		return 0;
	if (of.kind == FILE_ROW)
		return row_answer(request, &of, answer);
	if (of.kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[of.kind].bytes) {
		memset(answer, 0, kinds[of.kind].bytes);
		kinds[of.kind].answer(request, &of, answer);
		return kinds[of.kind].bytes;
	}
	if (of.kind == FILE_DROP)
		known_drop(of.number);
	while (of.kind == FILE_FORGET && known.first)
		known_drop(known.first->number);
	return 0;
}

/* --- requests */

/* Sends a request, with the descriptor of a file, or its image, which follows the request. elf:
 * NULL: the parser knows the file. Returns the answer's bytes or -errno. */
static ssize_t request_make(struct parser *parser, struct file_request *request,
			    const struct elf_file *elf, void *answer, size_t size, int64_t most_ns)
{
	struct parser_message message = {.head = request, .head_bytes = sizeof(*request)};

	if (elf) {
		request->bytes = elf->bytes;
		message.fds[0] = elf->fd;
		message.fd_count = elf->fd >= 0;
		message.body = elf->fd >= 0 ? NULL : elf->image;
		message.body_bytes = elf->fd >= 0 ? 0 : elf->bytes;
	}
	return parser_request(parser, &message, answer, size, most_ns);
}

static int kind_request(struct parser *parser, struct file_request request,
			const struct elf_file *elf, void *answer)
{
	const size_t bytes = kinds[request.kind].bytes;
	ssize_t got = elf ? parser_ready(parser) : 0;

	if (!got)
		got = request_make(parser, &request, elf, answer, bytes,
				   kinds[request.kind].most_ns);
	return parser_answer_check(got, bytes);
}

int file_row_request(struct parser *parser, uint32_t number, const struct elf_file *elf, bool opens,
		     uint64_t address, struct file_row_answer *answer)
{
	struct file_request request = {
		.kind = FILE_ROW, .number = number, .address = address, .opens = opens};
	const size_t head = sizeof(answer->head);
	ssize_t got = parser_ready(parser);

	if (!got)
		got = request_make(parser, &request, opens ? elf : NULL, answer, sizeof(*answer),
				   ROW_NS);
	if (got < 0)
		return (int)got;
	return (size_t)got < head || answer->head.operation_count !=
					     ((size_t)got - head) / sizeof(answer->operations[0])
		       ? -EBADMSG
		       : 0;
}

int file_head_request(struct parser *parser, struct elf_file *elf)
{
	static struct file_head_answer answer;
	const struct elf_file requested = *elf;
	int err = kind_request(parser, (struct file_request){.kind = FILE_HEAD}, elf, &answer);

	if (err)
		return err;
	if (!answer.is_elf || answer.elf.segment_count > ELF_SEGMENTS_MAX ||
	    answer.elf.build_id_bytes > BUILD_ID_MAX)
		return -ENOEXEC;
	*elf = answer.elf;
	elf->fd = requested.fd;
	elf->image = requested.image;
	elf->bytes = requested.bytes;
	return 0;
}

int file_exports_request(struct parser *parser, const struct elf_file *elf,
			 struct runtime_exports *exports)
{
	return kind_request(parser, (struct file_request){.kind = FILE_EXPORTS}, elf, exports);
}

int file_symbols_request(struct parser *parser, const struct elf_file *elf,
			 const char *const *names, unsigned int count,
			 struct file_symbols_answer *answer)
{
	const struct file_request request = {.kind = FILE_SYMBOLS, .bytes = elf->bytes};
	struct parser_message message = {
		.head = &request, .head_bytes = sizeof(request), .fds = {elf->fd}, .fd_count = 1};
	char words[FILE_SYMBOLS_MAX * 64];
	ssize_t got = count > FILE_SYMBOLS_MAX ? -E2BIG : parser_ready(parser);

	message.body = words;
	for (unsigned int i = 0; !got && i < count; i++) {
		size_t bytes = strlen(names[i]) + 1;

		if (bytes > sizeof(words) - message.body_bytes)
			return -E2BIG;
		memcpy(words + message.body_bytes, names[i], bytes);
		message.body_bytes += bytes;
	}
	if (!got)
		got = parser_request(parser, &message, answer, sizeof(*answer), ROW_NS);
	return parser_answer_check(got, sizeof(*answer));
}

int file_begin_request(struct parser *parser, int fd, void *to, size_t bytes)
{
	const struct elf_file file = {.fd = fd};
	struct file_begin_answer answer = {0};
	int err = kind_request(parser, (struct file_request){.kind = FILE_BEGIN}, &file, &answer);

	if (err)
		return err;
	if (bytes > answer.count || bytes > sizeof(answer.bytes))
		return -ERANGE;
	memcpy(to, answer.bytes, bytes);
	return 0;
}

/* Makes a request that a name follows. */
static int named_request(struct parser *parser, struct file_request request,
			 const struct elf_file *elf, const char *name, void *answer)
{
	const size_t bytes = kinds[request.kind].bytes;
	const struct parser_message message = {.head = &request,
					       .head_bytes = sizeof(request),
					       .body = name,
					       .body_bytes = strlen(name) + 1,
					       .fds = {elf->fd},
					       .fd_count = 1};
	ssize_t got = parser_ready(parser);

	request.bytes = elf->bytes;
	if (!got)
		got = parser_request(parser, &message, answer, bytes, kinds[request.kind].most_ns);
	return parser_answer_check(got, bytes);
}

int file_variable_request(struct parser *parser, const struct elf_file *elf, const char *name,
			  bool exported, uint64_t offset, struct file_variable_answer *answer)
{
	return named_request(
		parser,
		(struct file_request){.kind = FILE_VARIABLE, .exact = exported, .address = offset},
		elf, name, answer);
}

int file_section_request(struct parser *parser, const struct elf_file *elf, const char *name,
			 uint64_t offset, struct file_section_answer *answer)
{
	return named_request(parser, (struct file_request){.kind = FILE_SECTION, .address = offset},
			     elf, name, answer);
}

int file_function_request(struct parser *parser, const struct elf_file *elf, const char *name,
			  struct elf_function *function)
{
	struct file_function_answer answer = {0};
	int err = named_request(parser, (struct file_request){.kind = FILE_FUNCTION}, elf, name,
				&answer);

	if (err || !answer.is_elf)
		return err ? err : -ENOEXEC;
	*function = answer.function;
	function->nearest[sizeof(function->nearest) - 1] = '\0';
	return 0;
}

int file_usdt_request(struct parser *parser, const struct elf_file *elf, const char *provider,
		      const char *name, struct elf_usdt *usdt)
{
	static struct file_usdt_answer answer;
	char both[2 * PROBE_NAME_BYTES];
	int err = snprintf(both, sizeof(both), "%s:%s", provider, name) >= (int)sizeof(both)
			  ? -E2BIG
			  : named_request(parser, (struct file_request){.kind = FILE_USDT}, elf,
					  both, &answer);

	if (err || !answer.is_elf)
		return err ? err : -ENOEXEC;
	*usdt = answer.usdt;
	if (usdt->site_count > USDT_SITES_MAX)
		return -EBADMSG;
	usdt->provider[sizeof(usdt->provider) - 1] = usdt->other[sizeof(usdt->other) - 1] = '\0';
	usdt->arguments[sizeof(usdt->arguments) - 1] = '\0';
	usdt->nearest[sizeof(usdt->nearest) - 1] = '\0';
	return 0;
}

int file_nearest_request(struct parser *parser, const struct elf_file *elf, const char *name,
			 struct file_nearest_answer *answer)
{
	int err = named_request(parser, (struct file_request){.kind = FILE_NEAREST}, elf, name,
				answer);

	answer->name[VARIABLE_NAME_BYTES - 1] = '\0';
	return err;
}

int file_returns_request(struct parser *parser, const struct elf_file *elf, uint64_t address,
			 bool exact, struct file_returns_answer *answer)
{
	const struct file_request request = {
		.kind = FILE_RETURNS, .address = address, .exact = exact};
	int err = kind_request(parser, request, elf, answer);

	return !err && answer->count > X86_RETURNS_MAX ? -EBADMSG : err;
}

int file_go_request(struct parser *parser, uint32_t number, const struct elf_file *elf,
		    struct file_go_answer *answer)
{
	const struct file_request request = {.kind = FILE_GO, .number = number, .opens = true};
	int err = kind_request(parser, request, elf, answer);

	answer->program.version[GO_VERSION_SIZE - 1] = '\0';
	return err;
}

int file_go_frame_request(struct parser *parser, uint32_t number, uint64_t address,
			  struct file_go_frame_answer *answer)
{
	const struct file_request request = {
		.kind = FILE_GO_FRAME, .number = number, .address = address};
	int err = kind_request(parser, request, NULL, answer);

	answer->name[FUNCTION_NAME_SIZE - 1] = '\0';
	return err;
}

int file_name_request(struct parser *parser, const struct file_request *request,
		      struct parser_message *message, struct file_name_answer *answer)
{
	ssize_t got;

	message->head = request;
	message->head_bytes = sizeof(*request);
	got = parser_request(parser, message, answer, sizeof(*answer), NAME_NS);
	return parser_answer_check(got, sizeof(*answer));
}

static void file_send(struct parser *parser, enum file_request_kind kind, uint32_t number)
{
	const struct file_request request = {.kind = kind, .number = number};

	parser_send(parser,
		    &(struct parser_message){.head = &request, .head_bytes = sizeof(request)});
}

void file_drop(struct parser *parser, uint32_t number)
{
	file_send(parser, FILE_DROP, number);
}

void file_forget(struct parser *parser)
{
	if (parser)
		file_send(parser, FILE_FORGET, 0);
}
