/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The short-lived child that finds kernel types, compiles with libbcc, loads the programs and hands
 * their descriptors over. The parent never touches LLVM and stays small; whatever the child prints
 * is caught; whatever happens to it becomes one error.
 */
#ifndef TSNAP_KERNEL_COMPILE_CHILD_H
#define TSNAP_KERNEL_COMPILE_CHILD_H

#include "base/error.h"
#include "kernel/compile_request.h"

/* Forks, waits, collects. 0: *result is the caller's to compile_result_done(), also with -1
 * descriptors where the plan has no such row; -EINTR when a signal came first; another -errno with
 * e filled. */
int compile_child_run(const struct compile_request *request, struct compile_result *result,
		      struct error *e);
void compile_result_init(struct compile_result *result, uint32_t threads_max); /* holds nothing */
void compile_result_done(struct compile_result *result);

#endif
