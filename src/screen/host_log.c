/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/host_log.h"
#include "base/clock.h"
#include "base/memory.h"
#include "report/status_since.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define NEAR_US (HOST_LOG_STEP_US + 2 * US_PER_SECOND)

struct host_log_entry {
	int64_t time_us;
	size_t device_count, listener_count, unread_count, runtime_count;
	struct source_device devices[SOURCE_DEVICES_MAX];
	struct source_listener listeners[SOURCE_LISTENERS_MAX];
	struct source_unread unread[SOURCE_UNREAD_MAX];
	struct source_runtime runtimes[SOURCE_RUNTIMES_MAX];
};

/* Copies the counts between two structs that have the same members. */
#define COUNTS_COPY(to, from, member, number)                                                 \
	do {                                                                                  \
		(to)->number = (from)->number;                                                \
		memcpy((to)->member, (from)->member, sizeof(*(to)->member) * (from)->number); \
	} while (0)
#define ALL_COPY(to, from)                                        \
	do {                                                      \
		COUNTS_COPY(to, from, devices, device_count);     \
		COUNTS_COPY(to, from, listeners, listener_count); \
		COUNTS_COPY(to, from, unread, unread_count);      \
		COUNTS_COPY(to, from, runtimes, runtime_count);   \
	} while (0)

/* The entry with that number, which is one of the last HOST_LOG_ENTRIES. */
static struct host_log_entry *entry_at(const struct host_log *log, uint64_t number)
{
	return &log->entries[number % HOST_LOG_ENTRIES];
}

bool host_log_is_due(struct host_log *log, int64_t time_us)
{
	bool due;

	pthread_mutex_lock(&log->mutex);
	due = !log->count || time_us - entry_at(log, log->count - 1)->time_us >= HOST_LOG_STEP_US;
	pthread_mutex_unlock(&log->mutex);
	return due;
}

void host_log_add(struct host_log *log, int64_t time_us, const struct source_status *status)
{
	struct host_log_entry *entry;

	pthread_mutex_lock(&log->mutex);
	if (!log->entries)
		log->entries = memory_get(HOST_LOG_ENTRIES * sizeof(*log->entries));
	entry = entry_at(log, log->count++);
	entry->time_us = time_us;
	ALL_COPY(entry, status);
	pthread_mutex_unlock(&log->mutex);
}

/* The last entry until that time, or else the first one that there is; NULL: there is none. */
static const struct host_log_entry *entry_until(const struct host_log *log, int64_t time_us)
{
	uint64_t oldest = log->count > HOST_LOG_ENTRIES ? log->count - HOST_LOG_ENTRIES : 0;

	for (uint64_t number = log->count; number > oldest; number--)
		if (entry_at(log, number - 1)->time_us <= time_us || number - 1 == oldest)
			return entry_at(log, number - 1);
	return NULL;
}

/* Makes the counts between the log's entries at the ends of the window. Returns the time between
 * these; 0: there are none near enough. */
static int64_t between_make(const struct host_log *log, int64_t from_us, int64_t until_us,
			    struct source_status *between)
{
	const struct host_log_entry *first = entry_until(log, from_us),
				    *last = entry_until(log, until_us + HOST_LOG_STEP_US / 2);
	struct source_status *before;

	if (!first || first->time_us >= last->time_us || until_us - last->time_us > NEAR_US ||
	    from_us - first->time_us > NEAR_US)
		return 0;
	before = memory_get(sizeof(*before));
	ALL_COPY(between, last);
	ALL_COPY(before, first);
	status_subtract(between, before);
	free(before);
	return last->time_us - first->time_us;
}

void host_log_take(struct host_log *log, int64_t from_us, int64_t until_us, int64_t elapsed_us,
		   struct source_status *status)
{
	struct source_status *between = memory_get(sizeof(*between));
	int64_t us;

	pthread_mutex_lock(&log->mutex);
	us = between_make(log, from_us, until_us, between);
	pthread_mutex_unlock(&log->mutex);
	for (size_t i = 0; i < between->device_count; i++) {
		struct source_device *device = &between->devices[i];

		device->requests = ratio(device->requests, elapsed_us, us);
		device->taken_us = ratio(device->taken_us, elapsed_us, us);
	}
	ALL_COPY(status, between);
	free(between);
}

void host_log_done(struct host_log *log)
{
	free(log->entries);
	*log = (struct host_log){0};
}
