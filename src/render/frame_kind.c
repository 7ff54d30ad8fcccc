/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/frame_kind.h"

#include <string.h>

/* Table of kinds; the last one has no mark and matches all other frames. */
const struct frame_kind frame_kinds[] = {
	{FRAME_ROOT, false, false, "group", {0xc9c7c1, 0xbcbab4}},
	{FRAME_SEPARATOR, true, true, "waker above", {0xa9a9a9, 0xa9a9a9}},
	{FRAME_WAKER, false, true, "waker", {0x8fd0cd, 0x6dbcb8}},
	{FRAME_KERNEL, false, true, "kernel", {0x8fb8de, 0x6c9fd0}},
	{FRAME_SYSCALL, false, false, "system call", {0xc3aee0, 0xab91d2}},
	{"_[j]", false, true, "JIT", {0x9bd08a, 0x78bb65}},
	{"_[p]", false, false, "Python", {0xd9b3cf, 0xc893ba}},
	{"_[l]", false, false, "library", {0xf3d973, 0xe6c54a}},
	{"_[i]", false, true, "inlined", {0xf6b99a, 0xee9f7a}},
	{"", false, true, "program", {0xf5a25d, 0xe5823a}},
};

const size_t frame_kind_count = sizeof(frame_kinds) / sizeof(frame_kinds[0]);

const struct frame_kind *frame_kind_of(const char *name, size_t length)
{
	const struct frame_kind *kind = frame_kinds;

	for (;; kind++) {
		size_t mark = strlen(kind->mark);

		if (kind->whole ? length == mark && !memcmp(name, kind->mark, mark)
				: length >= mark && !memcmp(name + length - mark, kind->mark, mark))
			return kind;
	}
}

size_t frame_kind_plain(const struct frame_kind *kind, size_t length)
{
	size_t mark = strlen(kind->mark);

	/* a frame must have a name */
	return kind->whole || length == mark ? length : length - mark;
}
