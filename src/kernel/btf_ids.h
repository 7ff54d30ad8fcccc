/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of types in the running kernel's BTF, for programs that name one when they are loaded. */
#ifndef TSNAP_KERNEL_BTF_IDS_H
#define TSNAP_KERNEL_BTF_IDS_H

#define KERNEL_BTF_PATH "/sys/kernel/btf/vmlinux"

/* BTF id of a tracepoint's arguments, for a program that wants them typed (5.5). -ENOENT: there is
 * no such tracepoint; else -errno. */
int btf_tracepoint_id(const char *event);
/* BTF id of an iterator over objects of a kind, such as "task" (5.8); errors as above. */
int btf_iterator_id(const char *of);

#endif
