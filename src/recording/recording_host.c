/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording_host.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "recording/frame.h"
#include "recording/struct_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define SOURCE_OF_PROC "proc"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

struct host_row {
	int64_t time_us, format, cpus, rate_hz, boot_us;
	const char *version, *host, *kernel, *machine, *boot_id, *timezone, *source, *command;
};

static const struct row_column columns[] = {
	{"timestamp", ROW_TIME, offsetof(struct host_row, time_us)},
	{"format", ROW_NUMBER, offsetof(struct host_row, format)},
	{"version", ROW_TEXT, offsetof(struct host_row, version)},
	{"host", ROW_TEXT, offsetof(struct host_row, host)},
	{"kernel", ROW_TEXT, offsetof(struct host_row, kernel)},
	{"machine", ROW_TEXT, offsetof(struct host_row, machine)},
	{"cpus", ROW_COUNT, offsetof(struct host_row, cpus)},
	{"rate_hz", ROW_COUNT, offsetof(struct host_row, rate_hz)},
	{"boot_id", ROW_TEXT, offsetof(struct host_row, boot_id)},
	{"boot_us", ROW_NUMBER, offsetof(struct host_row, boot_us)},
	{"timezone", ROW_TEXT, offsetof(struct host_row, timezone)},
	{"source", ROW_TEXT, offsetof(struct host_row, source)},
	{"command", ROW_TEXT, offsetof(struct host_row, command)},
};

static const struct host_row blank = {.host = "", .kernel = "", .source = ""};

static const struct row_kind kind = {.columns = columns,
				     .count = sizeof(columns) / sizeof(columns[0]),
				     .blank = &blank,
				     .size = sizeof(blank)};

static void boot_id_read(char *id, size_t size)
{
	int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, id, size - 1);

	if (fd >= 0)
		close(fd);
	id[got < 0 ? 0 : got] = '\0';
	id[strcspn(id, "\n")] = '\0';
}

void recording_host_add(struct text *rows, int64_t time_us, const struct source_status *status,
			const char *command)
{
	time_t seconds = time_us / US_PER_SECOND;
	struct utsname system;
	struct tm tm;
	char boot_id[64], zone[16];

	boot_id_read(boot_id, sizeof(boot_id));
	localtime_r(&seconds, &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	struct_row_add(rows, &kind,
		       &(struct host_row){.time_us = time_us,
					  .format = FRAME_FORMAT,
					  .version = TSNAP_VERSION,
					  .host = status->host,
					  .kernel = status->kernel,
					  .machine = uname(&system) ? "" : system.machine,
					  .cpus = (int64_t)status->cpus,
					  .rate_hz = (int64_t)status->rate_hz,
					  .boot_id = boot_id,
					  .boot_us = clock_boot_ns() / NS_PER_US,
					  .timezone = zone,
					  .source = status->of_proc ? SOURCE_OF_PROC : "bpf",
					  .command = command});
}

void recording_host_read(struct recording_host *host, struct csv_input *input)
{
	struct struct_rows *rows = memory_get(sizeof(*rows));
	struct host_row row = blank;
	struct error e = {0};
	int more;

	rows->kind = &kind;
	rows->reader = (struct csv_reader){.fd = -1, .input = input, .name = ""};
	do
		more = struct_rows_read(rows, &row, &e);
	while (more == -EINTR);
	/* samples are replayed even if this row can't be read */
	if (more > 0) {
		snprintf(host->host, sizeof(host->host), "%s", row.host);
		snprintf(host->kernel, sizeof(host->kernel), "%s", row.kernel);
		host->of_proc = !strcmp(row.source, SOURCE_OF_PROC);
		host->cpus = row.cpus;
		host->rate_hz = row.rate_hz;
	}
	struct_rows_done(rows);
	free(rows);
	error_done(&e);
}

void recording_host_describe(const struct recording_host *host, struct source_status *status)
{
	memcpy(status->host, host->host, sizeof(status->host));
	memcpy(status->kernel, host->kernel, sizeof(status->kernel));
	status->of_proc = host->of_proc;
	if (host->cpus)
		status->cpus = host->cpus;
	if (host->rate_hz)
		status->rate_hz = host->rate_hz;
}
