/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/jvm_counters.h"
#include "base/clock.h"
#include "proc/proc.h"
#include "proc/user_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 65536 /* of the mapping; the JVM's default is 32768 */
#define MAPS_LINES_MAX 65536
#define TYPE_LONG 'J'
#define MAGIC 0xcafec0c0u /* big-endian, whatever the values are */

struct prologue {
	uint8_t magic[4];
	uint8_t byte_order, major, minor, accessible;
	int32_t used, overflow;
	int64_t modified;
	int32_t entry_offset, entry_count;
};

struct entry {
	int32_t length, name_offset, vector_length;
	uint8_t type, flags, units, variability;
	int32_t data_offset;
};

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), ended = strlen(end);

	return length >= ended && !strcmp(name + length - ended, end);
}

/* Ticks of a counter and their number a second, found among the entries. */
struct ticks {
	int64_t stopped, gc, frequency;
	bool stops; /* the JVM counts them */
};

static void value_take(const char *name, int64_t value, struct ticks *ticks,
		       struct jvm_counters *counters)
{
	static const char collector[] = "sun.gc.collector.";

	if (value < 0)
		return;
	if (!strcmp(name, "sun.rt.safepointTime")) {
		ticks->stopped = value;
		ticks->stops = true;
	} else if (!strcmp(name, "sun.os.hrt.frequency")) {
		ticks->frequency = value;
	} else if (!strcmp(name, "java.threads.live")) {
		counters->threads = value;
	} else if (!strncmp(name, collector, strlen(collector))) {
		if (ends_with(name, ".time"))
			ticks->gc += value;
		else if (ends_with(name, ".invocations"))
			counters->collections += value;
	}
}

static int64_t us_of(int64_t ticks, int64_t frequency)
{
	return (int64_t)((double)ticks * US_PER_SECOND / (double)frequency);
}

bool jvm_counters_parse(const void *from, size_t length, struct jvm_counters *counters)
{
	static const uint8_t magic[] = {MAGIC >> 24, MAGIC >> 16 & 0xff, MAGIC >> 8 & 0xff,
					MAGIC & 0xff};
	const char *bytes = from;
	struct ticks ticks = {0};
	struct prologue prologue;
	size_t at;

	*counters = (struct jvm_counters){0};
	if (length < sizeof(prologue))
		return false;
	memcpy(&prologue, bytes, sizeof(prologue));
	if (memcmp(prologue.magic, magic, sizeof(magic)) != 0 || !prologue.accessible ||
	    prologue.byte_order != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) ||
	    prologue.major != 2 || prologue.entry_offset < (int32_t)sizeof(prologue))
		return false;
	at = (size_t)prologue.entry_offset;
	for (int32_t i = 0; i < prologue.entry_count; i++) {
		struct entry entry;
		int64_t value;
		size_t left;

		if (at > length || length - at < sizeof(entry))
			break;
		memcpy(&entry, bytes + at, sizeof(entry));
		left = length - at;
		if (entry.length < (int32_t)sizeof(entry) || (size_t)entry.length > left)
			break;
		left = (size_t)entry.length;
		if (entry.type == TYPE_LONG && !entry.vector_length && entry.name_offset >= 0 &&
		    (size_t)entry.name_offset < left && entry.data_offset >= 0 &&
		    left >= sizeof(value) && (size_t)entry.data_offset <= left - sizeof(value) &&
		    memchr(bytes + at + entry.name_offset, '\0',
			   left - (size_t)entry.name_offset)) {
			memcpy(&value, bytes + at + entry.data_offset, sizeof(value));
			value_take(bytes + at + entry.name_offset, value, &ticks, counters);
		}
		at += left;
	}
	if (!ticks.stops || ticks.frequency <= 0)
		return false;
	counters->stopped_us = us_of(ticks.stopped, ticks.frequency);
	counters->gc_us = us_of(ticks.gc, ticks.frequency);
	return true;
}

uint64_t jvm_counters_find(const char *root, int64_t pid)
{
	FILE *file = proc_file_stream(root, 0, pid, "maps");
	char *line = NULL, shared[8] = "";
	size_t capacity = 0;
	uint64_t address = 0;

	for (int i = 0;
	     file && !address && i < MAPS_LINES_MAX && getline(&line, &capacity, file) > 0; i++)
		if (strstr(line, "/hsperfdata_") &&
		    (sscanf(line, "%" SCNx64 "-%*x %7s", &address, shared) != 2 ||
		     shared[3] != 's'))
			address = 0;
	free(line);
	if (file)
		fclose(file);
	return address;
}

bool jvm_counters_read(const char *root, int64_t pid, uint64_t address,
		       struct jvm_counters *counters)
{
	static char bytes[BYTES_MAX];
	ssize_t got = user_memory_read(root, pid, pid, address, bytes, sizeof(bytes));

	return got > 0 && jvm_counters_parse(bytes, (size_t)got, counters);
}
