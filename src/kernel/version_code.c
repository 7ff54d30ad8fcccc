/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/version_code.h"
#include "kernel/elf_image.h"
#include "base/host_file.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define SIGNATURE_SIZE 128 /* more than /proc/version_signature has */

uint32_t version_code_of_vdso(const void *image, size_t size)
{
	struct elf_part note;
	uint32_t code = 0;

	/* arch/x86/entry/vdso/vdso-note.S, arch/arm64/kernel/vdso/note.S */
	if (!elf_note_find(image, size, "Linux", 0, &note) && note.size == sizeof(code))
		memcpy(&code, note.bytes, sizeof(code));
	return code;
}

uint32_t version_code_of_release(const char *release)
{
	unsigned int major = 0, minor = 0, patch = 0;

	if (sscanf(release, "%3u.%3u.%3u", &major, &minor, &patch) < 2)
		return 0;
	/* KERNEL_VERSION() has a byte for the last number; 4.9 and 4.14 went beyond */
	return major << 16 | (minor & 255) << 8 | (patch > 255 ? 255 : patch);
}

uint32_t version_code_of_signature(const char *text)
{
	const char *last = strrchr(text, ' ');

	return last ? version_code_of_release(last + 1) : 0;
}

/* Returns the size of the vDSO, by its segments; the kernel maps it whole. */
static size_t vdso_size(const Elf64_Ehdr *vdso)
{
	const Elf64_Phdr *segments = (const void *)((const unsigned char *)vdso + vdso->e_phoff);
	size_t size = 0;

	for (size_t i = 0; i < vdso->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_offset + segments[i].p_filesz > size)
			size = segments[i].p_offset + segments[i].p_filesz;
	return size;
}

uint32_t version_code_read(const char *release)
{
	const Elf64_Ehdr *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	char text[SIGNATURE_SIZE];
	uint32_t code = vdso ? version_code_of_vdso(vdso, vdso_size(vdso)) : 0;

	if (!code && host_file_read("/proc/version_signature", text, sizeof(text)) > 0)
		code = version_code_of_signature(text);
	return code ? code : version_code_of_release(release);
}
