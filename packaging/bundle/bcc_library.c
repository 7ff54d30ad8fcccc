/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel/bcc_library.h for a bundle, which has libbcc and LLVM in the program itself. Nothing is
 * loaded: a static program can't load what was linked with the host's C library.
 */
#include "kernel/bcc_library.h"

#include <bcc/bcc_proc.h>
#include <bcc/bcc_version.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

/* Functions by which objects of C++ are made at the start of a program: those of libbcc, clang and
 * LLVM (init.ld). */
extern void (*const bcc_init_begin[])(void);
extern void (*const bcc_init_end[])(void);

/* of llvm-c/Support.h */
void LLVMParseCommandLineOptions(int count, const char *const *options, const char *overview);

/* libbcc's parts for native code, by which it would read and write the values of maps as text, are
 * replaced by these four: tsnap needs none, and LLVM's part for this CPU is left out of the
 * program. */
bool native_code_wanted(void) __asm__("_ZN4ebpf28bpf_module_rw_engine_enabledEv");
void native_code_begin(void *module) __asm__("_ZN4ebpf9BPFModule20initialize_rw_engineEv");
void native_code_end(void *module) __asm__("_ZN4ebpf9BPFModule17cleanup_rw_engineEv");
int native_code_add(void *module) __asm__("_ZN4ebpf9BPFModule8annotateEv");

bool native_code_wanted(void)
{
	return false;
}

void native_code_begin(void *module)
{
	(void)module;
}

void native_code_end(void *module)
{
	(void)module;
}

int native_code_add(void *module)
{
	(void)module;
	return -1;
}

/* Replaces libbcc's own function, as src/kernel/bcc_library.c does, and for the same reason. */
int bcc_procutils_each_ksym(bcc_procutils_ksymcb callback, void *payload)
{
	callback("bpf_probe_read_kernel", "kernel", 1, payload);
	callback("bpf_probe_read_user", "kernel", 2, payload);
	return 0;
}

/* libdw and LLVM would load more libraries, if there were any: the host's, linked with its C
 * library, which may be another one than the program's. LLVM also asks for the program itself (no
 * file), and looks for nothing in it. */
void *dlopen(const char *file, int flags)
{
	static char program;

	(void)flags;
	return file ? NULL : &program;
}

void *dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return 0;
}

char *dlerror(void)
{
	static char words[] = "tsnap's bundle loads no libraries";

	return words;
}

int bcc_library_open(struct bcc_library *bcc, struct error *e)
{
	static bool begun;

	(void)e;
	if (!begun)
		for (void (*const *each)(void) = bcc_init_begin; each < bcc_init_end; each++)
			(*each)();
	begun = true;
#define BCC_TAKE(name) bcc->name = name;
	BCC_CALLS(BCC_TAKE)
#undef BCC_TAKE
	return 0;
}

void bcc_library_keep_order(const struct bcc_library *bcc)
{
	static const char *const options[] = {"tsnap", "-disable-block-placement",
					      "-enable-tail-merge=false"};
	static bool kept;

	(void)bcc;
	if (!kept) /* LLVM takes the option once */
		LLVMParseCommandLineOptions(sizeof(options) / sizeof(options[0]), options, NULL);
	kept = true;
}

void bcc_library_find(char *file, size_t size)
{
	snprintf(file, size, "%s, in this program", LIBBCC_VERSION);
}
