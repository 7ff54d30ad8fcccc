/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/goroutines.h"
#include "base/clock.h"
#include "base/memory.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"
#include "unwind/go_labels.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/runtime/runtime_service.h"
#include "unwind/thread_memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTED_MAX (1u << 20)
#define LIST_PIECE 512
#define READ_NS (5 * NS_PER_SECOND)
#define TRIES 3
#define LOCATIONS_MAX 65536
#define STACK_BYTES_MAX (1ull << 30) /* runtime.maxstacksize on 64 bits */
#define PROOF_MAX 256		     /* limit of the goroutines that a layout is tried on */

/* struct g: the first members have been the same since Go 1.13, and so has the order of members
 * from the state on; a word may lie between (sched.ret went, syscallbp came). */
#define G_STACK_LOW 0
#define G_STACK_HIGH 8
#define G_SP 56
#define G_PC 64
#define G_SELF 72
#define G_BYTES 192
#define STATE_NUMBER 8	/* goid, as an offset from the state */
#define STATE_SINCE 24	/* waitsince, from the state */
#define STATE_REASON 32 /* waitreason, from the state */

static const uint32_t state_locations[] = {144, 152};

#define STATE_LOCATIONS (sizeof(state_locations) / sizeof(state_locations[0]))

/* States of the runtime's struct g; STATE_SCANNED: the collector looks at its stack. */
#define STATE_SCANNED 0x1000
enum {
	GO_IDLE,
	GO_RUNNABLE,
	GO_RUNNING,
	GO_SYSCALL,
	GO_WAITING,
	GO_DEAD = 6,
	GO_COPIED = 8,
	GO_PREEMPTED,
	GO_LEAKED,     /* waits, and nobody can wake it; newer than Go 1.24 */
	GO_DEAD_EXTRA, /* dead until C code calls Go; newer than 1.24 */
};

static const char *const state_names[] = {
	[GO_IDLE] = "idle",	  [GO_RUNNABLE] = "runnable",	[GO_RUNNING] = "running",
	[GO_SYSCALL] = "syscall", [GO_WAITING] = "waiting",	[GO_DEAD] = "dead",
	[GO_COPIED] = "copied",	  [GO_PREEMPTED] = "preempted", [GO_LEAKED] = "leaked",
};

#define STATE_NAMES (sizeof(state_names) / sizeof(state_names[0]))

/* The members of a struct g that are used. */
struct routine {
	uint64_t low, high, sp, pc, self, number, since;
	uint32_t state;
	uint8_t reason;
};

struct reader {
	struct goroutines *to;
	const struct goroutine_source *source;
	uint32_t state_at;
	int64_t until_ns;
	const char **why;
};

static int refuse(const struct reader *reader, int err, const char *why)
{
	*reader->why = why;
	return -err;
}

const char *goroutine_state_name(uint32_t state)
{
	return state < STATE_NAMES && state_names[state] ? state_names[state] : "unknown";
}

bool goroutine_waits(uint32_t state)
{
	return state == GO_WAITING || state == GO_LEAKED;
}

void goroutines_done(struct goroutines *goroutines)
{
	for (size_t i = 0; i < goroutines->group_count; i++) {
		free(goroutines->groups[i].frames);
		free(goroutines->groups[i].labels);
	}
	for (size_t i = 0; i < goroutines->locations.count; i++)
		free(((struct goroutine_location *)goroutines->locations.rows)[i].name);
	free(goroutines->groups);
	index_clear(&goroutines->group_of);
	keyed_done(&goroutines->locations);
	memset(goroutines, 0, sizeof(*goroutines));
}

static const struct goroutine_location *location_known(const struct goroutines *goroutines,
						       uint64_t address)
{
	return keyed_find(&goroutines->locations, sizeof(struct goroutine_location), address);
}

const char *goroutine_function(const struct goroutines *goroutines, uint64_t address)
{
	const struct goroutine_location *location = location_known(goroutines, address);

	return location ? location->name : NULL;
}

/* Adds the function at an address of the program that is not known yet. */
static const struct goroutine_location *location_add(struct goroutines *goroutines,
						     uint64_t address,
						     const struct file_go_frame_answer *answer)
{
	struct goroutine_location *location =
		keyed_put(&goroutines->locations, sizeof(*location), address, NULL);
	bool found = answer->found;

	*location = (struct goroutine_location){
		.depth = found ? answer->depth : -1,
		.function = hash_bytes(answer->name, strlen(answer->name)),
		.name = found ? memory_text(answer->name, strlen(answer->name)) : NULL};
	return location;
}

/* Returns the function at an address, which is requested once. NULL: the request failed, or too
 * many are known. */
static const struct goroutine_location *location_get(struct reader *reader, uint64_t address)
{
	struct goroutines *to = reader->to;
	const struct goroutine_location *known = location_known(to, address);
	struct file_go_frame_answer answer = {.found = false};

	if (known || to->locations.count == LOCATIONS_MAX ||
	    reader->source->request(reader->source->of, address, &answer))
		return known;
	return location_add(to, address, &answer);
}

/* Reads memory as it is now, not as it was read before. */
static bool memory_read(struct reader *reader, uint64_t address, void *bytes, size_t count)
{
	struct thread_memory *memory = reader->source->memory;

	return !thread_memory_begin(memory, reader->source->tid, address) &&
	       !thread_memory_read(memory, address, bytes, count);
}

static uint64_t word_at(const char *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static bool routine_read(struct reader *reader, uint64_t address, uint32_t state_at,
			 struct routine *routine)
{
	char bytes[G_BYTES];

	if (!address || address % sizeof(uint64_t) ||
	    !memory_read(reader, address, bytes, sizeof(bytes)))
		return false;
	*routine = (struct routine){
		.low = word_at(bytes, G_STACK_LOW),
		.high = word_at(bytes, G_STACK_HIGH),
		.sp = word_at(bytes, G_SP),
		.pc = word_at(bytes, G_PC),
		.self = word_at(bytes, G_SELF),
		.number = word_at(bytes, state_at + STATE_NUMBER),
		.since = word_at(bytes, state_at + STATE_SINCE),
		.state = (uint32_t)word_at(bytes, state_at) & ~(uint32_t)STATE_SCANNED,
		.reason = (uint8_t)bytes[state_at + STATE_REASON],
	};
	return true;
}

static bool routine_dead(const struct routine *routine)
{
	return routine->state == GO_DEAD || routine->state == GO_DEAD_EXTRA;
}

static bool routine_lives(const struct routine *routine)
{
	return routine->state != GO_IDLE && !routine_dead(routine);
}

/* True if the members of a live goroutine are what they must be. */
static bool routine_fits(const struct routine *routine, uint64_t address)
{
	return routine->state < STATE_NAMES && state_names[routine->state] &&
	       routine->self == address && routine->number && routine->number < INT64_MAX &&
	       routine->low < routine->high && routine->high - routine->low <= STACK_BYTES_MAX &&
	       (routine->state == GO_RUNNING || routine->state == GO_COPIED ||
		(routine->sp >= routine->low && routine->sp < routine->high));
}

static bool routine_same(const struct routine *one, const struct routine *other)
{
	return one->low == other->low && one->sp == other->sp && one->pc == other->pc &&
	       one->number == other->number && one->state == other->state &&
	       one->reason == other->reason && one->since == other->since;
}

/* Follows the stack of a goroutine that does not run. Frames are addresses in the file. */
static uint32_t stack_walk(struct reader *reader, const struct routine *routine,
			   uint64_t frames[GOROUTINE_FRAMES_MAX], bool *cut)
{
	uint64_t sp = routine->sp, pc = routine->pc;
	uint32_t count = 0;

	*cut = true;
	if (thread_memory_begin(reader->source->memory, reader->source->tid, sp))
		return 0;
	while (count < GOROUTINE_FRAMES_MAX) {
		const struct goroutine_location *location =
			location_get(reader, pc - reader->source->distance);
		uint64_t next, at;

		if (!location || !location->name)
			return count;
		if (!strcmp(location->name, "runtime.goexit")) {
			*cut = false;
			return count;
		}
		frames[count++] = pc - reader->source->distance;
		if (location->depth < 0)
			return count;
#if defined(__aarch64__)
		/* the return address is the innermost word of a frame */
		at = sp;
		next = sp + (uint64_t)location->depth;
#elif defined(__x86_64__)
		at = sp + (uint64_t)location->depth;
		next = at + sizeof(pc);
#else
#error "unknown CPU: where a Go frame has its return address"
#endif
		if (next <= sp || next > routine->high || at > routine->high - sizeof(pc) ||
		    thread_memory_read(reader->source->memory, at, &pc, sizeof(pc)))
			return count;
		sp = next;
	}
	return count;
}

/* True if the runtime began the goroutine: its first function says so, as in
 * runtime.isSystemGoroutine(). */
static bool begun_by_runtime(const struct goroutines *to, const uint64_t *frames, uint32_t count,
			     bool cut)
{
	const char *name = count && !cut ? goroutine_function(to, frames[count - 1]) : NULL;

	return name && !strncmp(name, "runtime.", strlen("runtime.")) &&
	       strcmp(name, "runtime.main") != 0;
}

/* Finds or adds a group. NULL: there are too many. */
static struct goroutine_group *group_get(struct goroutines *to, uint64_t key, bool *added)
{
	uint64_t *position = index_find(&to->group_of, key);

	*added = !position;
	if (position)
		return &to->groups[*position];
	if (to->group_count == GOROUTINE_GROUPS_MAX)
		return NULL;
	to->groups = memory_grow(to->groups, &to->group_capacity, to->group_count + 1,
				 sizeof(*to->groups));
	*index_put(&to->group_of, key, NULL) = to->group_count;
	return &to->groups[to->group_count++];
}

/* Returns a hash that is equal for stacks of the same functions. */
static uint64_t stack_hash(const struct goroutines *to, const uint64_t *frames, uint32_t count)
{
	uint64_t functions[GOROUTINE_FRAMES_MAX];

	for (uint32_t i = 0; i < count; i++)
		functions[i] = location_known(to, frames[i])->function;
	return hash_bytes(functions, count * sizeof(*functions));
}

static bool label_read(void *of, uint64_t address, void *to, size_t bytes)
{
	return memory_read(of, address, to, bytes);
}

/* Reads the labels of a goroutine that does not run, cut to their size; "": it has none. */
static const char *labels_read(struct reader *reader, uint64_t address)
{
	static struct text text;
	const struct go_program *program = reader->source->program;
	const struct go_labels_source source = {
		.listed = program->labels_listed, .read = label_read, .of = reader};

	text_clear(&text);
	if (reader->source->labels && program->labels_at &&
	    memory_read(reader, address + program->labels_at, &address, sizeof(address)) && address)
		go_labels_add(&source, address, &text);
	if (text.length >= GOROUTINE_LABELS_SIZE) {
		size_t length = GOROUTINE_LABELS_SIZE - 1;

		while (length && ((unsigned char)text.bytes[length] & 0xc0) == 0x80)
			length--;
		text.bytes[length] = '\0';
	}
	return text_string(&text);
}

static void routine_count(struct reader *reader, const struct routine *routine,
			  const uint64_t *frames, uint32_t count, bool cut, const char *labels)
{
	struct goroutines *to = reader->to;
	struct {
		uint64_t stack, state, reason, cut, labels;
	} what = {stack_hash(to, frames, count), routine->state,
		  goroutine_waits(routine->state) ? routine->reason : 0, cut,
		  hash_bytes(labels, strlen(labels))};
	int64_t now_ns = clock_monotonic_ns(), since_ns = (int64_t)routine->since;
	struct goroutine_group *group;
	bool added;

	group = group_get(to, hash_bytes(&what, sizeof(what)), &added);
	if (!group) {
		to->counts.left++;
		return;
	}
	if (added) {
		*group = (struct goroutine_group){
			.waited_ns = -1,
			.state = routine->state,
			.reason = (uint8_t)what.reason,
			.system = begun_by_runtime(to, frames, count, cut),
			.cut = cut,
			.frame_count = count,
			.frames = memory_get((count + 1) * sizeof(*frames)),
			.labels = *labels ? memory_text(labels, strlen(labels)) : NULL};
		memcpy(group->frames, frames, count * sizeof(*frames));
	}
	group->count++;
	if (since_ns > 0 && now_ns - since_ns > group->waited_ns)
		group->waited_ns = now_ns - since_ns;
	*(group->system ? &to->counts.system : &to->counts.program) += 1;
}

enum taken {
	TAKEN,
	TAKEN_NOT, /* the goroutine changed meanwhile */
	TAKEN_UNREAD,
};

static enum taken routine_try(struct reader *reader, uint64_t address)
{
	uint64_t frames[GOROUTINE_FRAMES_MAX];
	struct routine before, after;
	const char *labels = "";
	uint32_t count = 0;
	bool cut = false;

	if (!routine_read(reader, address, reader->state_at, &before))
		return TAKEN_UNREAD;
	if (!routine_lives(&before))
		return TAKEN;
	if (!routine_fits(&before, address))
		return TAKEN_UNREAD;
	if (before.state == GO_COPIED)
		return TAKEN_NOT;
	if (before.state != GO_RUNNING) {
		count = stack_walk(reader, &before, frames, &cut);
		labels = labels_read(reader, address);
	}
	if (!routine_read(reader, address, reader->state_at, &after))
		return TAKEN_UNREAD;
	if (before.state == GO_RUNNING ? after.state != GO_RUNNING : !routine_same(&before, &after))
		return TAKEN_NOT;
	routine_count(reader, &before, frames, count, cut, labels);
	return TAKEN;
}

static void routine_take(struct reader *reader, uint64_t address)
{
	enum taken taken = TAKEN_NOT;

	for (int i = 0; i < TRIES && taken != TAKEN; i++)
		taken = routine_try(reader, address);
	reader->to->counts.moved += taken == TAKEN_NOT;
	reader->to->counts.unread += taken == TAKEN_UNREAD;
}

/* True if the goroutines of a piece of the list have their state at that offset. */
static bool layout_fits(struct reader *reader, const uint64_t *list, size_t count,
			uint32_t state_at)
{
	struct index numbers = {.used = 0};
	struct routine routine;
	size_t fits = 0, others = 0;
	bool added;

	for (size_t i = 0; i < count && i < PROOF_MAX; i++) {
		if (!routine_read(reader, list[i], state_at, &routine))
			continue;
		if (routine_dead(&routine))
			continue;
		added = false;
		if (routine_fits(&routine, list[i]))
			index_put(&numbers, routine.number, &added);
		if (added)
			fits++;
		else
			others++;
	}
	index_clear(&numbers);
	/* some goroutines change while they are looked at */
	return fits > 1 && fits > 4 * others;
}

static bool layout_find(struct reader *reader, const uint64_t *list, size_t count)
{
	for (size_t i = 0; i < STATE_LOCATIONS; i++)
		if (layout_fits(reader, list, count, state_locations[i])) {
			reader->state_at = state_locations[i];
			return true;
		}
	return false;
}

static void reasons_read(struct reader *reader, const struct go_program *program)
{
	uint64_t count = program->reasons ? program->reason_count : 0, text[2];

	for (uint64_t i = 0; i < count && i < GOROUTINE_REASONS_MAX; i++) {
		char *to = reader->to->reasons[i];

		if (!memory_read(reader,
				 program->reasons + reader->source->distance + i * sizeof(text),
				 text, sizeof(text)) ||
		    text[1] >= GOROUTINE_REASON_SIZE ||
		    (text[1] && !memory_read(reader, text[0], to, text[1])))
			continue;
		to[text[1]] = '\0';
	}
}

static int list_read(struct reader *reader, const struct go_program *program)
{
	uint64_t list, count, piece[LIST_PIECE];

	if (!memory_read(reader, program->count + reader->source->distance, &count,
			 sizeof(count)) ||
	    !memory_read(reader, program->list + reader->source->distance, &list, sizeof(list)))
		return refuse(reader, EIO, "their list can't be read");
	if (count > LISTED_MAX) {
		reader->to->counts.left += count - LISTED_MAX;
		count = LISTED_MAX;
	}
	for (uint64_t at = 0; at < count; at += LIST_PIECE) {
		uint64_t n = count - at < LIST_PIECE ? count - at : LIST_PIECE;

		if (!memory_read(reader, list + at * sizeof(*piece), piece, n * sizeof(*piece))) {
			reader->to->counts.unread += n;
			continue;
		}
		if (!at && !layout_find(reader, piece, n))
			return refuse(
				reader, ENOTSUP,
				"their layout is not one that tsnap knows (Go 1.13 and later)");
		for (uint64_t i = 0; i < n; i++) {
			if (clock_monotonic_ns() > reader->until_ns) {
				reader->to->counts.left += count - at - i;
				return 0;
			}
			routine_take(reader, piece[i]);
		}
	}
	return 0;
}

static int group_compare(const void *a, const void *b)
{
	const struct goroutine_group *one = a, *other = b;

	if (one->count != other->count)
		return one->count < other->count ? 1 : -1;
	return one->waited_ns < other->waited_ns ? 1 : one->waited_ns > other->waited_ns ? -1 : 0;
}

int goroutines_list(struct goroutines *goroutines, const struct goroutine_source *source,
		    const char **why)
{
	struct reader reader = {.to = goroutines,
				.source = source,
				.until_ns = clock_monotonic_ns() + READ_NS,
				.why = why};
	int err;

	reasons_read(&reader, source->program);
	err = list_read(&reader, source->program);
	if (!err && goroutines->group_count)
		qsort(goroutines->groups, goroutines->group_count, sizeof(*goroutines->groups),
		      group_compare);
	return err;
}

/* --- requests to a parser. The first one, with the descriptor of the process' memory, has all
 * goroutines read; then their groups are requested one by one. */

#define GOROUTINE_WHY_SIZE 128

enum goroutine_request_kind {
	GOROUTINES_READ = PARSER_GOROUTINES, /* struct goroutines_answer */
	GOROUTINES_GROUP,		     /* struct goroutine_group_answer */
};

struct goroutine_request {
	uint32_t kind;
	uint32_t number;   /* the file's number in the parser (file_request.h) */
	uint64_t distance; /* as in struct goroutine_source */
	uint64_t group;	   /* index of the requested group */
	uint8_t labels;	   /* bool, as in struct goroutine_source */
	struct go_program program;
};

struct goroutines_answer {
	int32_t err; /* -errno, or 0; why has it in words */
	uint32_t group_count;
	struct goroutine_counts counts;
	char why[GOROUTINE_WHY_SIZE];
	char reasons[GOROUTINE_REASONS_MAX][GOROUTINE_REASON_SIZE];
};

struct goroutine_group_answer {
	struct goroutine_group group; /* group without frames and labels */
	uint64_t frames[GOROUTINE_FRAMES_MAX];
	char labels[GOROUTINE_LABELS_SIZE];
};

_Static_assert(sizeof(struct goroutines_answer) <= PARSER_MESSAGE_MAX, "one message");

/* Goroutines that were read last. */
static struct goroutines present;

static int location_find(void *of, uint64_t address, struct file_go_frame_answer *answer)
{
	file_go_frame(*(const uint32_t *)of, address, answer);
	return 0;
}

static size_t all_answer(const struct parser_request *request, struct goroutine_request *of,
			 struct goroutines_answer *answer)
{
	/* 0 reads left: each piece that is read begins with reads of its own */
	const struct goroutine_source source = {.memory = runtime_memory_begin(request, 0),
						.program = &of->program,
						.labels = of->labels,
						.distance = of->distance,
						.request = location_find,
						.of = &of->number};
	const char *why = "";

	if (!source.memory)
		return 0;
	goroutines_done(&present);
	memset(answer, 0, sizeof(*answer));
	answer->err = goroutines_list(&present, &source, &why);
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	answer->group_count = (uint32_t)present.group_count;
	answer->counts = present.counts;
	memcpy(answer->reasons, present.reasons, sizeof(answer->reasons));
	return sizeof(*answer);
}

static size_t group_answer(const struct goroutine_request *of,
			   struct goroutine_group_answer *answer)
{
	const struct goroutine_group *group;

	if (of->group >= present.group_count)
		return 0;
	group = &present.groups[of->group];
	memset(answer, 0, sizeof(*answer));
	answer->group = *group;
	answer->group.frames = NULL;
	answer->group.labels = NULL;
	if (group->labels)
		snprintf(answer->labels, sizeof(answer->labels), "%s", group->labels);
	memcpy(answer->frames, group->frames, group->frame_count * sizeof(*answer->frames));
	return sizeof(*answer);
}

size_t goroutine_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct goroutine_request of;

	if (parser_request_kind(request) < PARSER_GOROUTINES)
		return file_service(request, answer);
	if (request->count != sizeof(of))
		return 0;
	memcpy(&of, request->bytes, sizeof(of));
	switch (of.kind) {
	case GOROUTINES_READ:
		return all_answer(request, &of, (struct goroutines_answer *)answer);
	case GOROUTINES_GROUP:
		return group_answer(&of, (struct goroutine_group_answer *)answer);
	default:
		return 0;
	}
}

#define AUXV_MAX 64
#define PROGRAM 0 /* number by which the parser knows the file */

/* Finds the distance of the program from its file's addresses: the entry point as the kernel
 * reports it, less the file's. */
static bool distance_find(const char *proc_root, int64_t pid, const struct elf_file *elf,
			  uint64_t *distance)
{
	Elf64_auxv_t vector[AUXV_MAX];
	ssize_t got = proc_file_read(proc_root, 0, pid, "auxv", (char *)vector, sizeof(vector));
	uint64_t entry;

	if (got < 0 || elf_file_take(elf, offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry)))
		return false;
	for (size_t i = 0; i < (size_t)got / sizeof(vector[0]); i++)
		if (vector[i].a_type == AT_ENTRY) {
			*distance = vector[i].a_un.a_val - entry;
			return true;
		}
	return false;
}

static int process_refuse(struct error *e, int err, int64_t pid, const char *why)
{
	return error_set(e, err, EXIT_FAILED, "goroutines of process %lld: %s", (long long)pid,
			 why);
}

/* Names the functions of a group's stack. 0 or -errno. */
static int frames_name(struct goroutines *goroutines, struct parser *parser,
		       const struct goroutine_group *group)
{
	struct file_go_frame_answer answer;
	int err;

	for (uint32_t i = 0; i < group->frame_count; i++) {
		if (location_known(goroutines, group->frames[i]))
			continue;
		err = file_go_frame_request(parser, PROGRAM, group->frames[i], &answer);
		if (err)
			return err;
		location_add(goroutines, group->frames[i], &answer);
	}
	return 0;
}

static int group_take(struct goroutines *goroutines, struct parser *parser, uint64_t number)
{
	const struct goroutine_request request = {.kind = GOROUTINES_GROUP, .group = number};
	struct goroutine_group_answer answer;
	struct goroutine_group *group;
	int err = runtime_list_request(parser, &request, sizeof(request), -1, &answer,
				       sizeof(answer));

	if (!err && (answer.group.frame_count > GOROUTINE_FRAMES_MAX ||
		     answer.group.reason >= GOROUTINE_REASONS_MAX))
		err = -EBADMSG;
	if (err)
		return err;
	goroutines->groups = memory_grow(goroutines->groups, &goroutines->group_capacity,
					 goroutines->group_count + 1, sizeof(*goroutines->groups));
	group = &goroutines->groups[goroutines->group_count++];
	*group = answer.group;
	answer.labels[GOROUTINE_LABELS_SIZE - 1] = '\0';
	group->labels = *answer.labels ? memory_text(answer.labels, strlen(answer.labels)) : NULL;
	group->frames = memory_get((group->frame_count + 1) * sizeof(*group->frames));
	memcpy(group->frames, answer.frames, group->frame_count * sizeof(*group->frames));
	return frames_name(goroutines, parser, group);
}

/* Has the parser read all goroutines, and takes them. Returns 0, or -errno with e. */
static int routines_take(struct goroutines *goroutines, struct parser *parser, int64_t pid,
			 int memory, struct goroutine_request *request, struct error *e)
{
	static struct goroutines_answer answer;
	int err;

	request->kind = GOROUTINES_READ;
	request->number = PROGRAM;
	err = runtime_list_request(parser, request, sizeof(*request), memory, &answer,
				   sizeof(answer));
	if (!err && answer.err) {
		answer.why[GOROUTINE_WHY_SIZE - 1] = '\0';
		return process_refuse(e, EIO, pid, answer.why);
	}
	goroutines->counts = answer.counts;
	memcpy(goroutines->reasons, answer.reasons, sizeof(goroutines->reasons));
	for (size_t i = 0; i < GOROUTINE_REASONS_MAX; i++)
		goroutines->reasons[i][GOROUTINE_REASON_SIZE - 1] = '\0';
	for (uint64_t i = 0; !err && i < answer.group_count && i < GOROUTINE_GROUPS_MAX; i++)
		err = group_take(goroutines, parser, i);
	return err ? process_refuse(e, -err, pid, "the process that reads them does not answer")
		   : 0;
}

static const char *program_refused(const struct file_go_answer *answer)
{
	if (!answer->is_go)
		return "it is no program of Go";
	if (!answer->has_functions)
		return "its table of functions (.gopclntab) is none that is known";
	if (answer->program.has_symbols && !answer->program.list)
		return "their list is none that is known of Go 1.13 and later";
	if (!answer->program.list || !answer->program.count)
		return "it was linked without symbols (-s, strip), so that their list can't be "
		       "found";
	return NULL;
}

/* Reads all of the goroutines of a program. fd: descriptor of the program's file; memory:
 * descriptor of the process' memory. */
static int program_read(struct goroutines *goroutines, const char *proc_root, int64_t pid,
			bool labels, int fd, int memory, struct parser *parser, struct error *e)
{
	struct goroutine_request request = {.kind = GOROUTINES_READ, .labels = labels};
	struct file_go_answer answer = {.is_go = false};
	struct elf_file elf = {.fd = fd};
	struct stat status;
	const char *why;
	int err;

	if (fstat(fd, &status))
		return process_refuse(e, errno, pid, "its program file can't be examined");
	elf.bytes = (uint64_t)status.st_size;
	err = file_head_request(parser, &elf);
	if (err == -ENOEXEC)
		return process_refuse(e, ENOEXEC, pid, "its program is not an ELF file");
	if (!err)
		err = file_go_request(parser, PROGRAM, &elf, &answer);
	if (err)
		return process_refuse(e, -err, pid, "its program could not be parsed");
	why = program_refused(&answer);
	if (why)
		return process_refuse(e, ENOTSUP, pid, why);
	if (!distance_find(proc_root, pid, &elf, &request.distance))
		return process_refuse(e, EACCES, pid, "its memory map can't be read");
	memcpy(goroutines->version, answer.program.version, GO_VERSION_SIZE);
	request.program = answer.program;
	return routines_take(goroutines, parser, pid, memory, &request, e);
}

int goroutines_read(struct goroutines *goroutines, const char *proc_root, int64_t pid, bool labels,
		    struct parser *parser, struct error *e)
{
	char path[PATH_MAX];
	int fd, memory, err;

	snprintf(path, sizeof(path), "%s/%lld/exe", proc_root, (long long)pid);
	fd = process_link_open(AT_FDCWD, path);
	if (fd < 0)
		return error_set(e, -fd, EXIT_FAILED, "goroutines of process %lld: %s: %s",
				 (long long)pid, path, strerror(-fd));
	snprintf(path, sizeof(path), "%s/%lld/mem", proc_root, (long long)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		err = error_set(e, errno, EXIT_FAILED, "goroutines of process %lld: %s: %s",
				(long long)pid, path, strerror(errno));
	else
		err = program_read(goroutines, proc_root, pid, labels, fd, memory, parser, e);
	if (memory >= 0)
		close(memory);
	close(fd);
	return err;
}
