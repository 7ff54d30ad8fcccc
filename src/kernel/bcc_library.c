/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/bcc_library.h"

#include <bcc/bcc_proc.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BCC_FILE "libbcc.so.0"

static bool opened;

/* Replaces libbcc_bpf's own function, which reads /proc/kallsyms. With every text that it compiles,
 * libbcc makes a table of all kernel symbols, in 0.1 s, and looks up these two: without them it
 * would write bpf_probe_read into the text (check_bpf_probe_read_kernel() in b_frontend_action.cc).
 * The text itself does that, where a trial found these helpers missing. A libbcc that does not look
 * for symbols here first (-Bsymbolic) works as before. */
int bcc_procutils_each_ksym(bcc_procutils_ksymcb callback, void *payload)
{
	int (*each)(bcc_procutils_ksymcb callback, void *payload);

	if (!opened) {
		*(void **)&each = dlsym(RTLD_NEXT, "bcc_procutils_each_ksym");
		return each ? each(callback, payload) : -1;
	}
	callback("bpf_probe_read_kernel", "kernel", 1, payload);
	callback("bpf_probe_read_user", "kernel", 2, payload);
	return 0;
}

/* The errno that words of dlerror() mean: glibc's dynamic linker gives none, and has words of its
 * own for want of memory. 0: not known. */
static int error_of_linker(const char *words)
{
	static const char *const signs[] = {"cannot allocate memory", "failed to map segment",
					    "cannot create shared object"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strstr(words, signs[i]))
			return ENOMEM;
	return error_of_words(words);
}

int bcc_library_open(struct bcc_library *bcc, struct error *e)
{
	const char *words;
	int err;

	bcc->handle = dlopen(BCC_FILE, RTLD_NOW | RTLD_LOCAL);
	words = bcc->handle ? "" : dlerror();
	err = error_of_linker(words);
	if (err == ENOMEM)
		return error_set(e, ENOMEM, EXIT_HOST_CANNOT,
				 "%s can't be loaded (%s): memory is short; it needs about 150 MB "
				 "for a moment, and 400 MB of addresses: raise the limits (ulimit "
				 "-v, the container's or the service's)",
				 BCC_FILE, words);
	if (err && err != ENOENT)
		return error_set(e, err, EXIT_FAILED, "%s can't be loaded (%s)", BCC_FILE, words);
	if (!bcc->handle)
		return error_set(e, ENOENT, EXIT_HOST_CANNOT,
				 "%s can't be loaded (%s): install libbpfcc (Debian, Ubuntu: apt "
				 "install libbpfcc) or bcc (RHEL, Amazon: dnf install bcc; SUSE: "
				 "zypper install libbcc0)",
				 BCC_FILE, words);
#define BCC_LOAD(name)                                        \
	*(void **)&bcc->name = dlsym(bcc->handle, #name);     \
	if (!bcc->name)                                       \
		return error_set(e, ENOENT, EXIT_HOST_CANNOT, \
				 "%s has no %s: it is older than 0.18", BCC_FILE, #name);
	BCC_CALLS(BCC_LOAD)
#undef BCC_LOAD
	opened = true;
	return 0;
}

void bcc_library_keep_order(const struct bcc_library *bcc)
{
	static const char *const options[] = {"tsnap", "-disable-block-placement",
					      "-enable-tail-merge=false"};
	static bool kept;
	void (*parse)(int count, const char *const *options, const char *overview);

	if (kept) /* LLVM takes the option once */
		return;
	kept = true;
	*(void **)&parse = dlsym(bcc->handle, "LLVMParseCommandLineOptions");
	if (parse)
		parse(sizeof(options) / sizeof(options[0]), options, NULL);
}

void bcc_library_path(char *real)
{
	/* libbcc_bpf comes from the same package and is linked: it lies in the same folder */
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;
	void *symbol = dlsym(RTLD_DEFAULT, "bpf_attach_raw_tracepoint");

	real[0] = 0;
	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - info.dli_fname) : 0,
		 info.dli_fname, BCC_FILE);
	if (!realpath(path, real))
		real[0] = 0;
}

void bcc_library_find(char *file, size_t size)
{
	char path[PATH_MAX];

	bcc_library_path(path);
	snprintf(file, size, "%s", *path ? strrchr(path, '/') + 1 : "");
}
