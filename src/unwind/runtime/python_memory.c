/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_memory.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "unwind/function_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- layout of its structs */

#define MINOR(version) ((version) >> 16) /* 0x030b of 0x030b02f0 */
#define COOKIE "xdebugpy"
#define MEMBER(name) offsetof(struct python_layout, name)
#define FAR PYTHON_OFFSET_MAX
#define NEAR (PYTHON_STRUCT_BYTES_MAX - sizeof(uint64_t))

/* Members of the layout, from Include/internal/pycore_frame.h, pycore_gil.h, pycore_runtime.h,
 * pycore_interp.h and Include/cpython/pystate.h, code.h, unicodeobject.h of 3.11.7 and 3.12.1,
 * which are kept for all releases of a minor version; and where _Py_DebugOffsets of 3.13 and 3.14
 * has them. 0: the version has no such member, or it is at 0. */
static const struct {
	size_t member;
	uint16_t of_3_11, of_3_12, at_3_13, at_3_14;
	uint64_t most; /* limit of what is published */
} rows[] = {
	/* clang-format off */
	{MEMBER(runtime_interpreters),  40,  40,  40,  40,  FAR},
	{MEMBER(interpreter_next),      0,   0,   64,  64,  FAR},
	{MEMBER(interpreter_threads),   16,  72,  72,  72,  FAR},
	{MEMBER(thread_next),           8,   8,   168, 192, NEAR},
	{MEMBER(thread_interpreter),    16,  16,  176, 200, NEAR},
	{MEMBER(thread_native_id),      160, 144, 200, 224, NEAR},
	{MEMBER(thread_frame),          56,  56,  184, 208, NEAR},
	{MEMBER(cframe_frame),          8,   0,   0,   0,   NEAR},
	{MEMBER(cframe_previous),       16,  8,   0,   0,   NEAR},
	{MEMBER(frame_previous),        48,  8,   232, 256, NEAR},
	{MEMBER(frame_code),            32,  0,   240, 264, NEAR},
	{MEMBER(frame_instruction),     56,  56,  248, 272, NEAR},
	{MEMBER(frame_owner),           69,  70,  264, 288, NEAR},
	{MEMBER(frame_is_entry),        68,  0,   0,   0,   NEAR},
	{MEMBER(code_file),             112, 112, 280, 320, NEAR},
	{MEMBER(code_name),             128, 128, 296, 336, NEAR},
	{MEMBER(code_lines),            136, 136, 304, 344, NEAR},
	{MEMBER(code_first_line),       72,  68,  312, 352, NEAR},
	{MEMBER(code_bytes),            184, 192, 344, 384, FAR},
	{MEMBER(string_length),         16,  16,  552, 632, NEAR},
	{MEMBER(string_state),          32,  32,  544, 624, NEAR},
	{MEMBER(string_bytes),          48,  40,  560, 640, NEAR},
	{MEMBER(string_wide_bytes),     72,  56,  0,   0,   FAR},
	{MEMBER(bytes_length),          16,  16,  520, 600, NEAR},
	{MEMBER(bytes_bytes),           32,  32,  528, 608, NEAR},
	{MEMBER(runtime_gil),           360, 0,   0,   0,   FAR},
	{MEMBER(interpreter_gil),       0,   384, 112, 120, FAR},
	{MEMBER(gil_holder),            8,   8,   144, 152, NEAR},
	{MEMBER(gil_locked),            16,  16,  136, 144, NEAR},
	{MEMBER(frame_stack_top),       0,   0,   0,   296, NEAR},
	{MEMBER(type_name),             0,   0,   0,   424, NEAR},
	{MEMBER(type_flags),            0,   0,   0,   440, NEAR},
	{MEMBER(set_used),              0,   0,   0,   504, NEAR},
	{MEMBER(set_table),             0,   0,   0,   512, NEAR},
	{MEMBER(set_mask),              0,   0,   0,   520, NEAR},
	{MEMBER(number_tag),            0,   0,   0,   576, NEAR},
	{MEMBER(number_digits),         0,   0,   0,   584, NEAR},
	{MEMBER(generator_frame),       0,   0,   0,   680, NEAR},
	{MEMBER(generator_state),       0,   0,   0,   688, NEAR},
	{MEMBER(list_next),             0,   0,   0,   696, NEAR},
	{MEMBER(list_previous),         0,   0,   0,   704, NEAR},
	/* clang-format on */
};

/* Offset, in _Py_DebugOffsets, of the offset of an interpreter's own GIL; it may share
 * another's. */
#define GIL_AT_3_13 120
#define GIL_AT_3_14 128

static uint64_t word_at(const uint8_t *head, size_t at)
{
	uint64_t word;

	memcpy(&word, head + at, sizeof(word));
	return word;
}

static void member_set(struct python_layout *layout, size_t member, uint64_t offset)
{
	const uint32_t value = (uint32_t)offset;

	memcpy((char *)layout + member, &value, sizeof(value));
}

/* Fills the layout of 3.13 or 3.14 with what the interpreter publishes. */
static bool layout_published(struct python_layout *layout, uint64_t version, const uint8_t *head)
{
	bool newer = MINOR(version) == 0x030e;
	uint64_t gil = word_at(head, newer ? GIL_AT_3_14 : GIL_AT_3_13);

	if (memcmp(head, COOKIE, strlen(COOKIE)) != 0 || word_at(head, 8) != version ||
	    word_at(head, 16) /* without a GIL */)
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint16_t at = newer ? rows[i].at_3_14 : rows[i].at_3_13;
		uint64_t offset = at ? word_at(head, at) : 0;

		if (rows[i].member == MEMBER(gil_locked) || rows[i].member == MEMBER(gil_holder))
			offset -= gil;
		if (offset > rows[i].most)
			return false;
		member_set(layout, rows[i].member, offset);
	}
	layout->string_wide_bytes =
		layout->string_bytes + 16; /* after length and address of UTF-8 */
	return true;
}

bool python_layout_get(struct python_layout *layout, uint64_t version,
		       const uint8_t head[PYTHON_RUNTIME_HEAD_BYTES])
{
	const uint64_t minor = MINOR(version);

	*layout = (struct python_layout){.has_cframe = minor == 0x030b || minor == 0x030c,
					 .has_is_entry = minor == 0x030b,
					 .has_locks = minor >= 0x030b && minor <= 0x030d};
	for (size_t i = 0; layout->has_cframe && i < sizeof(rows) / sizeof(rows[0]); i++)
		member_set(layout, rows[i].member,
			   layout->has_is_entry ? rows[i].of_3_11 : rows[i].of_3_12);
	return layout->has_cframe ||
	       ((minor == 0x030d || minor == 0x030e) && layout_published(layout, version, head));
}

/* --- code objects */

#define OBJECT_TYPE 8 /* offset of ob_type in PyObject, in all versions */
#define STRING_LENGTH_MAX (1u << 24)
#define LINES_BYTES_MAX 16384
#define CODE_UNIT_BYTES 2

/* Kinds of location entries. */
#define ENTRY_ONE_LINE 10 /* first of three kinds, 10 to 12 */
#define ENTRY_NO_COLUMN 13
#define ENTRY_LONG 14
#define ENTRY_NONE 15

#define PYTHON_FILE_CHARS_MAX 120 /* the last ones of a path */

/* Facts that distinguish a code object, together with its texts, from a later one at its
 * address. */
struct python_code {
	uint64_t name, file, lines;
	uint64_t bytes; /* address of its first instruction */
	int64_t first_line;
};

/* Texts of a code object, whose addresses others may have later as well. */
struct python_texts {
	char name[PYTHON_UTF8_BYTES * PYTHON_NAME_CHARS_MAX + 1];
	char file[PYTHON_UTF8_BYTES * PYTHON_FILE_CHARS_MAX + 1];
};

bool python_word(struct thread_memory *memory, uint64_t address, uint64_t *word)
{
	return !thread_memory_read(memory, address, word, sizeof(*word));
}

bool python_open(struct python *python, struct thread_memory *memory,
		 const uint64_t exports[MODULE_PYTHON_EXPORTS], uint64_t distance)
{
	uint8_t head[PYTHON_RUNTIME_HEAD_BYTES];
	uint64_t version;

	*python = (struct python){
		.runtime = exports[MODULE_PYTHON_RUNTIME] + distance,
		.code_type = exports[MODULE_PYTHON_CODE] + distance,
		.string_type = exports[MODULE_PYTHON_STRING] + distance,
	};
	return exports[MODULE_PYTHON_VERSION] && exports[MODULE_PYTHON_CODE] &&
	       exports[MODULE_PYTHON_STRING] &&
	       python_word(memory, exports[MODULE_PYTHON_VERSION] + distance, &version) &&
	       !thread_memory_read(memory, python->runtime, head, sizeof(head)) &&
	       python_layout_get(&python->layout, version, head);
}

static bool object_is(struct thread_memory *memory, uint64_t address, uint64_t type)
{
	uint64_t head[2];

	return address && !thread_memory_read(memory, address, head, sizeof(head)) &&
	       head[OBJECT_TYPE / sizeof(head[0])] == type;
}

/* Reads a code object. False where there is none. */
static bool python_code_read(const struct python *python, struct thread_memory *memory,
			     uint64_t address, struct python_code *code)
{
	const struct python_layout *layout = &python->layout;
	int32_t line;

	if (!object_is(memory, address, python->code_type) ||
	    !python_word(memory, address + layout->code_name, &code->name) ||
	    !python_word(memory, address + layout->code_file, &code->file) ||
	    !python_word(memory, address + layout->code_lines, &code->lines) ||
	    thread_memory_read(memory, address + layout->code_first_line, &line, sizeof(line)))
		return false;
	code->bytes = address + layout->code_bytes;
	code->first_line = line;
	return true;
}

static size_t utf8_put(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 0x07));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Returns a character of a text; a question mark for one that no text may have in it. */
static uint32_t character_at(const uint8_t *bytes, unsigned int kind, size_t at)
{
	uint32_t c = 0;

	memcpy(&c, bytes + at * kind, kind);
	return !c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? '?' : c;
}

/* PyASCIIObject and PyCompactUnicodeObject of Include/cpython/unicodeobject.h. */
bool python_string_read(const struct python *python, struct thread_memory *memory, uint64_t address,
			size_t most, bool last, char *text)
{
	const struct python_layout *layout = &python->layout;
	uint8_t bytes[PYTHON_UTF8_BYTES * PYTHON_NAME_CHARS_MAX];
	unsigned int kind;
	uint64_t length;
	uint32_t state;
	size_t used = 0;

	if (!object_is(memory, address, python->string_type) ||
	    !python_word(memory, address + layout->string_length, &length) ||
	    thread_memory_read(memory, address + layout->string_state, &state, sizeof(state)) ||
	    length > STRING_LENGTH_MAX)
		return false;
	kind = state >> 2 & 7;
	if ((kind != 1 && kind != 2 && kind != 4) || !(state & 0x20) /* compact */)
		return false;
	address += state & 0x40 /* ASCII */ ? layout->string_bytes : layout->string_wide_bytes;
	if (length > most) {
		address += last ? (length - most) * kind : 0;
		length = most;
	}
	if (thread_memory_read(memory, address, bytes, length * kind))
		return false;
	for (size_t i = 0; i < length; i++)
		used += utf8_put(text + used, character_at(bytes, kind, i));
	text[used] = '\0';
	return true;
}

/* Reads the texts of a code object. False where they can't be read. */
static bool python_texts_read(const struct python *python, struct thread_memory *memory,
			      const struct python_code *code, struct python_texts *texts)
{
	return python_string_read(python, memory, code->name, PYTHON_NAME_CHARS_MAX, false,
				  texts->name) &&
	       python_string_read(python, memory, code->file, PYTHON_FILE_CHARS_MAX, true,
				  texts->file);
}

/* Reads a number of six bits a byte, lowest first; bit 6: one more byte comes. *at: after the
 * number then. */
static uint64_t varint_take(const uint8_t *table, size_t bytes, size_t *at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < bytes && shift < 36; shift += 6) {
		uint8_t byte = table[(*at)++];

		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

int64_t python_line(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit)
{
	int64_t line = first_line;
	uint64_t passed = 0;
	size_t at = 0;

	while (at < bytes) {
		unsigned int kind = table[at] >> 3 & 15;

		passed += (table[at++] & 7) + 1;
		if (kind == ENTRY_LONG || kind == ENTRY_NO_COLUMN) {
			uint64_t change = varint_take(table, bytes, &at);

			line += change & 1 ? -(int64_t)(change >> 1) : (int64_t)(change >> 1);
		} else if (kind >= ENTRY_ONE_LINE && kind < ENTRY_NO_COLUMN) {
			line += kind - ENTRY_ONE_LINE;
		}
		if (unit < passed)
			return kind == ENTRY_NONE || line < 0 ? 0 : line;
		while (at < bytes && !(table[at] & 0x80)) /* columns */
			at++;
	}
	return 0;
}

static int64_t line_read(const struct python *python, struct thread_memory *memory,
			 const struct python_code *code, uint64_t instruction)
{
	uint64_t unit = (instruction - code->bytes) / CODE_UNIT_BYTES, bytes;
	uint8_t table[LINES_BYTES_MAX];

	/* the instruction of code that has not begun is the unit before the first */
	if (instruction < code->bytes)
		return code->first_line;
	if (!python_word(memory, code->lines + python->layout.bytes_length, &bytes) ||
	    bytes > sizeof(table))
		return 0;
	if (thread_memory_read(memory, code->lines + python->layout.bytes_bytes, table, bytes))
		return 0;
	return python_line(table, bytes, code->first_line, unit);
}

/* Fills location, "file.py:12", cut where it is long; without a line where that is not known. */
static void python_code_location(const struct python *python, struct thread_memory *memory,
				 const struct python_code *code, const struct python_texts *texts,
				 uint64_t instruction, char location[PYTHON_LOCATION_SIZE])
{
	int64_t line = line_read(python, memory, code, instruction);
	const char *file = strrchr(texts->file, '/');

	file = file ? file + 1 : texts->file;
	if (line)
		snprintf(location, PYTHON_LOCATION_SIZE, "%.150s:%lld", file, (long long)line);
	else
		snprintf(location, PYTHON_LOCATION_SIZE, "%.150s", file);
	function_name_clean(location);
}

/* Fills name, "Class.method (file.py:12)", cut where it is long, without what separates frames.
 * instruction: address of one of the code's. */
static void python_code_name(const struct python *python, struct thread_memory *memory,
			     const struct python_code *code, const struct python_texts *texts,
			     uint64_t instruction, char name[FUNCTION_NAME_SIZE])
{
	char location[PYTHON_LOCATION_SIZE];

	python_code_location(python, memory, code, texts, instruction, location);
	snprintf(name, FUNCTION_NAME_SIZE, "%.300s (%s)", texts->name, location);
	function_name_clean(name);
}

/* --- GILs */

#define FRAMES_MAX 8 /* frames of no function, before one of a function */

/* Returns the innermost frame of a function, and its code; 0: not known. */
static uint64_t frame_of(const struct python_layout *layout, struct thread_memory *memory,
			 uint64_t state, uint64_t *code)
{
	uint64_t frame;
	uint8_t owner;

	if (!python_word(memory, state + layout->thread_frame, &frame) ||
	    (layout->has_cframe && !python_word(memory, frame + layout->cframe_frame, &frame)))
		return 0;
	for (int i = 0; frame && i < FRAMES_MAX; i++) {
		if (!python_word(memory, frame + layout->frame_code, code) ||
		    thread_memory_read(memory, frame + layout->frame_owner, &owner, 1))
			return 0;
		*code &= PYTHON_POINTER_BITS;
		if (layout->has_is_entry || owner < PYTHON_OWNED_BY_STACK)
			return frame;
		if (!python_word(memory, frame + layout->frame_previous, &frame))
			return 0;
	}
	return 0;
}

/* Reads the line that the holder is at. The holder mostly runs: what was read is believed if the
 * same function is there afterwards. */
static void location_read(const struct python *python, struct thread_memory *memory, uint64_t state,
			  char location[PYTHON_LOCATION_SIZE])
{
	const struct python_layout *layout = &python->layout;
	struct python_texts texts;
	struct python_code code;
	uint64_t at, now, frame = frame_of(layout, memory, state, &at), instruction;

	if (!frame || !python_word(memory, frame + layout->frame_instruction, &instruction) ||
	    !python_code_read(python, memory, at, &code) ||
	    !python_texts_read(python, memory, &code, &texts))
		return;
	python_code_location(python, memory, &code, &texts, instruction, location);
	thread_memory_again(memory);
	if (frame_of(layout, memory, state, &now) != frame || now != at)
		*location = '\0';
}

bool python_gil_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		     bool with_location, struct python_gil *gil)
{
	const struct python_layout *layout = &python->layout;
	uint64_t locked = address + layout->gil_locked, state;
	uint32_t mutex;
	int32_t is_locked;

	*gil = (struct python_gil){.holder = 0};
	/* the whole GIL is copied at once */
	thread_memory_begin_at(memory, address);
	if (!python_word(memory, address + layout->gil_holder, &state) ||
	    thread_memory_read(memory, locked, &is_locked, sizeof(is_locked)) ||
	    !python_word(memory, locked + SWITCHES_AT, &gil->switches) ||
	    thread_memory_read(memory, locked + MUTEX_AT, &mutex, sizeof(mutex)) || is_locked < 0 ||
	    is_locked > 1)
		return false;
	gil->changing = mutex;
	if (!is_locked)
		return true;
	if (!state || !python_word(memory, state + layout->thread_native_id, &gil->holder) ||
	    !gil->holder)
		return false;
	if (with_location)
		location_read(python, memory, state, gil->location);
	return true;
}

/* --- locks of threading */

/* Offset of thread_id in PyThreadState, which native_thread_id follows. */
#define THREAD_IDENT(layout) ((layout)->thread_native_id - sizeof(uint64_t))

/* rlockobject of Modules/_threadmodule.c, 3.11 to 3.13, in words. Its semaphore (sem_t, whose first
 * word waiters sleep on) has no other lock. */
enum { RLOCK_REFERENCES, RLOCK_TYPE, RLOCK_SEMAPHORE, RLOCK_OWNER, RLOCK_COUNT, RLOCK_WORDS };
#define RLOCK_NAME "_thread.RLock"
#define TYPE_NAME 24	/* offset of tp_name in PyTypeObject */
#define METHOD_SELF 3	/* m_self in PyCFunctionObject, in words */
#define CODE_STACK (-4) /* offset of co_stacksize from co_firstlineno */
#define CODE_LOCALS 4	/* offset of co_nlocalsplus from there */
#define FRAME_LOCALS 72 /* offset of localsplus in _PyInterpreterFrame, 3.11 to 3.13 */
#define SLOTS_MAX 128	/* of a frame: its variables, and what its expressions work on */
#define REFERENCES_MAX (1u << 30)

/* Reads an object. True if it is an RLock with that semaphore. */
static bool rlock_read(struct thread_memory *memory, uint64_t address, uint64_t semaphore,
		       uint64_t words[RLOCK_WORDS])
{
	char name[sizeof(RLOCK_NAME)];
	uint64_t at;

	memset(words, 0, RLOCK_WORDS * sizeof(*words));
	return address && !(address & ~PYTHON_POINTER_BITS) &&
	       !thread_memory_read(memory, address, words, RLOCK_WORDS * sizeof(*words)) &&
	       words[RLOCK_SEMAPHORE] == semaphore && words[RLOCK_REFERENCES] < REFERENCES_MAX &&
	       python_word(memory, words[RLOCK_TYPE] + TYPE_NAME, &at) &&
	       !thread_memory_read(memory, at, name, sizeof(name)) &&
	       !memcmp(name, RLOCK_NAME, sizeof(name));
}

/* Finds the RLock with that semaphore among what the function works on that a thread is in: the
 * lock itself ("lock.acquire()"), or a method that is bound to it ("with lock"). Returns its
 * address; 0: there is none. *read: all of it could be read. */
static uint64_t rlock_find(const struct python_layout *layout, struct thread_memory *memory,
			   uint64_t state, uint64_t semaphore, bool *read)
{
	uint64_t code = 0, slots[SLOTS_MAX], words[RLOCK_WORDS], method[RLOCK_WORDS];
	uint64_t frame = frame_of(layout, memory, state, &code);
	uint64_t lines = code + layout->code_first_line;
	int32_t locals, depth, count;

	*read = frame &&
		!thread_memory_read(memory, lines + CODE_LOCALS, &locals, sizeof(locals)) &&
		!thread_memory_read(memory, lines + CODE_STACK, &depth, sizeof(depth)) &&
		locals >= 0 && locals < SLOTS_MAX && depth >= 0 && depth < SLOTS_MAX;
	count = *read ? locals + depth : 0;
	count = count < SLOTS_MAX ? count : SLOTS_MAX;
	*read = *read && !thread_memory_read(memory, frame + FRAME_LOCALS, slots,
					     (size_t)count * sizeof(*slots));
	/* what it works on now is mostly the last */
	for (int32_t i = *read ? count : 0; i--;) {
		if (rlock_read(memory, slots[i], semaphore, words))
			return slots[i];
		if (rlock_read(memory, words[METHOD_SELF], semaphore, method))
			return words[METHOD_SELF];
	}
	return 0;
}

/* --- stacks, and answers */

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (60 * NS_PER_SECOND)
#define SWEEP_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* an exec may have passed unseen */
#define INTERPRETERS_MAX 64
#define THREADS_LISTED_MAX 8192
#define LIST_CALLS (2 * THREADS_LISTED_MAX)
#define FRAMES_PASSED_MAX 65536 /* frames of one stack */
/* Units of work. Work is counted instead of time, which on a full host passes without any: a unit
 * is about 0.1 us. */
#define WORK_FRAME 1ull /* a frame that is passed */
#define WORK_CALL 8ull	/* a read of memory */
#define LIST_LEAST_NS (5 * NS_PER_MS)
#define LIST_SHARE 50 /* divisor of the time for listing one process' threads */
#define NAMES_KEPT_MAX 65536
#define TEXT_BYTES_MAX (8u << 20)
#define SAME_LOOKED_AT 16 /* frames before one, whose name may be the same */

struct python_known {
	struct cache_entry entry; /* key: pid */
	int64_t looked_ns;
	bool known; /* python is filled */
	uint64_t distance;
	uint64_t exports[MODULE_PYTHON_EXPORTS];
	struct python python;
	struct index threads; /* ids to addresses of thread states */
	struct index idents;  /* pthread_self(3) of threads to their ids */
	int64_t next_list_ns;
	int64_t listed_ns; /* time of the last list of all threads */
};

/* A function that is interpreted. */
struct python_frame {
	uint64_t mark; /* address of the mark that its call of the interpreter has on the stack */
	uint64_t code, instruction;
};

/* Stack that is being read. */
struct python_stack {
	struct python_known *process;
	struct thread_memory *memory;
	uint32_t count, passed;
	bool broken;
	struct python_frame frames[STACK_FRAMES_MAX]; /* innermost first */
};

/* State of this parser. */
static struct {
	struct cache processes;
	int64_t swept_ns;
	/* Name of code at an instruction, as its offset in text plus one. The key has the code's
	 * texts, too. */
	struct index names;
	struct index scan_names; /* names of one scan; the key has no texts */
	int64_t scan_ns;	 /* time of the present scan */
	char *text;
	size_t text_bytes, text_capacity;
} all;

static void process_drop(void *entry)
{
	index_clear(&((struct python_known *)entry)->threads);
	index_clear(&((struct python_known *)entry)->idents);
}

static void names_clear_all(void)
{
	index_clear(&all.names);
	index_clear(&all.scan_names);
	all.text_bytes = 0;
}

void python_memory_clear(void)
{
	cache_done(&all.processes);
	names_clear_all();
	free(all.text);
	memset(&all, 0, sizeof(all));
}

size_t python_memory_name_count(void)
{
	return all.names.used;
}

static struct python_known *process_get(const struct runtime_request *of,
					struct thread_memory *memory)
{
	struct python_known *process;
	bool added;

	if (!all.processes.entry_bytes)
		all.processes = (struct cache){.entry_bytes = sizeof(struct python_known),
					       .entries_max = PROCESSES_MAX,
					       .drop = process_drop};
	if (of->now_ns - all.swept_ns >= SWEEP_NS) {
		cache_sweep(&all.processes, of->now_ns, PROCESS_IDLE_NS);
		all.swept_ns = of->now_ns;
	}
	process = cache_get(&all.processes, (uint64_t)of->pid, of->now_ns, &added);
	if (!added && !of->anew && process->distance == of->distance &&
	    !memcmp(process->exports, of->exports.python, sizeof(process->exports)) &&
	    of->now_ns - process->looked_ns < PROCESS_OLD_NS)
		return process;
	process->distance = of->distance;
	memcpy(process->exports, of->exports.python, sizeof(process->exports));
	process->known = python_open(&process->python, memory, of->exports.python, of->distance);
	process->looked_ns = of->now_ns;
	return process;
}

static bool state_is(const struct python_known *process, struct thread_memory *memory,
		     uint64_t state, uint64_t tid)
{
	uint64_t found;

	return python_word(memory, state + process->python.layout.thread_native_id, &found) &&
	       found == tid;
}

/* Lists the states of one interpreter's threads. Threads may come and go meanwhile. False: some may
 * be lacking. */
static bool threads_list(struct python_known *process, struct thread_memory *memory,
			 uint64_t interpreter, unsigned int *left)
{
	const struct python_layout *layout = &process->python.layout;
	uint64_t state, owner, tid, ident;

	if (!python_word(memory, interpreter + layout->interpreter_threads, &state))
		return false;
	for (; state && *left; (*left)--) {
		if (!python_word(memory, state + layout->thread_interpreter, &owner) ||
		    owner != interpreter ||
		    !python_word(memory, state + layout->thread_native_id, &tid) ||
		    !python_word(memory, state + THREAD_IDENT(layout), &ident))
			return false;
		*index_put(&process->threads, tid, NULL) = state;
		*index_put(&process->idents, ident, NULL) = tid;
		if (!python_word(memory, state + layout->thread_next, &state))
			return false;
	}
	return !state;
}

static void process_list(struct python_known *process, struct thread_memory *memory, int64_t now_ns)
{
	const struct python_layout *layout = &process->python.layout;
	int64_t start_ns = clock_monotonic_ns(), took_ns;
	unsigned int left = THREADS_LISTED_MAX;
	uint64_t interpreter;
	bool whole;

	memory->calls_left = LIST_CALLS;
	index_clear(&process->threads);
	index_clear(&process->idents);
	if (!python_word(memory, process->python.runtime + layout->runtime_interpreters,
			 &interpreter))
		interpreter = 0;
	whole = interpreter;
	for (int i = 0; interpreter && left && i < INTERPRETERS_MAX; i++) {
		whole &= threads_list(process, memory, interpreter, &left);
		if (!python_word(memory, interpreter + layout->interpreter_next, &interpreter))
			break;
	}
	if (whole && !interpreter)
		process->listed_ns = now_ns;
	took_ns = (clock_monotonic_ns() - start_ns) * LIST_SHARE;
	process->next_list_ns = now_ns + (took_ns > LIST_LEAST_NS ? took_ns : LIST_LEAST_NS);
}

/* Returns the thread's state, or 0: Python does not know the thread. */
static uint64_t state_find(struct python_known *process, const struct runtime_request *of,
			   struct thread_memory *memory)
{
	const unsigned int calls_left = memory->calls_left;
	uint64_t *known = index_find(&process->threads, of->id);

	if (known && state_is(process, memory, *known, of->id))
		return *known;
	if (of->now_ns < process->next_list_ns)
		return 0;
	process_list(process, memory, of->now_ns);
	memory->calls_left = calls_left;
	known = index_find(&process->threads, of->id);
	return known ? *known : 0;
}

/* Reads a frame and goes to the one that called it. False where it can't be read. first: the first
 * frame whose call of the interpreter is not known yet. */
static bool frame_take(struct python_stack *stack, uint64_t *address, uint64_t *cframe,
		       uint32_t *first)
{
	const struct python_layout *layout = &stack->process->python.layout;
	struct python_frame frame = {.mark = layout->has_is_entry ? *cframe : UINT64_MAX};
	uint64_t at = *address;
	uint8_t owner, is_entry = 0;

	if (!python_word(stack->memory, at + layout->frame_previous, address) ||
	    !python_word(stack->memory, at + layout->frame_code, &frame.code) ||
	    !python_word(stack->memory, at + layout->frame_instruction, &frame.instruction) ||
	    thread_memory_read(stack->memory, at + layout->frame_owner, &owner, 1))
		return false;
	if (!layout->has_is_entry && owner >= PYTHON_OWNED_BY_STACK) {
		while (*first < stack->count)
			stack->frames[(*first)++].mark = at;
		return true;
	}
	frame.code &= PYTHON_POINTER_BITS;
	if (stack->count < STACK_FRAMES_MAX)
		stack->frames[stack->count++] = frame;
	if (!layout->has_is_entry)
		return true;
	return !thread_memory_read(stack->memory, at + layout->frame_is_entry, &is_entry, 1) &&
	       (!is_entry || python_word(stack->memory, *cframe + layout->cframe_previous, cframe));
}

static void frames_read(struct python_stack *stack, uint64_t state)
{
	const struct python_layout *layout = &stack->process->python.layout;
	uint64_t frame, cframe = 0;
	uint32_t first = 0;

	if (!python_word(stack->memory, state + layout->thread_frame, &frame)) {
		stack->broken = true;
		return;
	}
	if (layout->has_cframe) {
		cframe = frame;
		stack->broken = !python_word(stack->memory, cframe + layout->cframe_frame, &frame);
	}
	for (uint32_t i = 0; frame && !stack->broken && i < FRAMES_PASSED_MAX; i++) {
		/* no more frames are kept, but the marks of the last ones lie further out */
		if (stack->count == STACK_FRAMES_MAX &&
		    (layout->has_is_entry || first == stack->count))
			return;
		stack->passed++;
		stack->broken = !frame_take(stack, &frame, &cframe, &first);
	}
	stack->broken = stack->broken || frame; /* frames are left: too many were passed */
}

/* Adds a name to text. Returns its offset there, plus one. */
static uint64_t text_keep(const char *name)
{
	size_t bytes = strlen(name) + 1, at = all.text_bytes;

	all.text = memory_grow(all.text, &all.text_capacity, at + bytes, 1);
	memcpy(all.text + at, name, bytes);
	all.text_bytes = at + bytes;
	return at + 1;
}

/* Makes the name of code at an instruction. key: hash of the code and its address. Returns as
 * python_frame_name(). */
static uint64_t name_make(const struct python *python, struct thread_memory *memory,
			  const struct python_code *code, uint64_t instruction, uint64_t key)
{
	char name[FUNCTION_NAME_SIZE];
	struct python_texts texts;
	uint64_t *known;

	if (!python_texts_read(python, memory, code, &texts))
		return 0;
	key = hash_u64(key ^ hash_bytes(texts.name, strlen(texts.name))) ^
	      hash_bytes(texts.file, strlen(texts.file));
	known = index_put(&all.names, key, NULL);
	if (*known)
		return *known;
	python_code_name(python, memory, code, &texts, instruction, name);
	return *known = text_keep(name);
}

/* Texts are read once in a scan: what is made later may have their addresses. */
uint64_t python_frame_name(const struct python *python, struct thread_memory *memory, uint64_t pid,
			   uint64_t code, uint64_t instruction)
{
	struct {
		struct python_code code;
		uint64_t instruction, at, pid;
	} what = {.instruction = instruction, .at = code, .pid = pid};
	uint64_t *known, key, name;

	if (!python_code_read(python, memory, code, &what.code))
		return 0;
	key = hash_bytes(&what, sizeof(what));
	known = index_find(&all.scan_names, key);
	if (known)
		return *known;
	name = name_make(python, memory, &what.code, instruction, key);
	if (name)
		*index_put(&all.scan_names, key, NULL) = name;
	return name;
}

const char *python_name_text(uint64_t name)
{
	return all.text + name - 1;
}

void python_names_begin(int64_t now_ns)
{
	if (all.names.used >= NAMES_KEPT_MAX || all.text_bytes >= TEXT_BYTES_MAX)
		names_clear_all();
	if (all.scan_ns != now_ns || all.scan_names.used >= NAMES_KEPT_MAX)
		index_clear(&all.scan_names);
	all.scan_ns = now_ns;
}

/* Adds a frame with its name, which frames before it may have. False: the texts are full. */
static bool frame_answer(struct python_stack_answer *answer, uint64_t mark, uint64_t name,
			 uint64_t given[STACK_FRAMES_MAX])
{
	struct python_stack_frame *frame = &answer->frames[answer->count];
	const char *text = python_name_text(name);
	size_t bytes = strlen(text) + 1;

	given[answer->count] = name;
	*frame = (struct python_stack_frame){.mark = mark, .name = answer->text_bytes};
	for (uint32_t back = 1; back <= SAME_LOOKED_AT && back <= answer->count; back++)
		if (given[answer->count - back] == name) {
			frame->name = answer->frames[answer->count - back].name;
			answer->count++;
			return true;
		}
	if (bytes > sizeof(answer->texts) - answer->text_bytes)
		return false;
	memcpy(answer->texts + answer->text_bytes, text, bytes);
	answer->text_bytes += (uint32_t)bytes;
	answer->count++;
	return true;
}

static void frames_answer(struct python_stack *stack, struct python_stack_answer *answer)
{
	static uint64_t given[STACK_FRAMES_MAX];
	bool fits = true;

	for (uint32_t i = 0; fits && i < stack->count; i++) {
		uint64_t name = python_frame_name(&stack->process->python, stack->memory,
						  stack->process->entry.key, stack->frames[i].code,
						  stack->frames[i].instruction);

		stack->broken = stack->broken || !name;
		fits = !name || frame_answer(answer, stack->frames[i].mark, name, given);
	}
	answer->broken = stack->broken || !fits;
}

size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	struct python_stack_answer *answer = to;
	static struct python_stack stack;
	const unsigned int calls = memory->calls_left;
	const size_t head = offsetof(struct python_stack_answer, texts);
	uint64_t state;

	memset(answer, 0, head);
	stack.process = process_get(of, memory);
	stack.memory = memory;
	stack.count = stack.passed = 0;
	stack.broken = false;
	answer->known = stack.process->known;
	state = answer->known ? state_find(stack.process, of, memory) : 0;
	python_names_begin(of->now_ns);
	if (state)
		frames_read(&stack, state);
	if (state)
		frames_answer(&stack, answer);
	answer->work = (calls - memory->calls_left) * WORK_CALL + stack.passed * WORK_FRAME;
	return head + answer->text_bytes;
}

static void gils_list(struct gils_answer *answer, const struct python *python,
		      struct thread_memory *memory)
{
	const struct python_layout *layout = &python->layout;
	uint64_t interpreter;

	if (!layout->interpreter_gil) {
		answer->gils[answer->count++] = python->runtime + layout->runtime_gil;
		return;
	}
	if (!python_word(memory, python->runtime + layout->runtime_interpreters, &interpreter))
		return;
	while (interpreter && answer->count < GILS_MAX) {
		if (!python_word(memory, interpreter + layout->interpreter_gil,
				 &answer->gils[answer->count]))
			return;
		answer->count++;
		if (!python_word(memory, interpreter + layout->interpreter_next, &interpreter))
			return;
	}
}

size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	const struct python_known *process = process_get(of, memory);
	struct gils_answer *answer = to;

	*answer = (struct gils_answer){.known = process->known,
				       .locked = process->python.layout.gil_locked};
	if (process->known)
		gils_list(answer, &process->python, memory);
	return sizeof(*answer);
}

size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	const struct python_known *process = process_get(of, memory);
	struct gil_answer *answer = to;

	*answer = (struct gil_answer){.found = false};
	answer->found = process->known && python_gil_read(&process->python, memory, of->address,
							  of->with_location, &answer->gil);
	return sizeof(*answer);
}

/* Returns the state of the thread with that pthread_self(3), and its id; 0: not known. *lost: there
 * is none. */
static uint64_t owner_find(struct python_known *process, struct thread_memory *memory,
			   uint64_t ident, int64_t now_ns, uint64_t *tid, uint8_t *lost)
{
	const struct python_layout *layout = &process->python.layout;
	const unsigned int calls_left = memory->calls_left;
	uint64_t *known, *state, found;

	for (int i = 0; i < 2; i++) {
		known = index_find(&process->idents, ident);
		state = known ? index_find(&process->threads, *known) : NULL;
		if (state && state_is(process, memory, *state, *known) &&
		    python_word(memory, *state + THREAD_IDENT(layout), &found) && found == ident) {
			*tid = *known;
			return *state;
		}
		*lost = process->listed_ns == now_ns;
		if (i || now_ns < process->next_list_ns)
			break;
		process_list(process, memory, now_ns);
		memory->calls_left = calls_left;
	}
	return 0;
}

/* Reads the lock that the thread waits for. Its owner is believed if it has it still afterwards. */
static void rlock_answer(struct python_known *process, const struct runtime_request *of,
			 struct thread_memory *memory, struct python_lock_answer *answer)
{
	uint64_t state = state_find(process, of, memory), words[RLOCK_WORDS], owner;
	bool read = true;

	answer->address =
		state ? rlock_find(&process->python.layout, memory, state, of->address, &read) : 0;
	answer->requested = read;
	if (!answer->address || !rlock_read(memory, answer->address, of->address, words))
		return;
	owner = words[RLOCK_OWNER];
	state = owner ? owner_find(process, memory, owner, of->now_ns, &answer->holder,
				   &answer->lost)
		      : 0;
	if (state && of->with_location)
		location_read(&process->python, memory, state, answer->location);
	thread_memory_again(memory);
	answer->requested = rlock_read(memory, answer->address, of->address, words) && owner &&
			    words[RLOCK_OWNER] == owner && words[RLOCK_COUNT];
	answer->owner = owner;
	answer->found = answer->requested;
}

size_t python_lock_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	struct python_known *process = process_get(of, memory);
	struct python_lock_answer *answer = to;

	*answer = (struct python_lock_answer){.requested = true};
	if (process->known && process->python.layout.has_locks)
		rlock_answer(process, of, memory, answer);
	return sizeof(*answer);
}
