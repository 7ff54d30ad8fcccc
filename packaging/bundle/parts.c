/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists that packaging/bundle/contents writes: the parts of a bundle, and their licences. */
#include "cli/bundle_parts.h"

#define TEXT_OF(name, file)                                                                       \
	__asm__(".section .rodata." #name ",\"a\"\n.global " #name "\n" #name ": .incbin \"" file \
		"\"\n.byte 0\n.previous")

TEXT_OF(bundle_parts, BUNDLE_FOLDER "/parts.txt");
TEXT_OF(bundle_licences, BUNDLE_FOLDER "/licences.txt");
