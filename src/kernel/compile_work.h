/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work of the compile child; runs in the child only. */
#ifndef TSNAP_KERNEL_COMPILE_WORK_H
#define TSNAP_KERNEL_COMPILE_WORK_H

#include "base/error.h"
#include "kernel/compile_request.h"

/* Sends what it finds and loads to socket. output: the descriptor that standard output and error go
 * to. 0, or -errno with e filled. */
int compile_work(const struct compile_request *request, const char *work_dir, int socket,
		 int output, struct error *e);

#endif
