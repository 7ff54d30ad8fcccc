/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording_host.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "recording/frame.h"
#include "recording/csv_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

static void text_value_add(struct text *rows, const char *value)
{
	text_add_char(rows, ',');
	csv_text_add(rows, value);
}

static void boot_id_add(struct text *rows)
{
	int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
	char id[64] = "";
	ssize_t got = fd < 0 ? -1 : read(fd, id, sizeof(id) - 1);

	if (fd >= 0)
		close(fd);
	id[got < 0 ? 0 : got] = '\0';
	id[strcspn(id, "\n")] = '\0';
	text_value_add(rows, id);
}

void recording_host_add(struct text *rows, int64_t time_us, const struct source_status *status,
			const char *command)
{
	time_t seconds = time_us / US_PER_SECOND;
	struct utsname system;
	struct tm tm;
	char time[CLOCK_ISO_SIZE], zone[16];

	clock_format_iso(time_us, time);
	localtime_r(&seconds, &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	text_add_format(rows, "\"%s\",%d", time, FRAME_FORMAT);
	text_value_add(rows, TSNAP_VERSION);
	text_value_add(rows, status->host);
	text_value_add(rows, status->kernel);
	text_value_add(rows, uname(&system) ? "" : system.machine);
	text_add_format(rows, ",%lld,%lld", (long long)status->cpus, (long long)status->rate_hz);
	boot_id_add(rows);
	text_add_format(rows, ",%lld", (long long)(clock_boot_ns() / NS_PER_US));
	text_value_add(rows, zone);
	text_value_add(rows, command);
	text_add_char(rows, '\n');
}

/* Takes a field of the row by its column's name: columns may come in any order. */
static void field_take(struct recording_host *host, const char *name, const char *value)
{
	int64_t number;

	if (!strcmp(name, "host"))
		snprintf(host->host, sizeof(host->host), "%s", value);
	else if (!strcmp(name, "kernel"))
		snprintf(host->kernel, sizeof(host->kernel), "%s", value);
	else if (!strcmp(name, "cpus") && !csv_number_read(value, &number) && number > 0)
		host->cpus = number;
	else if (!strcmp(name, "rate_hz") && !csv_number_read(value, &number) && number > 0)
		host->rate_hz = number;
}

static int record_read(struct csv_reader *reader, struct csv_field *fields, size_t *count,
		       struct error *e)
{
	int more;

	do
		more = csv_read(reader, fields, count, e);
	while (more == -EINTR);
	return more;
}

void recording_host_read(struct recording_host *host, struct csv_input *input)
{
	struct csv_reader reader = {.fd = -1, .input = input, .name = ""};
	struct csv_field *fields = memory_get(CSV_FIELDS_MAX * sizeof(*fields));
	char *names[CSV_FIELDS_MAX] = {0};
	size_t count = 0, name_count = 0;
	struct error e = {0};

	if (record_read(&reader, fields, &count, &e) > 0)
		for (; name_count < count; name_count++)
			names[name_count] = memory_text(fields[name_count].text,
							strlen(fields[name_count].text));
	/* samples are replayed even if this row can't be read */
	if (name_count && record_read(&reader, fields, &count, &e) > 0 && count == name_count)
		for (size_t i = 0; i < count && names[i]; i++)
			field_take(host, names[i], fields[i].text);
	for (size_t i = 0; i < name_count; i++)
		free(names[i]);
	free(fields);
	csv_done(&reader);
	error_done(&e);
}

void recording_host_describe(const struct recording_host *host, struct source_status *status)
{
	memcpy(status->host, host->host, sizeof(status->host));
	memcpy(status->kernel, host->kernel, sizeof(status->kernel));
	if (host->cpus)
		status->cpus = host->cpus;
	if (host->rate_hz)
		status->rate_hz = host->rate_hz;
}
