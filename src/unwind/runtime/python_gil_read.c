/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a GIL for python_gil.h, in a parser. */
#include "unwind/runtime/python_gil.h"
#include "unwind/runtime/python_stacks.h"
#include "unwind/runtime/runtime_memory.h"

#define FRAMES_MAX 8 /* frames of no function, before one of a function */
#define OWNED_BY_STACK 3
#define POINTER_BITS (~(uint64_t)7)

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
		*code &= POINTER_BITS;
		if (layout->has_is_entry || owner < OWNED_BY_STACK)
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
	runtime_memory_again(memory);
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
	runtime_memory_copy(memory, address);
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
