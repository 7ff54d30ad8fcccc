/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel/bcc_library.h for a bundle, which has libbcc and LLVM in the program itself, compressed
 * (pack.h). Nothing is loaded: a static program can't load what was linked with the host's C
 * library.
 */
#include "kernel/bcc_library.h"
#include "pack.h"

#include <bcc/bcc_proc.h>
#include <bcc/bcc_version.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Functions by which objects of C++ are made at the start of a program: those of libbcc, clang and
 * LLVM. These, and the places of what is compressed, are named in compiler.ld. */
extern void (*const bcc_init_begin[])(void);
extern void (*const bcc_init_end[])(void);
extern char bcc_rodata_begin[], bcc_text_begin[], bcc_text_end[];

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

/* Until it is unpacked, nobody reads or writes the compiler's place: so it is memory that counts
 * against no limit, and that mlock(2) does not fill. The kernel makes it writable at first. */
__attribute__((constructor)) static void place_reserve(void)
{
	extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
	const char *program = (const char *)&__ehdr_start;
	const Elf64_Phdr *segments = (const void *)(program + __ehdr_start.e_phoff);

	for (int i = 0; i < __ehdr_start.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && !segments[i].p_filesz &&
		    program + segments[i].p_vaddr == bcc_rodata_begin)
			mmap(bcc_rodata_begin, (size_t)(bcc_text_end - bcc_rodata_begin), PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Unpacks what lies at packed into memory, a file that nobody else sees, and maps that where the
 * program has its code; so no memory can be written to that is executed. 0, or an errno. */
static int pages_unpack(const char *packed, size_t packed_bytes, int memory)
{
	size_t bytes = (size_t)(bcc_text_end - bcc_rodata_begin);
	size_t rodata_bytes = (size_t)(bcc_text_begin - bcc_rodata_begin);
	char *to;
	bool whole;

	if (ftruncate(memory, (off_t)bytes))
		return errno;
	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
	if (to == MAP_FAILED)
		return errno;
	whole = ZSTD_decompress(to, bytes, packed, packed_bytes) == bytes;
	munmap(to, bytes);
	if (!whole)
		return EBADMSG;
	if (mmap(bcc_rodata_begin, rodata_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, memory, 0) ==
		    MAP_FAILED ||
	    mmap(bcc_text_begin, bytes - rodata_bytes, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED, memory, (off_t)rodata_bytes) == MAP_FAILED)
		return errno;
	return 0;
}

/* Unpacks the compiler from the program's file. 0, also for a program that was not packed, or an
 * errno. */
static int compiler_unpack(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), memory = -1, err = 0;
	struct pack_end end = {.packed_bytes = 0};
	char *packed = MAP_FAILED;
	struct stat stat;
	off_t at;

	if (file < 0 || fstat(file, &stat))
		err = errno;
	else if (pread(file, &end, sizeof(end), stat.st_size - (off_t)sizeof(end)) != sizeof(end))
		err = EIO;
	if (err || memcmp(end.magic, PACK_MAGIC, sizeof(end.magic)) != 0)
		goto out;
	at = (off_t)end.offset;
	packed = mmap(NULL, end.packed_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, at);
	memory = memfd_create("tsnap-compiler", MFD_CLOEXEC);
	if (packed == MAP_FAILED || memory < 0)
		err = errno;
	else
		err = pages_unpack(packed, end.packed_bytes, memory);
out:
	if (packed != MAP_FAILED)
		munmap(packed, end.packed_bytes);
	if (memory >= 0)
		close(memory);
	if (file >= 0)
		close(file);
	return err;
}

int bcc_library_open(struct bcc_library *bcc, struct error *e)
{
	static bool begun;
	int err = begun ? 0 : compiler_unpack();

	if (err == ENOMEM || err == EAGAIN)
		return error_set(e, ENOMEM, EXIT_HOST_CANNOT,
				 "the compiler in this program can't be unpacked: memory is short; "
				 "it needs about 150 MB for a moment: raise the limits (ulimit -v, "
				 "the container's or the service's)");
	if (err)
		return error_set(e, err, EXIT_HOST_CANNOT,
				 "the compiler in this program can't be unpacked: %s%s",
				 strerror(err), err == EBADMSG ? "; copy the program again" : "");
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

/* The compiler is no file of its own: the program's build id is also that of its compiler. */
void bcc_library_path(char *path)
{
	path[0] = '\0';
}

void bcc_library_find(char *file, size_t size)
{
	snprintf(file, size, "%s, in this program", LIBBCC_VERSION);
}
