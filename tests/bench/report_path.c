/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of samples into a report, without a kernel: the number that are grouped, or become rows
 * of CSV, in a second.
 *
 * report_path groups|rows SCANS: SCANS scans of 5000 threads, with the default columns; prints
 * samples a second. tests/budget counts its instructions.
 */
#include "made.h"
#include "base/clock.h"
#include "base/text.h"
#include "report/grid.h"
#include "report/group.h"
#include "render/renderer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 5000u
#define GROUPS 200u

/* Makes a sample with texts as long as on a server: names up to 15 bytes, paths and control groups
 * up to 60. */
static struct sample sample_make(unsigned int i)
{
	static const char *const users[] = {"root", "postgres", "www-data", "prometheus", "nobody"};
	static const char *const calls[] = {"futex", "read",	  "epoll_wait", "pread64",
					    "fsync", "io_submit", "nanosleep",	"sendto"};
	unsigned int group = dice(GROUPS);
	struct sample sample = *sample_absent();

	sample.scan.time_us = 1795207373123456ll;
	sample.scan.weight_us = 50000;
	sample.thread.tid = 1000 + 7 * (int64_t)i;
	sample.thread.pid = sample.thread.tid - dice(64);
	sample.now.state = group % 3;
	sample.thread.user = name_of_string(users[group % 5]);
	sample.thread.comm = name("worker-", dice(1000), "");
	sample.thread.commsum = name("worker:", group, "");
	sample.process.exe = name("/usr/lib/postgresql/", group / 10, "/bin/postgres");
	sample.cgroup.path = name("/system.slice/postgresql.slice/instance@", group, ".service");
	sample.now.state_us = dice(4) ? dice(50000) : dice(100000000);
	sample.now.cpu = dice(64);
	if (dice(3))
		sample.waker.tid = 1000 + (int64_t)dice(35000);
	if (group % 4) {
		sample.call.name = name_of_string(calls[group % 8]);
		sample.file.name = name("/var/lib/postgresql/15/main/base/16384/", dice(500), "");
	}
	return sample;
}

/* Returns the number of groups. */
static size_t group_scans(const struct column_list *list, const struct scan *scan, long scans)
{
	struct group_table groups;
	size_t count;

	group_table_init(&groups, list);
	for (; scans; scans--)
		for (size_t i = 0; i < scan->count; i++)
			group_table_add(&groups, &scan->samples[i]);
	count = groups.count;
	group_table_done(&groups);
	return count;
}

/* Returns the number of bytes of CSV. */
static size_t write_scans(const struct column_list *list, const struct scan *scan, long scans)
{
	struct grid grid = {0};
	struct interval interval = {.grid = &grid};
	struct text text = {0};
	size_t count = 0;

	for (; scans; scans--) {
		grid_fill_rows(&grid, list, scan);
		renderer_csv.add(&text, &interval);
		count += text.length;
		text_clear(&text);
	}
	text_done(&text);
	grid_done(&grid);
	return count;
}

static const struct {
	const char *name, *columns;
	size_t (*run)(const struct column_list *list, const struct scan *scan, long scans);
} parts[] = {
	{"groups", REPORT_MEASURES_DEFAULT "," REPORT_COLUMNS_DEFAULT, group_scans},
	{"rows", ROW_COLUMNS_DEFAULT, write_scans},
};

static double part_rate(size_t part, long scans)
{
	struct scan scan = {.samples = malloc(THREADS * sizeof(struct sample)), .count = THREADS};
	struct column_list list = {0};
	struct error e = {0};
	int64_t start_ns;

	if (column_list_add(&list, parts[part].columns, true, &e) || !scan.samples)
		return 0;
	for (unsigned int i = 0; i < THREADS; i++)
		scan.samples[i] = sample_make(i);
	start_ns = clock_cpu_ns();
	if (!parts[part].run(&list, &scan, scans))
		return 0;
	start_ns = clock_cpu_ns() - start_ns;
	free(scan.samples);
	names_clear();
	return (double)(scans * THREADS) * NS_PER_SECOND / (double)start_ns;
}

int main(int argc, char **argv)
{
	long scans = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

	for (size_t i = 0; scans > 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, argv[1]))
			return printf("%.0f\n", part_rate(i, scans)) < 0;
	fprintf(stderr, "usage: report_path groups|rows SCANS\n");
	return 2;
}
