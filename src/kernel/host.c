/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/host.h"
#include "base/host_file.h"
#include "kernel/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

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

#define CPUS_ONLINE "/sys/devices/system/cpu/online"
#define CPUS_MAX 8192
#define CPU_LIST_BYTES 4096	/* sysfs gives no more than a page */
#define PID_MAX_LIMIT (1 << 22) /* include/linux/threads.h, on 64-bit kernels */

/* Parses a "0-3,8" list of /sys/devices/system/cpu. */
static int cpu_list_parse(char *at, int *cpus, int count)
{
	int found = 0;

	while (*at) {
		long first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (; first <= last && found < count; first++)
			cpus[found++] = (int)first;
		if (*at++ != ',')
			break;
	}
	return found;
}

static int cpu_list_read(const char *path, int *cpus, int count)
{
	char text[CPU_LIST_BYTES];

	return host_file_read(path, text, sizeof(text)) > 0 ? cpu_list_parse(text, cpus, count) : 0;
}

int host_cpus_online(int *cpus, int count)
{
	int found = cpu_list_read(CPUS_ONLINE, cpus, count);

	if (found)
		return found;
	for (found = 0; found < count && found < sysconf(_SC_NPROCESSORS_ONLN); found++)
		cpus[found] = found;
	return found;
}

int host_online_open(void)
{
	int fd = open(CPUS_ONLINE, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool host_cpus_offline(int online, unsigned char *offline, int count)
{
	char text[CPU_LIST_BYTES];
	ssize_t length = online < 0 ? -1 : pread(online, text, sizeof(text) - 1, 0);
	int cpus[CPUS_MAX], found;

	if (length <= 0)
		return false;
	text[length] = '\0';
	found = cpu_list_parse(text, cpus, CPUS_MAX);
	if (!found || found >= count)
		return false;
	memset(offline, 1, (size_t)count);
	for (int i = 0; i < found; i++)
		if (cpus[i] < count)
			offline[cpus[i]] = 0;
	return true;
}

static int cpus_possible(void)
{
	int cpus[CPUS_MAX],
		found = cpu_list_read("/sys/devices/system/cpu/possible", cpus, CPUS_MAX);

	/* per-CPU maps are copied for every possible CPU; the highest number counts */
	return found ? cpus[found - 1] + 1 : (int)sysconf(_SC_NPROCESSORS_CONF);
}

static void os_release_read(struct host *host)
{
	static const char *const paths[] = {"/etc/os-release", "/usr/lib/os-release"};
	char text[4096], *save = NULL;

	for (size_t i = 0; i < 2; i++)
		if (host_file_read(paths[i], text, sizeof(text)) > 0)
			break;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');
		size_t length;

		if (!value)
			continue;
		*value++ = 0;
		length = strlen(value);
		if (length > 1 && (*value == '"' || *value == '\'')) {
			value[length - 1] = 0;
			value++;
		}
		if (!strcmp(line, "PRETTY_NAME"))
			snprintf(host->distribution, HOST_TEXT_SIZE, "%s", value);
		if (!strcmp(line, "ID") || !strcmp(line, "ID_LIKE")) {
			size_t used = strlen(host->distribution_id);

			snprintf(host->distribution_id + used, HOST_TEXT_SIZE - used, "%s%s",
				 used ? " " : "", value);
		}
	}
}

static void lockdown_read(struct host *host)
{
	char text[HOST_TEXT_SIZE], *from, *to;

	/* "none [integrity] confidentiality" */
	if (host_file_read("/sys/kernel/security/lockdown", text, sizeof(text)) <= 0)
		return;
	from = strchr(text, '[');
	to = from ? strchr(from, ']') : NULL;
	if (to) {
		*to = 0;
		snprintf(host->lockdown, HOST_TEXT_SIZE, "%s", from + 1);
	}
}

/* The constant is PROC_PID_INIT_INO of include/linux/proc_ns.h, since 3.8. */
bool host_pids_first(const struct host *host)
{
	return !host->pid_namespace[0] || !strcmp(host->pid_namespace, "pid:[4026531836]");
}

/* 0 or -errno, with "" in text. */
static int link_read(const char *path, char text[HOST_TEXT_SIZE])
{
	ssize_t length = readlink(path, text, HOST_TEXT_SIZE - 1);

	text[length > 0 ? length : 0] = 0;
	return length < 0 ? -errno : 0;
}

/* "NSpid:\t1234\t5": one number for each namespace (4.1) */
static int pid_depth_read(const char *status)
{
	const char *line = strstr(status, "\nNSpid:");
	int depth = 0;

	if (line)
		for (const char *at = line + strlen("\nNSpid:"); *at == '\t'; depth++)
			at += 1 + strspn(at + 1, "0123456789");
	return depth ? depth : 1;
}

static void status_read(struct host *host)
{
	char text[4096], *line;
	uint64_t bits;

	host->root = geteuid() == 0;
	if (host_file_read("/proc/self/status", text, sizeof(text)) <= 0)
		return;
	line = strstr(text, "\nCapEff:");
	bits = line ? strtoull(line + 8, NULL, 16) : 0;
	/* CAP_DAC_OVERRIDE 1, CAP_DAC_READ_SEARCH 2, CAP_SYS_PTRACE 19, CAP_SYS_ADMIN 21,
	 * CAP_SYS_NICE 23, CAP_PERFMON 38, CAP_BPF 39: capabilities(7); the last two since 5.8 */
	host->cap_admin = bits >> 21 & 1;
	host->cap_perfmon = bits >> 38 & 1;
	host->cap_bpf = bits >> 39 & 1;
	host->cap_ptrace = bits >> 19 & 1;
	host->cap_nice = bits >> 23 & 1;
	host->cap_read = (bits >> 1 & 1) || (bits >> 2 & 1);
	line = strstr(text, "\nSeccomp:\t");
	host->seccomp = line && line[strlen("\nSeccomp:\t")] == '2';
	host->pid_depth = pid_depth_read(text);
}

static void tracefs_find(struct host *host)
{
	static const char *const paths[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < 2; i++) {
		char path[HOST_TEXT_SIZE];

		snprintf(path, sizeof(path), "%s/events/sched/sched_switch/id", paths[i]);
		if (!access(path, R_OK)) {
			snprintf(host->tracefs, HOST_TEXT_SIZE, "%s", paths[i]);
			return;
		}
	}
}

const char *host_proc_lacks(const struct host *host)
{
	struct statfs there;

	if (host->own_pid)
		return NULL;
	if (host->own_pid_err != -ENOENT)
		return strerror(-host->own_pid_err);
	/* a link of a mounted /proc that is not there: it is of a namespace without this process */
	return !statfs("/proc", &there) && there.f_type == PROC_SUPER_MAGIC
		       ? "/proc is for another pid namespace than tsnap's"
		       : "/proc is not mounted";
}

void host_read(struct host *host)
{
	struct utsname name;
	struct rlimit limit;
	char text[HOST_TEXT_SIZE];

	memset(host, 0, sizeof(*host));
	if (!uname(&name)) {
		snprintf(host->name, HOST_TEXT_SIZE, "%s", name.nodename);
		snprintf(host->release, HOST_TEXT_SIZE, "%s", name.release);
		snprintf(host->machine, HOST_TEXT_SIZE, "%s", name.machine);
	}
	host->kernel_code = version_code_read(host->release);
	os_release_read(host);
	lockdown_read(host);
	host->pid_depth = 1;
	status_read(host);
	link_read("/proc/self/ns/pid", host->pid_namespace);
	host->own_pid_err = link_read("/proc/self", text);
	host->own_pid = strtoll(text, NULL, 10);
	tracefs_find(host);
	host->jit = host_file_read("/proc/sys/net/core/bpf_jit_enable", text, sizeof(text)) > 0
			    ? atoi(text)
			    : -1;
	host->memlock_bytes = UINT64_MAX;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		host->memlock_bytes = limit.rlim_cur;
	host->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	host->cpus_possible = cpus_possible();
}

int64_t host_threads_count(void)
{
	char text[HOST_TEXT_SIZE], *slash;
	ssize_t got = host_file_read("/proc/loadavg", text, sizeof(text));

	if (got < 0)
		return got;
	/* "0.20 0.18 0.12 1/80 11206": runnable/all, proc(5) */
	slash = strchr(text, '/');
	return slash ? strtoll(slash + 1, NULL, 10) : -EINVAL;
}

int64_t host_threads_limit(const struct host *host)
{
	char text[HOST_TEXT_SIZE];
	int64_t limit = 0;

	/* each pid namespace has its own limit since 6.14 */
	if (host_pids_first(host) &&
	    host_file_read("/proc/sys/kernel/pid_max", text, sizeof(text)) > 0)
		limit = strtoll(text, NULL, 10);
	return limit > 0 && limit < PID_MAX_LIMIT ? limit : PID_MAX_LIMIT;
}

/* Bits of include/linux/sched.h */
#define PF_KTHREAD_BIT 0x200000u   /* since 2.6.27 */
#define PF_IO_WORKER_BIT 0x10u	   /* io_uring's; before 5.12 they had PF_KTHREAD, too */
#define PF_USER_WORKER_BIT 0x4000u /* vhost's, too; until 5.17 a mark of asynchronous work */

uint32_t kernel_thread_flags_of(uint32_t kernel_code)
{
	return PF_KTHREAD_BIT | (kernel_code >= KERNEL_CODE(5, 12) ? PF_IO_WORKER_BIT : 0) |
	       (kernel_code >= KERNEL_CODE(6, 4) ? PF_USER_WORKER_BIT : 0);
}

uint32_t kernel_thread_flags(void)
{
	static uint32_t kept; /* found once, by any thread */
	uint32_t flags = __atomic_load_n(&kept, __ATOMIC_RELAXED);
	struct utsname name;

	if (flags)
		return flags;
	flags = kernel_thread_flags_of(uname(&name) ? 0 : version_code_read(name.release));
	__atomic_store_n(&kept, flags, __ATOMIC_RELAXED);
	return flags;
}
