/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lookup/comm.h"
#include "lookup/proc.h"
#include "base/names.h"

const char *comm_read(const char *root, int64_t tid)
{
	char comm[PROC_COMM_SIZE + 1];
	ssize_t length = proc_file_read(root, 0, tid, "comm", comm, sizeof(comm));

	if (length > 0 && comm[length - 1] == '\n')
		length--;
	return length > 0 ? name_of(comm, length) : NULL;
}
