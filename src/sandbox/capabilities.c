/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sandbox/capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* capabilities that are newer than the headers of some distributions */
#define PERFMON 38
#define BPF 39
#define CHECKPOINT_RESTORE 40
#define CAPABILITIES 64

struct capability_row {
	int number;
	const char *name;
	unsigned int uses; /* uses that need it */
};

/* clang-format off */
static const struct capability_row rows[] = {
	{BPF,			 "CAP_BPF",		   SANDBOX_SAMPLES},
	{PERFMON,		 "CAP_PERFMON",		   SANDBOX_SAMPLES},
	{CAP_SYS_PTRACE,	 "CAP_SYS_PTRACE",	   SANDBOX_SAMPLES},
	{CAP_DAC_READ_SEARCH,	 "CAP_DAC_READ_SEARCH",	   SANDBOX_SAMPLES | SANDBOX_REPLAYS},
	{CAP_SYSLOG,		 "CAP_SYSLOG",		   SANDBOX_SAMPLES}, /* addresses in kallsyms */
	{CAP_SYS_NICE,		 "CAP_SYS_NICE",	   SANDBOX_SAMPLES},
	{CAP_IPC_LOCK,		 "CAP_IPC_LOCK",	   SANDBOX_SAMPLES}, /* perf's ring buffers */
	{CHECKPOINT_RESTORE,	 "CAP_CHECKPOINT_RESTORE", SANDBOX_SAMPLES}, /* map_files */
	{CAP_SYS_ADMIN,		 "CAP_SYS_ADMIN",
	 SANDBOX_OLD_KERNEL | SANDBOX_STACKS | SANDBOX_NAMESPACES},
	{CAP_SYS_RESOURCE,	 "CAP_SYS_RESOURCE",	   SANDBOX_OLD_KERNEL}, /* maps count as locked */
	{CAP_SETUID,		 "CAP_SETUID",		   SANDBOX_IDS},
	{CAP_DAC_OVERRIDE,	 "CAP_DAC_OVERRIDE",	   SANDBOX_WRITES},
	/* since 6.14 cachestat(2) is for owners, and those who may write */
	{CAP_FOWNER,		 "CAP_FOWNER",		   SANDBOX_WRITES | SANDBOX_CACHE},
	{CAP_CHOWN,		 "CAP_CHOWN",		   SANDBOX_WRITES}, /* the group of recordings */
};
/* clang-format on */

unsigned int sandbox_kernel_use(void)
{
	char text[16] = "";
	int fd = open("/proc/sys/kernel/cap_last_cap", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return got > 0 && atoi(text) >= BPF ? 0 : SANDBOX_OLD_KERNEL;
}

/* Wider capabilities that the kernel takes as well, and that containers are given. */
static const struct {
	int number, instead;
} substitutes[] = {
	{BPF, CAP_SYS_ADMIN},
	{PERFMON, CAP_SYS_ADMIN},
	{CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE},
};

uint64_t sandbox_capabilities(unsigned int uses, uint64_t held)
{
	uint64_t kept = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].uses & uses)
			kept |= 1ull << rows[i].number;
	for (size_t i = 0; i < sizeof(substitutes) / sizeof(substitutes[0]); i++)
		if ((kept & ~held) >> substitutes[i].number & 1)
			kept |= 1ull << substitutes[i].instead;
	return kept & held;
}

void sandbox_capabilities_add(struct text *text, uint64_t capabilities)
{
	const char *before = "";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!(capabilities >> rows[i].number & 1))
			continue;
		text_add_format(text, "%s%s", before, rows[i].name);
		before = ", ";
	}
	if (!*before)
		text_add_string(text, "none");
}

static struct __user_cap_header_struct header(void)
{
	return (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
}

int capabilities_held(uint64_t *held)
{
	struct __user_cap_header_struct of = header();
	struct __user_cap_data_struct words[2];

	if (syscall(SYS_capget, &of, words))
		return -errno;
	*held = words[0].permitted | (uint64_t)words[1].permitted << 32;
	return 0;
}

int capabilities_keep(uint64_t kept)
{
	struct __user_cap_header_struct of = header();
	const uint32_t low = (uint32_t)kept, high = (uint32_t)(kept >> 32);
	struct __user_cap_data_struct words[2] = {{low, low, 0}, {high, high, 0}};

	/* without CAP_SETPCAP the others stay in the bounding set, which only an exec could make
	 * use of */
	for (int number = 0; number < CAPABILITIES; number++)
		if (!(kept >> number & 1))
			prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &of, words) ? -errno : 0;
}
