/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/status_since.h"
#include "report/value.h"

#include <string.h>

static int64_t since(int64_t now, int64_t before)
{
	return now == ABSENT || before == ABSENT ? now : counted_since(now, before);
}

/* Subtracts the status of before; control groups that were not throttled since then are removed. */
static void quotas_subtract(struct source_status *now, const struct source_status *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < now->quota_count; i++) {
		struct source_quota quota = now->quotas[i];

		for (size_t j = 0; j < before->quota_count; j++) {
			const struct source_quota *old = &before->quotas[j];

			if (strcmp(quota.path, old->path) != 0)
				continue;
			quota.periods -= old->periods;
			quota.throttled_periods -= old->throttled_periods;
			quota.throttled_us -= old->throttled_us;
		}
		if (quota.throttled_periods > 0 || quota.throttled_us > 0)
			now->quotas[kept++] = quota;
	}
	now->quota_count = kept;
}

/* Subtracts the status of before; limits of which nothing was used since then are removed. */
static void io_limits_subtract(struct source_status *now, const struct source_status *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < now->io_limit_count; i++) {
		struct source_io_limit limit = now->io_limits[i];

		for (size_t j = 0; j < before->io_limit_count; j++) {
			const struct source_io_limit *old = &before->io_limits[j];

			if (limit.device == old->device && limit.word == old->word &&
			    !strcmp(limit.path, old->path))
				limit.used -= old->used;
		}
		if (limit.used > 0)
			now->io_limits[kept++] = limit;
	}
	now->io_limit_count = kept;
}

/* The same of listeners. */
static void listeners_subtract(struct source_status *now, const struct source_status *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < now->listener_count; i++) {
		struct source_listener listener = now->listeners[i];

		for (size_t j = 0; j < before->listener_count; j++)
			if (listener.inode == before->listeners[j].inode)
				listener.dropped -= before->listeners[j].dropped;
		if (listener.dropped > 0)
			now->listeners[kept++] = listener;
	}
	now->listener_count = kept;
}

/* Other programs that were attached since then have counted nothing before. */
static void device_times_subtract(struct source_device *now, const struct source_device *before)
{
	for (int i = 0; now->timed_ns == before->timed_ns && i < HISTOGRAM_BUCKETS; i++)
		now->times[i] -= before->times[i];
}

/* A device that is new has had all of its requests since then. */
static void devices_subtract(struct source_status *now, const struct source_status *before)
{
	for (size_t i = 0; i < now->device_count; i++)
		for (size_t j = 0; j < before->device_count; j++)
			if (now->devices[i].name == before->devices[j].name) {
				now->devices[i].requests -= before->devices[j].requests;
				now->devices[i].taken_us -= before->devices[j].taken_us;
				device_times_subtract(&now->devices[i], &before->devices[j]);
			}
}

/* A JVM that is new has been known since it was found. */
static void runtimes_subtract(struct source_status *now, const struct source_status *before)
{
	for (size_t i = 0; i < now->runtime_count; i++)
		for (size_t j = 0; j < before->runtime_count; j++) {
			const struct source_runtime *old = &before->runtimes[j];
			struct source_runtime *runtime = &now->runtimes[i];

			if (runtime->pid != old->pid || runtime->known_us < old->known_us)
				continue;
			runtime->known_us -= old->known_us;
			runtime->stopped_us -= old->stopped_us;
			runtime->gc_us -= old->gc_us;
			runtime->collections -= old->collections;
			runtime->grown -= old->grown;
			runtime->seconds -= old->seconds;
			runtime->grown_seconds -= old->grown_seconds;
		}
}

/* A pressure that was not known before, as that of a group which was made since, is not known of
 * the interval. */
static void pressure_subtract(struct source_pressure *now, const struct source_pressure *before)
{
	now->known = now->known && before->known;
	now->some_us -= before->some_us;
	now->full_us -= before->full_us;
	now->read_us -= before->read_us;
	/* a reading takes time, but no time is longer than that in which it passed */
	if (now->read_us < now->some_us)
		now->read_us = now->some_us;
}

void status_subtract(struct source_status *now, const struct source_status *before)
{
	now->own_cpu_ns = since(now->own_cpu_ns, before->own_cpu_ns);
	now->own_ns = since(now->own_ns, before->own_ns);
	now->disk_read = since(now->disk_read, before->disk_read);
	now->refaulted = since(now->refaulted, before->refaulted);
	now->evicted = since(now->evicted, before->evicted);
	now->busy_us = since(now->busy_us, before->busy_us);
	now->busy_error_us = since(now->busy_error_us, before->busy_error_us);
	now->bpf_ns = since(now->bpf_ns, before->bpf_ns);
	now->bpf_runs = since(now->bpf_runs, before->bpf_runs);
	self_cost_subtract(&now->self, &before->self);
	quotas_subtract(now, before);
	io_limits_subtract(now, before);
	listeners_subtract(now, before);
	devices_subtract(now, before);
	runtimes_subtract(now, before);
	now->taken_count =
		source_cpus_since(now->taken, now->taken_count, before->taken, before->taken_count);
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		pressure_subtract(&now->pressure[i], &before->pressure[i]);
		pressure_subtract(&now->group_pressure[i], &before->group_pressure[i]);
	}
	for (size_t i = 0; i < now->missed_count; i++)
		for (size_t j = 0; j < before->missed_count; j++)
			if (!now->missed[i].standing &&
			    !strcmp(now->missed[i].what, before->missed[j].what))
				now->missed[i].count =
					(uint64_t)counted_since((int64_t)now->missed[i].count,
								(int64_t)before->missed[j].count);
}
