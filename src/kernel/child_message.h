/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages from the compile child to its parent, over a SOCK_SEQPACKET pair. */
#ifndef TSNAP_KERNEL_CHILD_MESSAGE_H
#define TSNAP_KERNEL_CHILD_MESSAGE_H

#include <stdint.h>

#include "base/error.h"
#include "kernel/field_table.h"

enum child_message_kind {
	MESSAGE_TRIED,	   /* text: a line on a type source */
	MESSAGE_LAYOUT,	   /* layout, text: the source */
	MESSAGE_REGISTERS, /* number: stack_registers, flag: marked, code: why not */
	MESSAGE_PIDS,	   /* number: the parent's tid to the kernel, flag: ids are translated */
	MESSAGE_PROGRAM,   /* number: the group, with a descriptor */
	MESSAGE_MAP,	   /* number: enum kernel_map, with a descriptor */
	MESSAGE_ERROR,	   /* text, code: errno, number: exit code */
	MESSAGE_DONE,
};

struct child_message {
	enum child_message_kind kind;
	int32_t code;
	uint32_t number;
	uint32_t flag;
	struct field_layout layout;
	char text[ERROR_LINE_SIZE];
};

/* Sends a message. descriptor: -1 for none. 0, or -errno with e. */
int child_message_send(int socket, const struct child_message *message, int descriptor,
		       struct error *e);
/* Receives a message. 1, 0 at the other side's end, or -errno (-EMFILE: this process may open no
 * more descriptors). *descriptor gets -1 or a descriptor to close. */
int child_message_receive(int socket, struct child_message *message, int *descriptor);

#endif
