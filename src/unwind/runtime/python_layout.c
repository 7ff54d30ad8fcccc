/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_layout.h"

#include <string.h>

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
					 .has_is_entry = minor == 0x030b};
	for (size_t i = 0; layout->has_cframe && i < sizeof(rows) / sizeof(rows[0]); i++)
		member_set(layout, rows[i].member,
			   layout->has_is_entry ? rows[i].of_3_11 : rows[i].of_3_12);
	return layout->has_cframe ||
	       ((minor == 0x030d || minor == 0x030e) && layout_published(layout, version, head));
}
