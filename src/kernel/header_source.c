/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/type_source.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a function per field that returns its offset: the compiled program's first instruction
 * holds it. */
static void offsets_text(const struct field_layout *layout, struct text *text)
{
	text_add_string(
		text,
		"#include <linux/sched.h>\n#include <linux/cred.h>\n#include <linux/pid.h>\n");
	if (layout->sets & FIELDS_BLOCK)
		text_add_string(text, "#include <linux/blk-mq.h>\n");
	for (size_t i = 0; i < field_count; i++)
		if (field_there(layout, i))
			text_add_format(text,
					"int ts_offset_%zu(void *ctx)\n"
					"{ return __builtin_offsetof(struct %s, %s); }\n",
					i, field_rows[i].of, field_rows[i].names[layout->name[i]]);
}

static int offset_of_program(const struct type_request *request, void *module, size_t field,
			     uint32_t *offset)
{
	char name[32];
	const struct bpf_insn *insn;

	snprintf(name, sizeof(name), "ts_offset_%zu", field);
	insn = request->bcc->bpf_function_start(module, name);
	if (!insn || request->bcc->bpf_function_size(module, name) < 2 * sizeof(*insn))
		return -EINVAL;
	if (BPF_OP(insn->code) != BPF_MOV || BPF_SRC(insn->code) != BPF_K || insn->dst_reg ||
	    insn->imm < 0)
		return -EINVAL;
	*offset = (uint32_t)insn->imm;
	return 0;
}

/* Reads the output from the given offset on, at most size - 1 bytes. */
static void output_read(int output, off_t from, char *text, size_t size)
{
	ssize_t got;

	fflush(NULL);
	got = pread(output, text, size - 1, from);
	text[got > 0 ? got : 0] = 0;
}

/* Clang's words are "no member named 'state' in 'task_struct'", or "in 'struct task_struct'". */
static bool member_is_missing(const char *printed, const char *of, const char *member)
{
	static const char *const kinds[] = {"", "struct "};
	char words[160];

	for (size_t i = 0; i < 2; i++) {
		snprintf(words, sizeof(words), "no member named '%s' in '%s%s'", member, kinds[i],
			 of);
		if (strstr(printed, words))
			return true;
	}
	return false;
}

/* Replaces the name of each member that the headers lack by its older name, or marks it as lacking.
 * True if there was any. */
static bool names_step(const char *printed, struct field_layout *layout)
{
	bool stepped = false;

	for (size_t i = 0; i < field_count; i++) {
		const struct field_row *row = &field_rows[i];
		unsigned char n = layout->name[i];

		if (!field_there(layout, i) || !member_is_missing(printed, row->of, row->names[n]))
			continue;
		if (n + 1 < FIELD_NAMES_MAX && row->names[n + 1])
			layout->name[i]++;
		else if (row->sets)
			layout->lacking[i] = true;
		else
			continue;
		stepped = true;
	}
	return stepped;
}

static void *offsets_compile(const struct type_request *request, struct field_layout *layout)
{
	static char printed[65536];
	/* 7.x needs -fms-extensions: without it layouts are silently wrong */
	const char *flags[] = {"-fms-extensions", "-Wno-everything"};
	void *module = NULL;

	do {
		struct text text = {0};
		off_t from = lseek(request->output, 0, SEEK_END);

		offsets_text(layout, &text);
		module = request->bcc->bpf_module_create_c_from_string(text_string(&text), 0, flags,
								       2, true, NULL);
		text_done(&text);
		output_read(request->output, from, printed, sizeof(printed));
	} while (!module && names_step(printed, layout));
	return module;
}

int header_layout_read(const struct type_request *request, const char *tree,
		       struct field_layout *layout, struct error *e)
{
	struct field_layout read = {.sets = layout->sets};
	int result = 0;
	void *module;

	read.lacking[field_index("rq", "cpu")] = true; /* kernel/sched/sched.h is not installed */
	if (tree)
		setenv("BCC_KERNEL_SOURCE", tree, 1);
	else
		unsetenv("BCC_KERNEL_SOURCE");
	module = offsets_compile(request, &read);
	if (!module && read.sets) { /* sets need more headers, which may be beyond this libbcc */
		read = (struct field_layout){0};
		module = offsets_compile(request, &read);
	}
	if (!module)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "libbcc can't compile the kernel headers%s%s: they are of another "
				 "kernel or newer than this libbcc knows (-v shows its output)",
				 tree ? " in " : "", tree ? tree : "");
	for (size_t i = 0; !result && i < field_count; i++)
		if (field_there(&read, i))
			result = offset_of_program(request, module, i, &read.offset[i]);
	request->bcc->bpf_module_destroy(module);
	if (result)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "the compiled kernel headers gave no usable offsets");
	*layout = read;
	return 0;
}
