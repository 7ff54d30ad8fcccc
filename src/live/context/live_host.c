/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/context/live_host.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "kernel/kernel_event.h"
#include "proc/cpu_busy.h"
#include "proc/devices.h"
#include "proc/disk_stats.h"
#include "proc/proc.h"
#include "proc/refaults.h"

#include <bcc/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN_PART 100 /* of a CPU: less is no remark */

static int quota_compare(const void *a, const void *b)
{
	const struct source_quota *x = a, *y = b;

	return (x->throttled_us < y->throttled_us) - (x->throttled_us > y->throttled_us);
}

static void quota_put(struct source_status *status, const struct cpu_quota_group *group)
{
	size_t length = strlen(group->path), most = SOURCE_TEXT_SIZE - 1;
	struct source_quota quota = {
		.periods = group->counts.periods - group->first.periods,
		.throttled_periods =
			group->counts.throttled_periods - group->first.throttled_periods,
		.throttled_us = group->counts.throttled_us - group->first.throttled_us,
	};
	struct source_quota *last;

	if (quota.throttled_periods <= 0 && quota.throttled_us <= 0)
		return;
	snprintf(quota.path, sizeof(quota.path), "%s",
		 length > most ? group->path + length - most : group->path);
	if (status->quota_count < SOURCE_QUOTAS_MAX) {
		status->quotas[status->quota_count++] = quota;
		return;
	}
	status->quotas_more++;
	last = &status->quotas[SOURCE_QUOTAS_MAX - 1];
	qsort(status->quotas, status->quota_count, sizeof(*status->quotas), quota_compare);
	if (quota_compare(last, &quota) > 0)
		*last = quota;
}

static void quotas_describe(struct cpu_quotas *quotas, struct source_status *status)
{
	cpu_quotas_read(quotas, clock_monotonic_ns());
	for (size_t i = 0; i < quotas->count; i++)
		if (quotas->groups[i].counted_ns)
			quota_put(status, &quotas->groups[i]);
	qsort(status->quotas, status->quota_count, sizeof(*status->quotas), quota_compare);
}

static void io_limits_describe(struct io_limits *limits, struct source_status *status)
{
	io_limits_read(limits, clock_monotonic_ns());
	for (size_t i = 0; i < limits->count; i++)
		for (size_t j = 0; j < limits->groups[i].count; j++) {
			const struct io_limit *limit = &limits->groups[i].limits[j];
			const char *path = limits->groups[i].path;
			size_t length = strlen(path), most = SOURCE_TEXT_SIZE - 1;
			struct source_io_limit *reported =
				&status->io_limits[status->io_limit_count];

			if (!limit->limit || status->io_limit_count == SOURCE_IO_LIMITS_MAX)
				continue;
			*reported = (struct source_io_limit){
				.device = device_name(limit->dev),
				.word = io_limit_word(limit->kind),
				.limit = limit->limit,
				.used = limit->used - limit->first,
			};
			snprintf(reported->path, sizeof(reported->path), "%s",
				 length > most ? path + length - most : path);
			status->io_limit_count++;
		}
}

struct device_times {
	struct source_status *status;
	int64_t since_ns;
};

static void device_times_take(void *to, uint32_t dev, const struct disk_times *times)
{
	const struct device_times *of = to;
	const char *name = device_name(dev);

	_Static_assert(LATENCY_BUCKETS == HISTOGRAM_BUCKETS, "buckets are the same");
	for (size_t i = 0; i < of->status->device_count; i++) {
		struct source_device *device = &of->status->devices[i];

		if (device->name != name)
			continue;
		device->timed_ns = of->since_ns;
		memcpy(device->times, times->buckets, sizeof(device->times));
	}
}

static void devices_describe(const struct live_host *host, struct source_status *status)
{
	struct device_times times = {status, host->began_ns};
	struct disk_stats stats[DISK_STATS_MAX];

	_Static_assert(SOURCE_DEVICES_MAX >= DISK_STATS_MAX, "all that are read have room");
	status->device_count = disk_stats_read(PROC "/diskstats", stats);
	for (size_t i = 0; i < status->device_count; i++)
		status->devices[i] =
			(struct source_device){.name = stats[i].device,
					       .requests = stats[i].requests,
					       .taken_us = stats[i].taken_ms * US_PER_MS,
					       .in_flight = stats[i].in_flight};
	disk_times_read(host->context->kernel.compiled.maps[KERNEL_MAP_DISKS], device_times_take,
			&times);
}

/* True if the kernel counts interrupts by ticks, which takes 40 ms to find. A kernel without
 * CONFIG_IRQ_TIME_ACCOUNTING lacks the function (kernel/sched/cputime.c); one that has it may still
 * count ticks where its clock is not steady. */
static bool counts_ticks(void)
{
	static int64_t known = ABSENT;
	char function[64];

	if (known == ABSENT)
		known = kernel_function_find("irqtime_account_irq", function, sizeof(function)) &&
			!kernel_function_find("account_process_tick", function, sizeof(function));
	return known;
}

bool live_taken_exact(const struct live_context *context)
{
	return context->kernel.compiled.maps[KERNEL_MAP_IRQS] >= 0 && counts_ticks();
}

size_t live_taken_read(const struct live_context *context, struct source_cpu taken[SOURCE_CPUS_MAX])
{
	size_t count = cpu_taken_read(PROC, taken);
	struct cpu_irqs irqs;

	if (!live_taken_exact(context))
		return count;
	for (size_t i = 0; i < count; i++) {
		uint32_t cpu = (uint32_t)taken[i].cpu;

		if (bpf_lookup_elem(context->kernel.compiled.maps[KERNEL_MAP_IRQS], &cpu, &irqs))
			continue;
		taken[i].taken_us[CPU_USE_HARDIRQ] = (int64_t)irqs.hard_ns / NS_PER_US;
		taken[i].taken_us[CPU_USE_SOFTIRQ] = (int64_t)irqs.soft_ns / NS_PER_US;
	}
	return count;
}

/* Reads what interrupts took, and finds how that is counted once it is more than a TAKEN_PART of a
 * CPU. */
static void taken_describe(struct live_host *host, struct source_status *status)
{
	static struct source_cpu since[SOURCE_CPUS_MAX];
	int64_t now_ns = clock_monotonic_ns(),
		least_us = (now_ns - host->taken_ns) / NS_PER_US / TAKEN_PART;
	size_t count;
	int64_t us = 0;

	status->taken_count = live_taken_read(host->context, status->taken);
	memcpy(since, status->taken, status->taken_count * sizeof(*since));
	count = source_cpus_since(since, status->taken_count, host->taken, host->taken_count);
	for (size_t i = 0; i < count; i++)
		us += since[i].taken_us[CPU_USE_HARDIRQ] + since[i].taken_us[CPU_USE_SOFTIRQ];
	if (us >= least_us && host->taken_count && host->taken_by_tick == ABSENT)
		host->taken_by_tick = !live_taken_exact(host->context) && counts_ticks();
	status->taken_by_tick = host->taken_by_tick;
	memcpy(host->taken, status->taken, status->taken_count * sizeof(*since));
	host->taken_count = status->taken_count;
	host->taken_ns = now_ns;
}

static void listeners_describe(struct listeners *listeners, struct source_status *status)
{
	listeners_read(listeners);
	for (size_t i = 0; i < listeners->count && i < SOURCE_LISTENERS_MAX; i++)
		status->listeners[status->listener_count++] =
			(struct source_listener){.inode = listeners->rows[i].inode,
						 .dropped = listeners->rows[i].dropped,
						 .port = listeners->rows[i].port};
}

static void unread_describe(struct unread *unread, struct source_status *status)
{
	unread_read(unread, PROC, clock_monotonic_ns());
	_Static_assert(SOURCE_UNREAD_MAX >= UNREAD_PORTS_MAX, "all that are read have room");
	status->unread_count = unread->count;
	for (size_t i = 0; i < unread->count; i++) {
		const struct unread_port *row = &unread->ports[i];

		status->unread[i] = (struct source_unread){
			.net = row->net,
			.port = row->port,
			.requests = row->requests,
			.unaccepted = row->unaccepted,
			.limit = row->limit,
			.late = row->late,
			.late_unaccepted = row->late_unaccepted,
			.oldest_us = row->oldest_ms * US_PER_MS,
			.pid = row->pid ? row->pid : ABSENT,
			.threads = row->threads ? row->threads : ABSENT,
		};
		snprintf(status->unread[i].comm, sizeof(row->comm), "%s", row->comm);
	}
}

void live_host_note_jvm(struct live_host *host, int64_t pid)
{
	struct live_jvm *jvm = host->jvms;

	while (jvm < host->jvms + host->jvm_count && jvm->pid != pid)
		jvm++;
	if (jvm < host->jvms + host->jvm_count || host->jvm_count == SOURCE_RUNTIMES_MAX)
		return;
	*jvm = (struct live_jvm){.pid = pid, .found_ns = clock_monotonic_ns()};
	host->jvm_count++;
	jvm->address = jvm_counters_find(PROC, pid);
	if (jvm->address && !jvm_counters_read(PROC, pid, jvm->address, &jvm->first))
		jvm->address = 0;
}

/* Forgets JVMs that have ended, and those whose process is another one by now. */
static void jvms_describe(struct live_host *host, struct source_status *status)
{
	size_t kept = 0;

	for (size_t i = 0; i < host->jvm_count; i++) {
		struct live_jvm jvm = host->jvms[i];
		struct jvm_counters now;
		struct proc_stat stat;

		if (proc_stat_read(PROC, 0, jvm.pid, &stat))
			continue;
		if (jvm.address && (!jvm_counters_read(PROC, jvm.pid, jvm.address, &now) ||
				    now.stopped_us < jvm.first.stopped_us))
			continue;
		host->jvms[kept++] = jvm;
		if (!jvm.address)
			continue;
		status->runtimes[status->runtime_count] = (struct source_runtime){
			.pid = jvm.pid,
			.known_us = (clock_monotonic_ns() - jvm.found_ns) / NS_PER_US,
			.stopped_us = now.stopped_us - jvm.first.stopped_us,
			.gc_us = now.gc_us - jvm.first.gc_us,
			.collections = now.collections - jvm.first.collections,
			.threads = now.threads,
		};
		snprintf(status->runtimes[status->runtime_count++].comm,
			 sizeof(status->runtimes[0].comm), "%.15s", stat.comm);
	}
	host->jvm_count = kept;
}

/* --- Go programs */

#define GO_LOOKS 64 /* processes that are looked at in a second: the others come later */
#define LOOKED_AT_MAX 4096
#define LOOKED_AT_NS (60 * NS_PER_SECOND) /* a process may run another program by then */

struct looked_at {
	struct cache_entry entry; /* key: pid */
	int64_t looked_ns;	  /* 0: not yet */
};

/* Reads the counters of all; forgets those that have ended. */
static void gos_read(struct live_host *host, int64_t now_ns)
{
	size_t kept = 0;

	host->go_read_ns = now_ns;
	host->go_looks = 0;
	for (size_t i = 0; i < host->go_count; i++) {
		struct live_go go = host->gos[i];
		struct go_counters now;

		if (!go_counters_read(&go.place, PROC, go.pid, &now) ||
		    now.goroutines < go.last.goroutines || now.collections < go.last.collections ||
		    now.stopped_us < go.last.stopped_us)
			continue;
		/* stops of before the first collection that was seen are not of this time */
		if (!go.first.collections)
			go.first.collections = now.collections,
			go.first.stopped_us = now.stopped_us;
		go.seconds++;
		go.grown_seconds += now.goroutines > go.last.goroutines;
		go.last = now;
		host->gos[kept++] = go;
	}
	host->go_count = kept;
	cache_sweep(&host->looked_at, now_ns, LOOKED_AT_NS);
	cache_sweep(&host->go_files, now_ns, LOOKED_AT_NS);
}

void live_host_note_go(struct live_host *host, int64_t pid, int64_t now_ns)
{
	struct parser *parser = live_parser(host->context, PARSER_MEMORY);
	struct live_go *go = &host->gos[host->go_count];
	struct looked_at *known;
	bool added;

	if (!parser)
		return;
	if (now_ns - host->go_read_ns >= NS_PER_SECOND)
		gos_read(host, now_ns);
	known = cache_get(&host->looked_at, (uint64_t)pid, now_ns, &added);
	if ((known->looked_ns && now_ns - known->looked_ns < LOOKED_AT_NS) ||
	    host->go_looks == GO_LOOKS || host->go_count == SOURCE_RUNTIMES_MAX)
		return;
	host->go_looks++;
	known->looked_ns = now_ns;
	for (size_t i = 0; i < host->go_count; i++)
		if (host->gos[i].pid == pid)
			return;
	*go = (struct live_go){.pid = pid, .found_ns = now_ns};
	if (go_place_find(&go->place, &host->go_files, PROC, pid, parser, now_ns) &&
	    go_counters_read(&go->place, PROC, pid, &go->first)) {
		go->last = go->first;
		host->go_count++;
	}
}

static void gos_describe(struct live_host *host, struct source_status *status)
{
	int64_t now_ns = clock_monotonic_ns();

	if (now_ns - host->go_read_ns >= NS_PER_SECOND / 2)
		gos_read(host, now_ns);
	for (size_t i = 0; i < host->go_count && status->runtime_count < SOURCE_RUNTIMES_MAX; i++) {
		const struct live_go *go = &host->gos[i];
		struct source_runtime *to = &status->runtimes[status->runtime_count];
		struct proc_stat stat;

		if (proc_stat_read(PROC, 0, go->pid, &stat))
			continue;
		*to = (struct source_runtime){
			.pid = go->pid,
			.known_us = (host->go_read_ns - go->found_ns) / NS_PER_US,
			.stopped_us = go->last.stopped_us - go->first.stopped_us,
			.gc_us = go->last.stopped_us - go->first.stopped_us,
			.collections = go->last.collections - go->first.collections,
			.threads = proc_thread_count(PROC, go->pid),
			.is_go = true,
			.goroutines = go->last.goroutines,
			.grown = go->last.goroutines - go->first.goroutines,
			.seconds = go->seconds,
			.grown_seconds = go->grown_seconds,
		};
		snprintf(to->comm, sizeof(to->comm), "%.15s", stat.comm);
		status->runtime_count++;
	}
}

/* Finds "total=123" in the line that begins with that word; Documentation/accounting/psi.rst. */
static bool total_find(const char *text, const char *word, int64_t *total_us)
{
	const char *line = strstr(text, word), *at = line ? strstr(line, "total=") : NULL;

	if (at)
		*total_us = strtoll(at + strlen("total="), NULL, 10);
	return at;
}

/* Parses a file that was read between before_ns and now: the kernel adds its times up at the
 * reading (psi_show()). */
static void pressure_parse(const char *text, int64_t before_ns, struct source_pressure *pressure)
{
	pressure->read_us = (before_ns + clock_monotonic_ns()) / 2 / NS_PER_US;
	pressure->known = total_find(text, "some ", &pressure->some_us);
	/* "full" of CPUs exists since 5.13, and is 0 for the host */
	total_find(text, "full ", &pressure->full_us);
}

/* Reads the pressure of the group that --cgroup names; a pattern names none. */
static void group_pressure_read(const struct live_host *host, struct source_status *status)
{
	static const char *const files[RESOURCE_COUNT] = {
		[RESOURCE_CPU] = "cpu.pressure",
		[RESOURCE_MEMORY] = "memory.pressure",
		[RESOURCE_IO] = "io.pressure",
	};
	const char *name = host->context->config.cgroup;
	char group[SOURCE_TEXT_SIZE], text[512];

	if (!name || strpbrk(name, "*?[") || strstr(name, "..") ||
	    (size_t)snprintf(group, sizeof(group), "%s%s", *name == '/' ? "" : "/", name) >=
		    sizeof(group))
		return;
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		int64_t before_ns = clock_monotonic_ns();

		if (cgroup_mount_read(&host->groups, group, files[i], text, sizeof(text)) > 0)
			pressure_parse(text, before_ns, &status->group_pressure[i]);
	}
	memcpy(status->pressed_group, group, sizeof(group));
}

int64_t live_load_read(void)
{
	char text[128], *point;
	int64_t whole;

	if (host_file_read(PROC "/loadavg", text, sizeof(text)) <= 0)
		return ABSENT;
	whole = strtoll(text, &point, 10);
	return *point == '.' ? whole * 100 + strtoll(point + 1, NULL, 10) : ABSENT;
}

/* Finds a number of kilobytes in /proc/meminfo. */
static int64_t memory_find(const char *text, const char *word)
{
	const char *line = strstr(text, word);

	return line ? strtoll(line + strlen(word), NULL, 10) : 0;
}

static int64_t memory_used_read(void)
{
	char text[4096];
	int64_t all, free;

	if (host_file_read(PROC "/meminfo", text, sizeof(text)) <= 0)
		return ABSENT;
	all = memory_find(text, "MemTotal:");
	free = memory_find(text, "MemAvailable:"); /* since 3.14 */
	return all > 0 && free > 0 && free <= all ? (all - free) * 1000 / all : ABSENT;
}

void live_host_describe(struct live_host *host, struct source_status *status)
{
	static const char *const paths[RESOURCE_COUNT] = {
		[RESOURCE_CPU] = PROC "/pressure/cpu",
		[RESOURCE_MEMORY] = PROC "/pressure/memory",
		[RESOURCE_IO] = PROC "/pressure/io",
	};
	struct refaults refaults;
	char text[512];

	status->memory_used = memory_used_read();
	refaults_read(PROC, &refaults);
	status->disk_read = refaults.read;
	status->refaulted = refaults.refaulted;
	status->evicted = refaults.evicted;
	quotas_describe(&host->quotas, status);
	io_limits_describe(&host->io_limits, status);
	devices_describe(host, status);
	taken_describe(host, status);
	listeners_describe(&host->listeners, status);
	unread_describe(&host->unread, status);
	jvms_describe(host, status);
	gos_describe(host, status);
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		int64_t before_ns = clock_monotonic_ns();

		if (host_file_read(paths[i], text, sizeof(text)) >= 0)
			pressure_parse(text, before_ns, &status->pressure[i]);
	}
	group_pressure_read(host, status);
}

void live_host_init(struct live_host *host, struct live_context *context)
{
	host->context = context;
	host->began_ns = clock_monotonic_ns();
	host->taken_by_tick = ABSENT;
	go_files_init(&host->go_files);
	host->looked_at = (struct cache){.entry_bytes = sizeof(struct looked_at),
					 .entries_max = LOOKED_AT_MAX};
	cpu_quotas_init(&host->quotas, PROC);
	io_limits_init(&host->io_limits, PROC);
	cgroup_mount_find(&host->groups, PROC, ""); /* no controller: v2 */
}

void live_host_done(struct live_host *host)
{
	cpu_quotas_done(&host->quotas);
	io_limits_done(&host->io_limits);
	listeners_done(&host->listeners);
	unread_done(&host->unread);
	cgroup_mount_done(&host->groups);
	cache_done(&host->paths);
	cache_done(&host->looked_at);
	cache_done(&host->go_files);
}
