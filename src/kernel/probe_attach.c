/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/probe_attach.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/host.h"
#include "kernel/kernel_event.h"
#include "kernel/own_probe.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKS_PER_SCAN 4
#define LOOKS_HZ_MAX 400

#define EVENT_PREFIX "tsnap_"

bool probe_offered(struct features *features, const struct probe_row *row, const char **missing)
{
	const char *what = NULL;

	if (!feature_has(features, row->wants))
		what = feature_rows[row->wants].name;
	else if (row->kind == PROBE_TRACEPOINT && !tracepoint_exists(row->event))
		what = row->event;
	if (missing)
		*missing = what;
	return !what;
}

static void link_add(struct probe_links *links, int fd)
{
	links->fds = memory_resize(links->fds, links->count + 1, sizeof(*links->fds));
	links->fds[links->count++] = fd;
}

static int attach_raw(const struct probe_row *row, int program, struct probe_links *links)
{
	bool typed = row->kind == PROBE_TYPED_TRACEPOINT;
	int fd = bpf_call_raw_tracepoint(program, typed ? NULL : row->event);

	if (fd < 0)
		return fd;
	link_add(links, fd);
	return 0;
}

static int attach_tracepoint(const struct probe_row *row, int program, struct probe_links *links)
{
	int fd = tracepoint_attach(row->event, program);

	if (fd < 0)
		return fd;
	link_add(links, fd);
	return 0;
}

/* Makes the name "tsnap_1234_2_sched_switch". It has the process, so that events that a killed one
 * left can be recognised, and the number of events made before: the probes of a larger map begin
 * while the others are there. */
static void event_name(const struct probe_row *row, char *name, size_t size)
{
	static unsigned int made;

	snprintf(name, size, EVENT_PREFIX "%ld_%u_%s", (long)getpid(), made++, row->name);
}

static int attach_kprobe(const struct probe_row *row, int program, struct probe_links *links)
{
	char function[128], name[96];
	int fd;

	if (kernel_function_find(row->event, function, sizeof(function)))
		return -ENOENT;
	event_name(row, name, sizeof(name));
	fd = bpf_attach_kprobe(program, BPF_PROBE_ENTRY, name, function, 0, 0);
	if (fd < 0)
		return -EINVAL;
	link_add(links, fd);
	links->legacy_kprobes = access("/sys/bus/event_source/devices/kprobe/type", R_OK) != 0;
	return 0;
}

int probe_clock_attach(struct probe_links *links, int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period =
					       (uint64_t)(1000000000 / links->clock_rate_hz),
				       .disabled = 1};
	int fd = perf_call_open(&attr, -1, cpu);
	int result = fd < 0 ? fd : perf_call_run(fd, links->clock_program);
	size_t at = 0;

	if (result) {
		if (fd >= 0)
			close(fd);
		return result;
	}
	while (at < links->clock_count && links->clocks[at].cpu != cpu)
		at++;
	if (at < links->clock_count) {
		close(links->fds[links->clocks[at].link]);
		links->fds[links->clocks[at].link] = fd;
		return 0;
	}
	links->clocks =
		memory_resize(links->clocks, links->clock_count + 1, sizeof(*links->clocks));
	links->clocks[links->clock_count++] = (struct probe_clock){cpu, links->count};
	link_add(links, fd);
	return 0;
}

/* Rate of looks at each CPU: several between two scans, so that a thread that has just come is
 * known, and no call is old. */
static int64_t clock_rate(int64_t rate_hz)
{
	int64_t looks_hz = rate_hz * LOOKS_PER_SCAN;

	return looks_hz < LOOKS_HZ_MAX ? looks_hz : rate_hz < LOOKS_HZ_MAX ? LOOKS_HZ_MAX : rate_hz;
}

static int attach_clock(int program, int64_t rate_hz, struct probe_links *links)
{
	int cpus[4096], count = host_cpus_online(cpus, 4096), result = -ENODEV;

	links->clock_program = program;
	links->clock_rate_hz = clock_rate(rate_hz);
	for (int i = 0; i < count; i++)
		result = probe_clock_attach(links, cpus[i]);
	return links->clock_count ? 0 : result;
}

/* Sources of events whose programs run at functions (4.17): of programs, and of the kernel. */
#define EVENT_SOURCES "/sys/bus/event_source/devices/"
#define UPROBES "uprobe"
#define KPROBES "kprobe"

/* Reads which bits of an attribute have that part, as "config:32-63" says: the first one, or
 * -ENOTSUP. */
static int config_bit(const char *source, const char *part)
{
	char path[sizeof(EVENT_SOURCES) + 64], text[64];

	snprintf(path, sizeof(path), EVENT_SOURCES "%s/format/%s", source, part);
	if (host_file_read(path, text, sizeof(text)) <= 0 || strncmp(text, "config:", 7) != 0)
		return -ENOTSUP;
	return (int)(strtoul(text + 7, NULL, 10) & 63);
}

/* Opens the event of a function: of the file of that path, or of the kernel's function of that
 * name. One with a semaphore is counted up by the kernel in each process, and down again whatever
 * becomes of this one (4.20). pid: -1 for all processes. Descriptor or -errno; -EOPNOTSUPP: no
 * semaphores. */
static int function_open(const char *source, const char *path, const struct own_site *site,
			 bool returns, pid_t pid)
{
	struct perf_event_attr attr = {.sample_period = 1, .disabled = 1};
	char type[sizeof(EVENT_SOURCES) + 64], text[64];
	int bit;

	snprintf(type, sizeof(type), EVENT_SOURCES "%s/type", source);
	if (host_file_read(type, text, sizeof(text)) <= 0)
		return -ENOTSUP;
	attr.type = (uint32_t)strtoul(text, NULL, 10);
	if (returns) {
		bit = config_bit(source, "retprobe");
		if (bit < 0)
			return bit;
		attr.config = 1ull << bit;
	}
	if (site->semaphore) {
		bit = config_bit(source, "ref_ctr_offset");
		if (bit < 0 || site->semaphore >> (64 - bit))
			return -EOPNOTSUPP;
		attr.config |= site->semaphore << bit;
	}
	attr.config1 = (uint64_t)(uintptr_t)path; /* uprobe_path, kprobe_func */
	attr.config2 = site->offset;		  /* probe_offset */
	/* the program runs on every CPU, whichever the event is of */
	return perf_call_open(&attr, pid, pid < 0 ? 0 : -1);
}

static int attach_function(const struct probe_row *row, int program, struct probe_links *links)
{
	const struct own_target *target = ((const struct own_row *)row)->target;
	const bool kernel =
		row->kind == PROBE_KERNEL_FUNCTION || row->kind == PROBE_KERNEL_FUNCTION_RETURN;
	const bool returns =
		row->kind == PROBE_FUNCTION_RETURN || row->kind == PROBE_KERNEL_FUNCTION_RETURN;
	int result = 0;

	for (unsigned int i = 0; !result && i < target->site_count; i++) {
		int fd = function_open(kernel ? KPROBES : UPROBES, target->path, &target->sites[i],
				       returns, target->pid && !kernel ? target->pid : -1);

		result = fd < 0 ? fd : perf_call_run(fd, program);
		if (fd >= 0 && result)
			close(fd);
		else if (fd >= 0)
			link_add(links, fd);
	}
	return result;
}

void probe_detach_own(struct probe_links *links, unsigned int index)
{
	for (unsigned int end = 0; end < 2; end++) {
		struct own_links *own = &links->own[2 * index + end];

		for (size_t link = own->from; link < own->to; link++) {
			close(links->fds[link]);
			links->fds[link] = -1;
		}
		*own = (struct own_links){0};
	}
}

#define COST_CALLS 200
#define COST_ROUNDS 5

/* Functions to be probed: the kernel does the first instruction of the one by itself, and lets the
 * program step over a copy of the other's, which takes much longer. */
#ifdef __x86_64__
__attribute__((naked, noinline)) static void function_done(void)
{
	asm("nop\n\tret");
}

__attribute__((naked, noinline)) static void function_stepped(void)
{
	asm("testl %eax, %eax\n\tret");
}

/* arch/x86/kernel/uprobes.c: branch_setup_xol_ops(), push_setup_xol_ops() (4.17) */
bool probe_is_stepped(const unsigned char instruction[2])
{
	const unsigned char code = instruction[0] == 0x41 ? instruction[1] : instruction[0];
	const bool pushes = code >= 0x50 && code <= 0x57, jumps = code >= 0x70 && code <= 0x7f;

	return !pushes && !jumps && code != 0x90 && code != 0xe8 && code != 0xe9 && code != 0xeb;
}
#else
__attribute__((noinline)) static void function_stepped(void)
{
	asm volatile("");
}
#define function_done function_stepped

bool probe_is_stepped(const unsigned char instruction[2])
{
	(void)instruction;
	return true;
}
#endif

typedef void cost_function(void);

struct own_offset {
	cost_function *function;
	struct own_site site;
};

static int own_offset_find(struct dl_phdr_info *about, size_t size, void *to)
{
	struct own_offset *own = to;
	const uint64_t address = (uint64_t)(uintptr_t)own->function;

	(void)size;
	for (int i = 0; i < about->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &about->dlpi_phdr[i];
		const uint64_t from = about->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_LOAD && address >= from &&
		    address - from < header->p_filesz) {
			own->site.offset = address - from + header->p_offset;
			return 1;
		}
	}
	return 0;
}

static void call_done(void)
{
	syscall(SYS_getppid);
}

/* The least time of some rounds, in ns: what disturbs a round only adds to it. */
static int64_t cost_rounds(cost_function *function)
{
	int64_t least_ns = INT64_MAX;

	for (int round = 0; round < COST_ROUNDS; round++) {
		int64_t began_ns = clock_monotonic_ns(), took_ns;

		for (int i = 0; i < COST_CALLS; i++)
			function();
		took_ns = clock_monotonic_ns() - began_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return least_ns;
}

int64_t probe_function_cost(bool returns, bool stepped)
{
	struct own_offset own = {.function = stepped ? function_stepped : function_done};
	int64_t took_ns;
	int fd, result;

	if (!dl_iterate_phdr(own_offset_find, &own))
		return -ENOENT;
	fd = function_open(UPROBES, "/proc/self/exe", &own.site, returns, 0);
	if (fd < 0)
		return fd;
	result = ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
	took_ns = cost_rounds(own.function);
	close(fd);
	return result ? result : took_ns / COST_CALLS;
}

bool probe_kernel_offered(void)
{
	return !access(EVENT_SOURCES KPROBES "/type", R_OK);
}

int64_t probe_kernel_cost(bool returns)
{
	/* the function has such a name from 4.17 on: arch/x86/include/asm/syscall_wrapper.h */
	static const char *const names[] = {"__x64_sys_getppid", "__arm64_sys_getppid"};
	const struct own_site begin = {0};
	int64_t without_ns = cost_rounds(call_done), with_ns;
	int fd = -ENOENT, result;

	for (size_t i = 0; fd < 0 && i < sizeof(names) / sizeof(names[0]); i++)
		fd = function_open(KPROBES, names[i], &begin, returns, 0);
	if (fd < 0)
		return fd;
	result = ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
	with_ns = cost_rounds(call_done);
	close(fd);
	return result ? result : with_ns > without_ns ? (with_ns - without_ns) / COST_CALLS : 0;
}

static int row_attach(const struct probe_row *row, int program, int64_t rate_hz,
		      struct probe_links *links)
{
	switch (row->kind) {
	case PROBE_TYPED_TRACEPOINT:
	case PROBE_RAW_TRACEPOINT:
		return attach_raw(row, program, links);
	case PROBE_TRACEPOINT:
		return attach_tracepoint(row, program, links);
	case PROBE_KPROBE:
		return attach_kprobe(row, program, links);
	case PROBE_LOOK:
		return 0; /* kernel_ticks_read() runs it */
	case PROBE_PERF_CLOCK:
		return attach_clock(program, rate_hz, links);
	case PROBE_FUNCTION:
	case PROBE_FUNCTION_RETURN:
	case PROBE_KERNEL_FUNCTION:
	case PROBE_KERNEL_FUNCTION_RETURN:
		return attach_function(row, program, links);
	}
	return -EINVAL;
}

static const char *own_why(int result)
{
	return result == -ENOTSUP ? "this kernel has no event source for such probes (4.17 was the "
				    "first, if it was built with them)"
	       /* EINVAL also where a uprobe is there with another offset of a semaphore */
	       : result == -EINVAL
		       ? "the kernel lets nobody probe it, or another program probes it, "
			 "and not as tsnap would (as bcc 0.26, with a semaphore that "
			 "it has not)"
	       : result == -EADDRNOTAVAIL ? "the kernel lets nobody probe it"
	       : result == -EOPNOTSUPP	  ? "the program asks a counter (a semaphore) whether the "
					    "probe is wanted, and "
					    "this kernel counts none up (4.20 was the first)"
					  : strerror(-result);
}

int probe_attach(const struct probe_plan *plan, const int *programs, int64_t rate_hz,
		 struct probe_links *links, char *left, size_t left_size, struct error *e)
{
	left[0] = 0;
	*links = (struct probe_links){0};
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = plan->chosen[group];
		const size_t from = links->count;
		int result = row ? row_attach(row, programs[group], rate_hz, links) : 0;
		size_t used = strlen(left);

		if (!result && row && group >= GROUP_OWN)
			links->own[group - GROUP_OWN] = (struct own_links){from, links->count};
		if (!result)
			continue;
		if (group >= GROUP_OWN) {
			probe_detach(links);
			return error_set(e, -result, EXIT_HOST_CANNOT,
					 "--probe: the %s %s can't be "
					 "attached: %s",
					 probe_kind_names[row->kind], row->event, own_why(result));
		}
		if (probe_group_rows[group].required || result == -EEXIST) {
			probe_detach(links);
			links->taken = result == -EEXIST;
			return error_set(
				e, -result, EXIT_HOST_CANNOT, "the %s %s can't be attached: %s",
				probe_kind_names[row->kind], row->event, tracepoint_why(result));
		}
		snprintf(left + used, left_size - used, "%s (%s): %s; not seen: %s\n", row->event,
			 probe_kind_names[row->kind], strerror(-result),
			 probe_group_rows[group].without);
	}
	return 0;
}

static const char *const event_files[] = {"/sys/kernel/debug/tracing/kprobe_events",
					  "/sys/kernel/tracing/kprobe_events"};

/* Calls each with the names of tsnap's events in kprobe_events and the process that made them. */
static void legacy_events_walk(void (*each)(const char *name, pid_t pid))
{
	char *line = NULL;
	size_t capacity = 0;
	FILE *file = NULL;

	for (size_t i = 0; !file && i < 2; i++)
		file = fopen(event_files[i], "re");
	while (file && getline(&line, &capacity, file) > 0) {
		/* "p:kprobes/tsnap_1234_2_sched_switch finish_task_switch" */
		char *name = strstr(line, "/" EVENT_PREFIX);

		if (!name)
			continue;
		name++;
		name[strcspn(name, " \n")] = 0;
		each(name, (pid_t)strtol(name + strlen(EVENT_PREFIX), NULL, 10));
	}
	free(line);
	if (file)
		fclose(file);
}

static void event_clear(const char *name)
{
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < 2; i++)
		fd = open(event_files[i], O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	/* best effort: an event in use can't be removed, and is another tsnap's */
	dprintf(fd, "-:kprobes/%s\n", name);
	close(fd);
}

static void event_clear_mine(const char *name, pid_t pid)
{
	if (pid == getpid())
		event_clear(name);
}

static void event_clear_stale(const char *name, pid_t pid)
{
	if (pid > 0 && kill(pid, 0) && errno == ESRCH)
		event_clear(name);
}

void probe_clear_stale(void)
{
	if (access("/sys/bus/event_source/devices/kprobe/type", R_OK))
		legacy_events_walk(event_clear_stale);
}

void probe_detach(struct probe_links *links)
{
	for (size_t i = 0; i < links->count; i++)
		close(links->fds[i]);
	free(links->fds);
	free(links->clocks);
	if (links->legacy_kprobes)
		legacy_events_walk(event_clear_mine);
	*links = (struct probe_links){0};
}
