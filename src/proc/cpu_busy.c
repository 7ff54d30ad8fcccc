/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cpu_busy.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "sample/sample.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_BYTES (1 << 18) /* some 3000 CPUs */

/* Columns of a line, proc(5). */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

/* Fills the columns of a line. False: it is cut off. */
static bool line_parse(const char *line, int64_t ticks[COLUMNS])
{
	char *end;

	line += strcspn(line, " \n");
	for (int i = 0; i < COLUMNS; i++) {
		ticks[i] = strtoll(line, &end, 10);
		if (end == line)
			return false;
		line = end;
	}
	return true;
}

/* Moves to the next line of a CPU and parses it. False: there is none. */
static bool cpu_next(const char **text, int64_t *cpu, int64_t ticks[COLUMNS])
{
	for (; !strncmp(*text, "cpu", 3); *text += **text == '\n') {
		const char *line = *text;

		/* the line "cpu " is the sum, with offline CPUs */
		if (isdigit((unsigned char)line[3]) && !line_parse(line, ticks))
			return false;
		*text += strcspn(*text, "\n");
		if (!isdigit((unsigned char)line[3]))
			continue;
		*cpu = strtoll(line + 3, NULL, 10);
		*text += **text == '\n';
		return true;
	}
	return false;
}

static bool is_whole(const char *text)
{
	return !strncmp(text, "intr", 4);
}

int cpu_busy_parse(const char *text, struct cpu_busy *busy)
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK), ticks[COLUMNS], cpu;

	for (busy->cpus = busy->idle_us = busy->interrupt_us = 0; cpu_next(&text, &cpu, ticks);) {
		busy->cpus++;
		busy->idle_us += (ticks[IDLE] + ticks[IOWAIT]) * tick_us;
		busy->interrupt_us += (ticks[IRQ] + ticks[SOFTIRQ]) * tick_us;
	}
	if (is_whole(text) && busy->cpus)
		return 0;
	busy->cpus = 0;
	return -EINVAL;
}

/* Returns the beginning of /proc/stat, "" if it can't be read, until the next call. */
static const char *stat_read(const char *root)
{
	static char text[STAT_BYTES];
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/stat", root);
	return host_file_read(path, text, sizeof(text)) < 0 ? "" : text;
}

void cpu_busy_read(const char *root, struct cpu_busy *busy)
{
	const char *text = stat_read(root);

	busy->at_ns = clock_monotonic_ns();
	cpu_busy_parse(text, busy);
}

size_t cpu_taken_parse(const char *text, struct source_cpu taken[SOURCE_CPUS_MAX])
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK), ticks[COLUMNS] = {0}, cpu;
	size_t count = 0;

	while (count < SOURCE_CPUS_MAX && cpu_next(&text, &cpu, ticks))
		taken[count++] = (struct source_cpu){
			.cpu = cpu,
			.taken_us = {[CPU_USE_HARDIRQ] = ticks[IRQ] * tick_us,
				     [CPU_USE_SOFTIRQ] = ticks[SOFTIRQ] * tick_us,
				     [CPU_USE_STEAL] = ticks[STEAL] * tick_us},
		};
	return count == SOURCE_CPUS_MAX || is_whole(text) ? count : 0;
}

size_t cpu_taken_read(const char *root, struct source_cpu taken[SOURCE_CPUS_MAX])
{
	return cpu_taken_parse(stat_read(root), taken);
}

int64_t cpu_busy_between(const struct cpu_busy *from, const struct cpu_busy *to)
{
	int64_t idle_us = to->idle_us - from->idle_us;

	if (!from->cpus || to->cpus != from->cpus || idle_us < 0)
		return ABSENT;
	return (to->at_ns - from->at_ns) / NS_PER_US * to->cpus - idle_us;
}
