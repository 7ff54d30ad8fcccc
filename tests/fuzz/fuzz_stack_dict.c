/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile dictionary of stacks: read, or refused with a message; its stacks are folded, and can
 * be written and read again. */
#include "fuzz_file.h"
#include "base/names.h"
#include "render/fold.h"
#include "recording/stack_dict.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define HASHES 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct frame_tree tree = {0}, again = {0};
	struct stack_dict *dict = NULL;
	struct text folded = {0};
	struct error e = {0};
	char path[FUZZ_PATH_SIZE];
	int fd = fuzz_file_make(bytes, length, path),
	    err = stack_dict_open(path, UINT64_MAX, &dict, &e);

	must(!err || e.line[0], "an error has words");
	for (int64_t hash = 0; dict && hash < HASHES * HASHES; hash++) {
		struct sample sample = *sample_absent();
		struct text printable = {0};

		sample.stack.ustack = hash % HASHES ? hash % HASHES : ABSENT;
		sample.stack.kstack = hash / HASHES ? hash / HASHES : ABSENT;
		sample.waker.ustack = sample.stack.ustack;
		sample.waker.kstack = sample.stack.kstack;
		stack_dict_fill(dict, &sample);
		text_add_printable(&printable, sample.stack.both ? sample.stack.both : "");
		fold_add_waker(&printable, sample.waker.stack, sample.waker.stack);
		frame_tree_add(&tree, text_string(&printable), PART_ON, 1);
		text_done(&printable);
	}
	frame_tree_sort(&tree);
	fold_write(&folded, &tree);
	must(!fold_read(&again, "own", text_string(&folded), PART_ON, &e), "it can be read");
	must(!dict || again.nodes[0].all[PART_ON] == HASHES * HASHES, "with all of its weight");
	stack_dict_free(dict);
	frame_tree_done(&tree);
	frame_tree_done(&again);
	text_done(&folded);
	error_done(&e);
	close(fd);
	names_clear();
	return 0;
}
