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
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, COLUMNS };

static int line_parse(const char *line, int64_t tick_us, struct cpu_busy *busy)
{
	int64_t ticks[COLUMNS];
	char *end;

	line += strcspn(line, " \n");
	for (int i = 0; i < COLUMNS; i++) {
		ticks[i] = strtoll(line, &end, 10);
		if (end == line)
			return -EINVAL;
		line = end;
	}
	busy->cpus++;
	busy->idle_us += (ticks[IDLE] + ticks[IOWAIT]) * tick_us;
	busy->interrupt_us += (ticks[IRQ] + ticks[SOFTIRQ]) * tick_us;
	return 0;
}

int cpu_busy_parse(const char *text, struct cpu_busy *busy)
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK);

	busy->cpus = busy->idle_us = busy->interrupt_us = 0;
	for (; !strncmp(text, "cpu", 3); text += *text == '\n') {
		/* the line "cpu " is the sum, with offline CPUs */
		if (isdigit((unsigned char)text[3]) && line_parse(text, tick_us, busy))
			break;
		text += strcspn(text, "\n");
	}
	if (!strncmp(text, "intr", 4) && busy->cpus)
		return 0;
	busy->cpus = 0;
	return -EINVAL;
}

void cpu_busy_read(const char *root, struct cpu_busy *busy)
{
	static char text[STAT_BYTES];
	char path[PATH_MAX];

	busy->cpus = 0;
	snprintf(path, sizeof(path), "%s/stat", root);
	if (host_file_read(path, text, sizeof(text)) < 0)
		return;
	busy->at_ns = clock_monotonic_ns();
	cpu_busy_parse(text, busy);
}

int64_t cpu_busy_between(const struct cpu_busy *from, const struct cpu_busy *to)
{
	int64_t idle_us = to->idle_us - from->idle_us;

	if (!from->cpus || to->cpus != from->cpus || idle_us < 0)
		return ABSENT;
	return (to->at_ns - from->at_ns) / NS_PER_US * to->cpus - idle_us;
}
