/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/bcc_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BCC_FILE "libbcc.so.0"

int bcc_library_open(struct bcc_library *bcc, struct error *e)
{
	bcc->handle = dlopen(BCC_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!bcc->handle)
		return error_set(e, ENOENT, EXIT_HOST_CANNOT,
				 "%s can't be loaded (%s): install libbpfcc (Debian, Ubuntu: apt "
				 "install libbpfcc) or bcc (RHEL, Amazon: dnf install bcc; SUSE: "
				 "zypper install libbcc0)",
				 BCC_FILE, dlerror());
#define BCC_LOAD(name)                                        \
	*(void **)&bcc->name = dlsym(bcc->handle, #name);     \
	if (!bcc->name)                                       \
		return error_set(e, ENOENT, EXIT_HOST_CANNOT, \
				 "%s has no %s: it is older than 0.18", BCC_FILE, #name);
	BCC_CALLS(BCC_LOAD)
#undef BCC_LOAD
	return 0;
}

void bcc_library_find(char *file, size_t size)
{
	/* libbcc_bpf comes from the same package and is linked: it lies in the same folder */
	char path[PATH_MAX], real[PATH_MAX];
	const char *slash;
	Dl_info info;
	void *symbol = dlsym(RTLD_DEFAULT, "bpf_attach_raw_tracepoint");

	file[0] = 0;
	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - info.dli_fname) : 0,
		 info.dli_fname, BCC_FILE);
	if (!realpath(path, real))
		return;
	snprintf(file, size, "%s", strrchr(real, '/') + 1);
}
