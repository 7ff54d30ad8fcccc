/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/module_read.h"
#include "unwind/file_request.h"
#include "unwind/machine.h"

#include <errno.h>

/* True if another parser is to get the request. */
static bool is_put_off(struct module_read *read, int err)
{
	if (err == -EPIPE)
		read->ended++;
	return err == -EAGAIN || (err == -EPIPE && read->ended < FILE_ENDS_MAX);
}

int module_read_head(struct module_read *read, struct parser *parser, struct elf_file *elf)
{
	int err = parser ? file_head_request(parser, elf) : -ECHILD;

	if (err == -ECHILD) {
		elf->machine = machine_of(false)->elf;
		elf->segment_count = 1;
		elf->segments[0] = (struct elf_segment){0, elf->bytes, 0, elf->bytes, true};
		return 0;
	}
	return err && is_put_off(read, err) ? -EAGAIN : err ? -ENOEXEC : 0;
}

const struct runtime_exports *module_read_exports(struct module_read *read, struct parser *parser,
						  const struct elf_file *elf)
{
	int err;

	if (read->has_exports || elf->fd < 0)
		return &read->exports;
	err = parser ? file_exports_request(parser, elf, &read->exports) : -ECHILD;
	read->has_exports = !err || !is_put_off(read, err);
	return &read->exports;
}

int module_read_returns(struct module_read *read, struct parser *parser, const struct elf_file *elf,
			uint64_t address, bool exact, struct file_returns_answer *answer)
{
	int err = parser && read->ended < FILE_ENDS_MAX
			  ? file_returns_request(parser, elf, address, exact, answer)
			  : -ECHILD;

	return err && is_put_off(read, err) ? -EAGAIN : err;
}
