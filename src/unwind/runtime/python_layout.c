/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_layout.h"

#include <string.h>

#define MINOR(version) ((version) >> 16) /* 0x030b of 0x030b02f0 */
#define COOKIE "xdebugpy"

/* Layouts from Include/internal/pycore_frame.h, pycore_gil.h, pycore_runtime.h, pycore_interp.h and
 * Include/cpython/pystate.h, code.h, unicodeobject.h of 3.11.7 and 3.12.1; these are kept for all
 * releases of a minor version. */
struct layout_row {
	uint32_t minor;
	struct python_layout layout;
};

static const struct layout_row layout_table[] = {
	{0x030b,
	 {.runtime_interpreters = 40,
	  .interpreter_next = 0,
	  .interpreter_threads = 16,
	  .thread_next = 8,
	  .thread_interpreter = 16,
	  .thread_native_id = 160,
	  .thread_frame = 56,
	  .cframe_frame = 8,
	  .cframe_previous = 16,
	  .frame_previous = 48,
	  .frame_code = 32,
	  .frame_instruction = 56,
	  .frame_owner = 69,
	  .frame_is_entry = 68,
	  .code_file = 112,
	  .code_name = 128,
	  .code_lines = 136,
	  .code_first_line = 72,
	  .code_bytes = 184,
	  .string_length = 16,
	  .string_state = 32,
	  .string_bytes = 48,
	  .string_wide_bytes = 72,
	  .bytes_length = 16,
	  .bytes_bytes = 32,
	  .runtime_gil = 360,
	  .gil_holder = 8,
	  .gil_locked = 16,
	  .has_cframe = true,
	  .has_is_entry = true}},
	{0x030c,
	 {.runtime_interpreters = 40,
	  .interpreter_next = 0,
	  .interpreter_threads = 72,
	  .thread_next = 8,
	  .thread_interpreter = 16,
	  .thread_native_id = 144,
	  .thread_frame = 56,
	  .cframe_frame = 0,
	  .cframe_previous = 8,
	  .frame_previous = 8,
	  .frame_code = 0,
	  .frame_instruction = 56,
	  .frame_owner = 70,
	  .code_file = 112,
	  .code_name = 128,
	  .code_lines = 136,
	  .code_first_line = 68,
	  .code_bytes = 192,
	  .string_length = 16,
	  .string_state = 32,
	  .string_bytes = 40,
	  .string_wide_bytes = 56,
	  .bytes_length = 16,
	  .bytes_bytes = 32,
	  .interpreter_gil = 384,
	  .gil_holder = 8,
	  .gil_locked = 16,
	  .has_cframe = true}},
};

/* Offset of a number of the layout in _Py_DebugOffsets of 3.13 and 3.14. */
struct slot_row {
	size_t member;
	uint16_t at_3_13, at_3_14;
};

#define MEMBER(name) offsetof(struct python_layout, name)

static const struct slot_row slot_table[] = {
	{MEMBER(runtime_interpreters), 40, 40}, {MEMBER(interpreter_next), 64, 64},
	{MEMBER(interpreter_threads), 72, 72},	{MEMBER(thread_next), 168, 192},
	{MEMBER(thread_interpreter), 176, 200}, {MEMBER(thread_frame), 184, 208},
	{MEMBER(thread_native_id), 200, 224},	{MEMBER(frame_previous), 232, 256},
	{MEMBER(frame_code), 240, 264},		{MEMBER(frame_instruction), 248, 272},
	{MEMBER(frame_owner), 264, 288},	{MEMBER(code_file), 280, 320},
	{MEMBER(code_name), 296, 336},		{MEMBER(code_lines), 304, 344},
	{MEMBER(code_first_line), 312, 352},	{MEMBER(code_bytes), 344, 384},
	{MEMBER(bytes_length), 520, 600},	{MEMBER(bytes_bytes), 528, 608},
	{MEMBER(string_state), 544, 624},	{MEMBER(string_length), 552, 632},
	{MEMBER(string_bytes), 560, 640},	{MEMBER(interpreter_gil), 112, 120},
	{MEMBER(gil_locked), 136, 144},		{MEMBER(gil_holder), 144, 152},
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

static bool layout_published(struct python_layout *layout, uint64_t version, const uint8_t *head)
{
	struct python_layout made = {.has_cframe = false};
	bool newer = MINOR(version) == 0x030e;
	uint64_t gil;

	if ((MINOR(version) != 0x030d && !newer) || memcmp(head, COOKIE, strlen(COOKIE)) != 0 ||
	    word_at(head, 8) != version || word_at(head, 16) /* without a GIL */)
		return false;
	for (size_t i = 0; i < sizeof(slot_table) / sizeof(slot_table[0]); i++) {
		const struct slot_row *row = &slot_table[i];
		uint64_t reported = word_at(head, newer ? row->at_3_14 : row->at_3_13);
		uint32_t offset = (uint32_t)reported;

		if (reported > PYTHON_OFFSET_MAX)
			return false;
		memcpy((char *)&made + row->member, &offset, sizeof(offset));
	}
	gil = word_at(head, newer ? GIL_AT_3_14 : GIL_AT_3_13);
	made.gil_locked -= (uint32_t)gil;
	made.gil_holder -= (uint32_t)gil;
	made.string_wide_bytes = made.string_bytes + 16; /* after length and address of UTF-8 */
	*layout = made;
	return true;
}

/* True if members that are read in one piece lie within PYTHON_STRUCT_BYTES_MAX. */
static bool layout_fits(const struct python_layout *layout)
{
	const uint32_t ends[] = {
		layout->thread_next,	layout->thread_interpreter, layout->thread_native_id,
		layout->thread_frame,	layout->cframe_frame,	    layout->cframe_previous,
		layout->frame_previous, layout->frame_code,	    layout->frame_instruction,
		layout->frame_owner,	layout->frame_is_entry,	    layout->code_file,
		layout->code_name,	layout->code_lines,	    layout->code_first_line,
		layout->string_length,	layout->string_state,	    layout->string_bytes,
		layout->bytes_length,	layout->bytes_bytes,	    layout->gil_holder,
		layout->gil_locked,
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i] > PYTHON_STRUCT_BYTES_MAX - sizeof(uint64_t))
			return false;
	return true;
}

bool python_layout_get(struct python_layout *layout, uint64_t version,
		       const uint8_t head[PYTHON_RUNTIME_HEAD_BYTES])
{
	for (size_t i = 0; i < sizeof(layout_table) / sizeof(layout_table[0]); i++)
		if (layout_table[i].minor == MINOR(version)) {
			*layout = layout_table[i].layout;
			return true;
		}
	return layout_published(layout, version, head) && layout_fits(layout);
}
