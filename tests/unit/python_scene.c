/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "python_scene.h"
#include "unit.h"

#include <sys/syscall.h>

#include "base/clock.h"

const uint64_t versions[VERSION_COUNT] = {V3_11, V3_12, V3_13, V3_14};

uint64_t fake_memory(struct python_scene *scene, size_t bytes)
{
	size_t at = scene->used;

	scene->used += (bytes + 15) / 16 * 16;
	assert_true(scene->used <= ARENA_BYTES);
	return (uintptr_t)(scene->arena + at);
}

void put(uint64_t address, const void *bytes, size_t count)
{
	uintptr_t at = (uintptr_t)address;
	void *to;

	memcpy(&to, &at, sizeof(to));
	memcpy(to, bytes, count);
}

void put_word(uint64_t address, uint64_t word)
{
	put(address, &word, sizeof(word));
}

uint64_t string_make(struct python_scene *scene, unsigned int kind, bool ascii, const void *text,
		     size_t length)
{
	uint32_t from = ascii ? scene->layout.string_bytes : scene->layout.string_wide_bytes;
	uint64_t at = fake_memory(scene, from + (length + 1) * kind);
	uint32_t state = kind << 2 | 0x20 | (ascii ? 0x40 : 0);

	put_word(at + 8, scene->string_type);
	put_word(at + scene->layout.string_length, length);
	put(at + scene->layout.string_state, &state, sizeof(state));
	put(at + from, text, length * kind);
	return at;
}

uint64_t text_make(struct python_scene *scene, const char *text)
{
	return string_make(scene, 1, true, text, strlen(text));
}

uint64_t code_make(struct python_scene *scene, uint64_t name, uint64_t file, int32_t first_line)
{
	/* eight units without a change, eight of the next line */
	static const uint8_t lines[] = {0x87, 0x00, 0xdf, 0x00, 0x00};
	const struct python_layout *layout = &scene->layout;
	uint64_t table = fake_memory(scene, layout->bytes_bytes + sizeof(lines));
	uint64_t at = fake_memory(scene, layout->code_bytes + 32);

	put_word(table + layout->bytes_length, sizeof(lines));
	put(table + layout->bytes_bytes, lines, sizeof(lines));
	put_word(at + 8, scene->code_type);
	put_word(at + layout->code_name, name);
	put_word(at + layout->code_file, file);
	put_word(at + layout->code_lines, table);
	put(at + layout->code_first_line, &first_line, sizeof(first_line));
	return at;
}

uint64_t function_make(struct python_scene *scene, const char *name)
{
	return code_make(scene, text_make(scene, name), text_make(scene, "/srv/app/x.py"), 10);
}

void frame_put(struct python_scene *scene, uint64_t at, uint64_t code, uint64_t previous,
	       uint8_t owner)
{
	put_word(at + scene->layout.frame_code, code | (scene->version == V3_14));
	put_word(at + scene->layout.frame_previous, previous);
	put_word(at + scene->layout.frame_instruction,
		 code + scene->layout.code_bytes + INSTRUCTION);
	put(at + scene->layout.frame_owner, &owner, 1);
}

uint64_t frame_make(struct python_scene *scene, uint64_t code, uint64_t previous)
{
	uint64_t at = fake_memory(scene, 96);

	frame_put(scene, at, code, previous, 0);
	return at;
}

uint64_t stack_at(const struct python_scene *scene, size_t word)
{
	return (uintptr_t)&scene->stack[word];
}

void head_fill(uint8_t *head, uint64_t version)
{
	static const struct {
		uint16_t at_3_13, at_3_14, value;
	} slots[] = {
		{40, 40, 728},	 {64, 64, 80},	  {72, 72, 88},	   {168, 192, 8},   {176, 200, 16},
		{184, 208, 72},	 {200, 224, 160}, {232, 256, 8},   {240, 264, 0},   {248, 272, 56},
		{264, 288, 70},	 {280, 320, 112}, {296, 336, 128}, {304, 344, 136}, {312, 352, 68},
		{344, 384, 200}, {520, 600, 16},  {528, 608, 32},  {544, 624, 32},  {552, 632, 16},
		{560, 640, 40},	 {112, 120, 96},  {120, 128, 400}, {136, 144, 416}, {144, 152, 408},
		{0, 296, 80},	 {0, 424, 24},	  {0, 440, 168},   {0, 504, 24},    {0, 512, 40},
		{0, 520, 32},	 {0, 576, 16},	  {0, 584, 24},	   {0, 680, 72},    {0, 688, 67},
		{0, 704, 8},
	};

	memset(head, 0, PYTHON_RUNTIME_HEAD_BYTES);
	memcpy(head, "xdebugpy", 8);
	memcpy(head + 8, &version, sizeof(version));
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		uint16_t at = version == V3_14 ? slots[i].at_3_14 : slots[i].at_3_13;

		if (at) /* the version has it */
			memcpy(head + at, &slots[i].value, sizeof(slots[i].value));
	}
}

void python_scene_make(struct python_scene *scene, uint64_t version)
{
	uint8_t head[PYTHON_RUNTIME_HEAD_BYTES];
	pid_t tid = (pid_t)syscall(SYS_gettid);

	memset(scene, 0, sizeof(*scene));
	scene->version = version;
	head_fill(head, version);
	assert_true(python_layout_get(&scene->layout, version, head));
	scene->code_type = fake_memory(scene, 16);
	scene->string_type = fake_memory(scene, 16);
	scene->runtime = fake_memory(scene, sizeof(head));
	if (!scene->layout.has_cframe)
		put(scene->runtime, head, sizeof(head));
	scene->interpreter = fake_memory(scene, 512);
	scene->state = fake_memory(scene, 256);
	put_word(scene->runtime + scene->layout.runtime_interpreters, scene->interpreter);
	put_word(scene->interpreter + scene->layout.interpreter_threads, scene->state);
	put_word(scene->state + scene->layout.thread_interpreter, scene->interpreter);
	put_word(scene->state + scene->layout.thread_native_id, (uint64_t)tid);
	/* the file's addresses are those in memory, less 4096 */
	scene->module = (struct module){.fd = -1, .has_exports = true};
	scene->module.exports.python[MODULE_PYTHON_RUNTIME] = scene->runtime - 4096;
	scene->module.exports.python[MODULE_PYTHON_VERSION] = (uintptr_t)&scene->version - 4096;
	scene->module.exports.python[MODULE_PYTHON_CODE] = scene->code_type - 4096;
	scene->module.exports.python[MODULE_PYTHON_STRING] = scene->string_type - 4096;
	scene->modules.modules[0] = &scene->module;
	scene->modules.count = 1;
	scene->thread = (struct stack_thread){tid, tid, 1, clock_monotonic_ns(), 0};
	thread_memory_init(&scene->memory, "/proc", false, 65536);
	runtime_service_clear();
	python_frames_init(&scene->python, "/proc", &scene->modules, NULL);
	scene->python.reader.service = runtime_service;
}

void python_scene_done(struct python_scene *scene)
{
	python_frames_clear(&scene->python);
	thread_memory_done(&scene->memory);
}

void calls_make(struct python_scene *scene)
{
	bool has_cframe = scene->layout.has_cframe, first = scene->layout.has_is_entry;
	uint64_t mark_inner = stack_at(scene, 12), mark_outer = stack_at(scene, 28);
	uint64_t main_frame = 0, outer, inner;
	const uint8_t yes = 1;

	if (!first) /* the outermost frames are not within another */
		frame_put(scene, mark_outer, 0, 0, 3);
	main_frame = frame_make(scene, function_make(scene, "main"), first ? 0 : mark_outer);
	if (!first)
		frame_put(scene, mark_inner, 0, main_frame, 3);
	outer = frame_make(scene, function_make(scene, "outer"), first ? main_frame : mark_inner);
	inner = frame_make(scene, function_make(scene, "Some.inner"), outer);
	if (first) {
		put(main_frame + scene->layout.frame_is_entry, &yes, 1);
		put(outer + scene->layout.frame_is_entry, &yes, 1);
		put_word(mark_inner + scene->layout.cframe_frame, inner);
		put_word(mark_inner + scene->layout.cframe_previous, mark_outer);
		put_word(mark_outer + scene->layout.cframe_frame, main_frame);
		put_word(scene->state + scene->layout.thread_frame, mark_inner);
	} else if (has_cframe) {
		scene->cframe = fake_memory(scene, 16);
		put_word(scene->cframe + scene->layout.cframe_frame, inner);
		put_word(scene->state + scene->layout.thread_frame, scene->cframe);
	} else {
		put_word(scene->state + scene->layout.thread_frame, inner);
	}
}
