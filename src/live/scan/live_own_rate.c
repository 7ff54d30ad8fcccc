/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_own_rate.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/text.h"
#include "unwind/elf/process_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNTED_NS (200 * NS_PER_MS) /* time between two readings of counters */
#define PROGRAM_NS 300 /* of one of tsnap's programs that adds to a histogram, roughly */

#define COUNTERS_BYTES_MAX (1ull << 20)
#define STAT "/proc/stat"
#define VMSTAT "/proc/vmstat"

/* A hot function or tracepoint. */
struct hot {
	enum own_probe_kind kind;
	const char *point;
	const char *file, *counter; /* first number of that line of the file; NULL: none */
	int64_t rate;		    /* calls a second of one busy CPU, where there is none */
};

/* clang-format off */
static const struct hot hots[] = {
	{OWN_TRACEPOINT, "sched_switch",		STAT,	"ctxt",		0},
	{OWN_TRACEPOINT, "sched_process_fork",		STAT,	"processes",	0},
	{OWN_TRACEPOINT, "irq_handler_entry",		STAT,	"intr",		0},
	{OWN_TRACEPOINT, "irq_handler_exit",		STAT,	"intr",		0},
	{OWN_TRACEPOINT, "softirq_entry",		STAT,	"softirq",	0},
	{OWN_TRACEPOINT, "softirq_exit",		STAT,	"softirq",	0},
	{OWN_TRACEPOINT, "page_fault_user",		VMSTAT,	"pgfault",	0},
	{OWN_TRACEPOINT, "mm_page_free",		VMSTAT,	"pgfree",	0},
	{OWN_TRACEPOINT, "sched_waking",		NULL,	NULL,		100000},
	{OWN_TRACEPOINT, "sched_wakeup",		NULL,	NULL,		100000},
	{OWN_TRACEPOINT, "sys_enter",			NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "sys_exit",			NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "kmalloc",			NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "kfree",			NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "kmem_cache_alloc",		NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "kmem_cache_free",		NULL,	NULL,		1000000},
	{OWN_TRACEPOINT, "mm_page_alloc",		NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "schedule",			STAT,	"ctxt",		0},
	{OWN_KERNEL,	 "__schedule",			STAT,	"ctxt",		0},
	{OWN_KERNEL,	 "handle_mm_fault",		VMSTAT,	"pgfault",	0},
	{OWN_KERNEL,	 "vfs_read",			NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "vfs_write",			NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "__kmalloc",			NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "kfree",			NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "kmem_cache_alloc",		NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "kmem_cache_free",		NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "mutex_lock",			NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "mutex_unlock",		NULL,	NULL,		1000000},
	{OWN_KERNEL,	 "try_to_wake_up",		NULL,	NULL,		100000},
	{OWN_FUNCTION,	 "malloc",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "calloc",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "realloc",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "free",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "_Znwm",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "_ZdlPv",			NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "pthread_mutex_lock",		NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "pthread_mutex_unlock",	NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "clock_gettime",		NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "PyObject_Malloc",		NULL,	NULL,		1000000},
	{OWN_FUNCTION,	 "palloc",			NULL,	NULL,		1000000},
};
/* clang-format on */

static const struct hot *hot_find(const struct own_probe *probe)
{
	for (size_t i = 0; i < sizeof(hots) / sizeof(hots[0]); i++)
		if (hots[i].kind == probe->kind && !strcmp(hots[i].point, probe->point))
			return &hots[i];
	return NULL;
}

struct counter {
	const char *name;
	int64_t number; /* -1: the file has no such line */
};

static void counter_line(void *of, char *line)
{
	struct counter *counter = of;
	const size_t length = strlen(counter->name);

	if (!strncmp(line, counter->name, length) && line[length] == ' ')
		counter->number = strtoll(line + length, NULL, 10);
}

static int64_t counter_read(const struct hot *hot)
{
	struct counter counter = {hot ? hot->counter : NULL, -1};
	const int fd = counter.name ? open(hot->file, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return -1;
	lines_each(fd, COUNTERS_BYTES_MAX, counter_line, &counter);
	close(fd);
	return counter.number;
}

static void rate_tell(const struct own_item *item, const struct hot *hot, int64_t rate,
		      int64_t budget)
{
	const int64_t cost_ns =
		item->call_ns + (int64_t)PROGRAM_NS * (1 + own_probe_returns(&item->probe));
	const int64_t share = rate * cost_ns / (NS_PER_SECOND / 1000);
	struct text line = {0};

	text_add_format(&line, "probe '%s': %s %s ", item->probe.name, hot->point,
			hot->counter ? "is reached" : "is hot: up to");
	text_add_format(&line, "%lld times a second", (long long)rate);
	if (hot->counter)
		text_add_format(&line, " at present (%s of %s)", hot->counter, hot->file);
	else
		text_add_string(&line, " on a busy CPU");
	text_add_format(&line,
			", at about %lld ns each: %lld.%lld %% of a CPU; it is detached if "
			"it takes more than %lld.%lld",
			(long long)cost_ns, (long long)share / 10, (long long)share % 10,
			(long long)budget / 10, (long long)budget % 10);
	output_complain(text_string(&line));
	text_done(&line);
}

void live_own_rates_tell(const struct own_probes *own, int64_t budget)
{
	const struct timespec wait = {.tv_nsec = COUNTED_NS};
	int64_t before[OWN_PROBES_MAX] = {0}, begun_ns = clock_monotonic_ns(), elapsed_ns;
	bool counted = false;

	for (unsigned int i = 0; i < own->count; i++) {
		before[i] = counter_read(hot_find(&own->items[i].probe));
		counted |= before[i] >= 0;
	}
	if (counted)
		nanosleep(&wait, NULL);
	elapsed_ns = clock_monotonic_ns() - begun_ns;
	for (unsigned int i = 0; i < own->count; i++) {
		const struct hot *hot = hot_find(&own->items[i].probe);
		int64_t rate;

		if (!hot)
			continue;
		rate = hot->rate;
		if (hot->counter) {
			if (before[i] < 0)
				continue;
			rate = (counter_read(hot) - before[i]) * NS_PER_SECOND / elapsed_ns;
		}
		rate_tell(&own->items[i], hot, rate, budget);
	}
}
