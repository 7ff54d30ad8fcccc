/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frame_source: malicious unwind tables */
#include "unit.h"
#include "base/memory.h"
#include "unwind/frame_source.h"

#include <dwarf.h>
#include <elf.h>

#define TEXT 0x200u
#define TEXT_BYTES 0x80u
#define HDR 0x300u
#define FRAMES 0x400u

/* Bytes of a table. */
struct bytes {
	uint8_t *at;
	size_t count, capacity;
};

static void put(struct bytes *to, const void *bytes, size_t count)
{
	to->at = memory_grow(to->at, &to->capacity, to->count + count, 1);
	memcpy(to->at + to->count, bytes, count);
	to->count += count;
}

static void put_u32(struct bytes *to, uint32_t number)
{
	put(to, &number, sizeof(number));
}

static void put_u8(struct bytes *to, uint8_t number)
{
	put(to, &number, sizeof(number));
}

/* Adds an entry of .eh_frame: its length, and the body, filled up to words with DW_CFA_nop. */
static void put_entry(struct bytes *to, const struct bytes *body)
{
	uint32_t padding = (uint32_t)(-body->count & 3);

	put_u32(to, (uint32_t)body->count + padding);
	put(to, body->at, body->count);
	put(to, "\0\0", padding);
}

/* Instructions of a CIE or a FDE. */
struct program {
	const void *bytes;
	size_t count;
};

static void put_cie(struct bytes *to, const struct machine *machine, const struct program *more)
{
	struct bytes body = {0};

	put(&body, "\0\0\0\0\1zR\0\1\x78", 10);
	put_u8(&body, machine->ra);
	put(&body, "\1\x1b", 2); /* encoding of FDEs: pcrel, sdata4 */
	put_u8(&body, DW_CFA_def_cfa);
	put_u8(&body, machine->sp);
	put_u8(&body, 16);
	put_u8(&body, DW_CFA_offset | (machine->ra & 0x3f));
	put_u8(&body, 1);
	put(&body, more->bytes, more->count);
	put_entry(to, &body);
	free(body.at);
}

static void put_fde(struct bytes *to, const struct program *program)
{
	struct bytes body = {0};
	uint32_t at = FRAMES + (uint32_t)to->count + 4;

	put_u32(&body, at - FRAMES);
	put_u32(&body, TEXT - (at + 4));
	put_u32(&body, TEXT_BYTES);
	put_u8(&body, 0);
	put(&body, program->bytes, program->count);
	put_entry(to, &body);
	free(body.at);
}

enum shape {
	SEARCHED,  /* with a search table */
	TABLELESS, /* .eh_frame_hdr, but no table in it */
	SHAPE_COUNT,
};

/* True if the only function of a file with these programs has a row. */
static bool has_row(enum shape shape, const struct program *cie, const struct program *fde,
		    size_t fde_count)
{
	const struct machine *machine = machine_of(false);
	Elf64_Ehdr header = {.e_machine = machine->elf,
			     .e_type = ET_DYN,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_ehsize = sizeof(header),
			     .e_phnum = 2};
	Elf64_Phdr segments[2] = {
		{.p_type = PT_LOAD},
		{.p_type = PT_GNU_EH_FRAME, .p_offset = HDR, .p_vaddr = HDR, .p_filesz = 20}};
	struct bytes frames = {0};
	static struct frame_operations operations;
	struct frame_source *source;
	struct frame_row row;
	struct elf_file elf;
	uint32_t fde_at;
	uint8_t *image;
	bool found;

	put_cie(&frames, machine, cie);
	fde_at = FRAMES + (uint32_t)frames.count;
	for (size_t i = 0; i < fde_count; i++)
		put_fde(&frames, fde);
	put_u32(&frames, 0);
	segments[0].p_filesz = segments[0].p_memsz = FRAMES + frames.count;
	memcpy(header.e_ident, ELFMAG "\2\1\1", 7);
	image = memory_get(FRAMES + frames.count);
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), segments, sizeof(segments));
	memcpy(image + HDR, shape == SEARCHED ? "\1\x1b\3\x3b" : "\1\x1b\xff\xff", 4);
	memcpy(image + HDR + 4, (uint32_t[]){FRAMES - (HDR + 4), 1, TEXT - HDR, fde_at - HDR}, 16);
	memcpy(image + FRAMES, frames.at, frames.count);
	assert_int_equal(elf_file_read(&elf, -1, (char *)image, FRAMES + frames.count), 0);
	operations.count = 0;
	source = frame_source_open(&elf);
	found = source && !frame_source_row(source, machine, &operations, TEXT + 8, &row);
	assert_true(!source ||
		    frame_source_row(source, machine, &operations, TEXT + TEXT_BYTES, &row));
	frame_source_close(source);
	free(frames.at);
	free(image);
	return found;
}

static const struct program none = {"", 0};

static void assert_rows(const struct program *program, bool wanted)
{
	for (enum shape shape = 0; shape < SHAPE_COUNT; shape++) {
		assert_int_equal(has_row(shape, &none, program, 1), wanted);
		assert_int_equal(has_row(shape, program, &none, 1), wanted);
	}
}

static void plain_programs_run(void **state)
{
	static const uint8_t push[] = {DW_CFA_def_cfa_offset, 24, DW_CFA_remember_state,
				       DW_CFA_def_cfa_offset, 32, DW_CFA_restore_state};

	assert_rows(&none, true);
	assert_rows(&(struct program){push, sizeof(push)}, true);
}

/* Bounds on register numbers: a rule for register 120 000 000 took 4 GB. */
static void registers_are_bounded(void **state)
{
	static const uint8_t codes[] = {DW_CFA_offset_extended, DW_CFA_undefined, DW_CFA_same_value,
					DW_CFA_restore_extended, DW_CFA_val_offset};
	uint8_t far[6] = {0, 0x80, 0x9c, 0x9c, 0x39, 1}, near[] = {0, 0x7f, 1};

	for (size_t i = 0; i < sizeof(codes); i++) {
		size_t two = codes[i] == DW_CFA_offset_extended || codes[i] == DW_CFA_val_offset;

		far[0] = near[0] = codes[i];
		assert_rows(&(struct program){far, sizeof(far) - !two}, false);
		assert_true(frame_program_fits(near, near + 2 + two));
		assert_false(frame_program_fits(far, far + 5 + two));
	}
}

static void states_are_bounded(void **state)
{
	uint8_t states[2 * FRAME_PROGRAM_STATES + 2];

	memset(states, DW_CFA_remember_state, sizeof(states) / 2);
	memset(states + sizeof(states) / 2, DW_CFA_restore_state, sizeof(states) / 2);
	assert_rows(&(struct program){states, sizeof(states)}, false);
	assert_rows(&(struct program){states + 1, sizeof(states) - 2}, true);
	assert_false(
		frame_program_fits(states + sizeof(states) / 2, states + sizeof(states) / 2 + 1));
}

static void programs_are_bounded(void **state)
{
	struct program nops = {memory_get(FRAME_PROGRAM_BYTES), FRAME_PROGRAM_BYTES - 16};
	struct bytes expression = {0};

	assert_rows(&nops, true);
	nops.count = FRAME_PROGRAM_BYTES;
	assert_rows(&nops, false);		 /* the CIE has some more nops, the FDE is padded */
	put(&expression, "\x10\x03\x81\x08", 4); /* DW_CFA_expression, of 1025 bytes */
	put(&expression, nops.bytes, FRAME_PROGRAM_EXPRESSION_BYTES + 1);
	assert_false(frame_program_fits(expression.at, expression.at + expression.count));
	expression.at[2] = 0x80;
	assert_true(frame_program_fits(expression.at, expression.at + expression.count - 1));
	free(expression.at);
	free((void *)nops.bytes);
}

/* Programs cut off anywhere: nothing beyond the end is read (sanitizers check that), and no half
 * instruction is run. */
static void programs_end_where_they_end(void **state)
{
	static const uint8_t program[] = {
		DW_CFA_advance_loc4, 1, 2, 3,	 4,    DW_CFA_def_cfa,	  0x87, 0x01, 0x90, 0x01,
		DW_CFA_expression,   3, 2, 0x12, 0x06, DW_CFA_offset | 3, 0x81, 0x01, 0x3f};
	static const uint8_t ends[] = {0, 5, 10, 15, 18};
	size_t end = 0;

	for (size_t i = 0; i <= sizeof(program); i++) {
		uint8_t *part = memory_get(i);

		memcpy(part, program, i);
		assert_int_equal(frame_program_fits(part, part + i),
				 end < sizeof(ends) && ends[end] == i);
		end += end < sizeof(ends) && ends[end] == i;
		free(part);
	}
	assert_int_equal(end, sizeof(ends));
}

/* Bound on entries: without a search table all of them are looked at, up to a limit. */
static void entries_are_bounded(void **state)
{
	assert_true(has_row(TABLELESS, &none, &none, 1000));
	assert_false(has_row(TABLELESS, &none, &none, 140000));
	assert_true(has_row(SEARCHED, &none, &none, 140000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_programs_run),
		cmocka_unit_test(registers_are_bounded),
		cmocka_unit_test(states_are_bounded),
		cmocka_unit_test(programs_are_bounded),
		cmocka_unit_test(programs_end_where_they_end),
		cmocka_unit_test(entries_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
