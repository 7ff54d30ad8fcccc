/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of a host that does not exist, written as `tsnap -o DIR` writes one.
 *
 * recorded DIR SCANS: SCANS scans of 5000 threads, all of them shown, with the default columns,
 * over the eight hours that end at a fixed time. Prints the number of samples.
 */
#include "made.h"
#include "base/clock.h"
#include "base/error.h"
#include "recording/recorder_part.h"
#include "recording/scan_rows.h"
#include "render/renderer.h"
#include "report/grid.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 5000u
#define KINDS 250u /* number of kinds of threads: a name, a program and a control group each */
#define BEGIN_US 1795190400000000ll
#define LENGTH_US (8 * PART_HOUR_US)

static const char *const calls[] = {"futex", "read",	  "epoll_wait", "pread64",
				    "fsync", "io_submit", "nanosleep",	"sendto"};

/* Sets the fields that do not change while a thread lives. */
static void thread_make(struct sample *sample, unsigned int i)
{
	static const char *const users[] = {"root", "postgres", "www-data", "prometheus", "nobody"};
	unsigned int kind = dice(KINDS);

	*sample = *sample_absent();
	sample->thread.tid = 1000 + 7 * (int64_t)i;
	sample->thread.pid = sample->thread.tid - dice(64);
	sample->thread.user = name_of_string(users[kind % 5]);
	sample->thread.comm = name("worker-", kind, "");
	sample->process.exe = name("/usr/lib/postgresql/", kind / 10, "/bin/postgres");
	sample->cgroup.path = name("/system.slice/postgresql.slice/instance@", kind, ".service");
}

/* Sets the state of the thread at a scan: one of eight threads is not asleep. */
static void thread_step(struct sample *sample, int64_t time_us, int64_t weight_us)
{
	unsigned int call = (unsigned int)(sample->thread.tid / 7 + dice(3)) % 8, asleep = dice(8);

	sample->scan.weight_us = weight_us;
	sample->now.state = asleep ? STATE_SLEEP : (int64_t)dice(3);
	sample->now.state_us = sample->scan.time_us == ABSENT || !asleep || !dice(8)
				       ? dice(50000)
				       : sample->now.state_us + time_us - sample->scan.time_us;
	sample->scan.time_us = time_us;
	sample->now.cpu = dice(64);
	sample->waker.tid = dice(3) ? 1000 + (int64_t)dice(35000) : ABSENT;
	sample->call.name = sample->now.state ? name_of_string(calls[call]) : NULL;
	sample->file.name = call == 1 || call == 3 || call == 4
				    ? name("/var/lib/postgresql/15/main/base/16384/", dice(500), "")
				    : NULL;
	sample->sums.cpu_us = asleep ? 0 : dice(20000);
	sample->sums.runq_us = asleep ? 0 : dice(2000);
	sample->sums.dwait_us = sample->now.state == STATE_DISK ? dice(2000) : 0;
	sample->sums.sleep_us =
		weight_us - sample->sums.cpu_us - sample->sums.runq_us - sample->sums.dwait_us;
}

static int scan_write(struct recorder_part *part, struct grid *grid, const struct column_list *list,
		      const struct scan *scan)
{
	const struct scan_row row = {.time_us = scan->time_us,
				     .weight_us = scan->weight_us,
				     .samples = (int64_t)scan->count,
				     .threads = (int64_t)scan->count};
	struct text samples = {0}, scans = {0};
	int err = 0;

	if (!recorder_part_takes(part, scan->time_us)) {
		err = recorder_part_flush(part, scan->time_us);
		if (!err)
			err = recorder_part_begin(part, scan->time_us);
	}
	grid_fill_rows(grid, list, scan);
	renderer_csv.add(&samples, &(struct interval){.grid = grid});
	scan_row_add(&scans, &row);
	recorder_part_add(part, RECORD_SAMPLES, scan->time_us, &samples);
	recorder_part_add(part, RECORD_SCANS, scan->time_us, &scans);
	text_done(&samples);
	text_done(&scans);
	return err;
}

static int record(const char *directory, long count)
{
	struct recorder_part part = {.rights = {getegid(), 0640}, .name.host = "bench"};
	struct sample *samples = malloc(THREADS * sizeof(*samples));
	struct scan scan = {.samples = samples, .count = THREADS, .weight_us = LENGTH_US / count};
	struct column_list list = {0};
	struct grid grid = {0};
	struct text header = {0};
	struct error e = {0};
	int err = 0;

	part.directory = mkdir(directory, 0755) ? -1 : open(directory, O_RDONLY | O_DIRECTORY);
	if (part.directory < 0 || !samples || column_list_add(&list, ROW_COLUMNS_DEFAULT, true, &e))
		return -1;
	renderer_csv.begin(&header, &list);
	part.headers[RECORD_SAMPLES] = text_take(&header);
	part.headers[RECORD_SCANS] = strdup(SCAN_ROWS_HEADER "\n");
	for (unsigned int i = 0; i < THREADS; i++)
		thread_make(&samples[i], i);
	for (long at = 0; !err && at < count; at++) {
		scan.time_us = BEGIN_US + at * scan.weight_us;
		for (unsigned int i = 0; i < THREADS; i++)
			thread_step(&samples[i], scan.time_us, scan.weight_us);
		err = scan_write(&part, &grid, &list, &scan);
	}
	if (!err)
		err = recorder_part_flush(&part, scan.time_us);
	recorder_part_done(&part);
	close(part.directory);
	grid_done(&grid);
	free(samples);
	names_clear();
	return err;
}

int main(int argc, char **argv)
{
	long scans = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

	if (scans <= 0) {
		fprintf(stderr, "usage: recorded DIR SCANS\n");
		return 2;
	}
	if (record(argv[1], scans)) {
		perror(argv[1]);
		return 1;
	}
	return printf("%ld\n", scans * THREADS) < 0;
}
