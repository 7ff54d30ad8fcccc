/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CLOCK_PAIRS 5
#define CLOCK_PAIR_NS (10 * NS_PER_US) /* two reads within this time count as simultaneous */

static int64_t clock_read_ns(clockid_t id)
{
	struct timespec now = {0};

	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

int64_t clock_utc_us(void)
{
	return clock_read_ns(CLOCK_REALTIME) / NS_PER_US;
}

int64_t clock_utc_of_us(int64_t monotonic_ns)
{
	int64_t least_ns = INT64_MAX, utc_us = 0;

	/* a thread that loses its CPU between the two reads gets times that are that far apart */
	for (int i = 0; i < CLOCK_PAIRS && least_ns > CLOCK_PAIR_NS; i++) {
		int64_t before_ns = clock_monotonic_ns(), read_us = clock_utc_us();
		int64_t took_ns = clock_monotonic_ns() - before_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		utc_us = read_us - (before_ns + took_ns / 2 - monotonic_ns) / NS_PER_US;
	}
	return utc_us;
}

int64_t clock_thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_cpu_of_ns(pid_t pid)
{
	clockid_t clock;

	return pid > 0 && !clock_getcpuclockid(pid, &clock) ? clock_read_ns(clock) : 0;
}

int64_t clock_children_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SECOND +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

int clock_sleep_until(int64_t monotonic_ns)
{
	struct timespec until = {monotonic_ns / NS_PER_SECOND, monotonic_ns % NS_PER_SECOND};

	if (monotonic_ns <= 0)
		return 0;
	return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* The first and the last second of the years 1000 to 9999. */
#define FIRST_S (-30610224000ll)
#define LAST_S 253402300799ll

/* Splits a time into seconds, which it returns, and microseconds. */
static time_t seconds_of(int64_t utc_us, int *us)
{
	time_t seconds = utc_us / US_PER_SECOND;

	*us = (int)(utc_us % US_PER_SECOND);
	if (*us < 0) {
		*us += US_PER_SECOND;
		seconds--;
	}
	/* numbers of recordings may lead out of these years */
	if (seconds < FIRST_S || seconds > LAST_S) {
		*us = 0;
		seconds = seconds < 0 ? FIRST_S : LAST_S;
	}
	return seconds;
}

void clock_format_iso(int64_t utc_us, char text[CLOCK_ISO_SIZE])
{
	int us;
	time_t seconds = seconds_of(utc_us, &us);
	struct tm tm;
	size_t length;

	gmtime_r(&seconds, &tm);
	length = strftime(text, CLOCK_ISO_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + length, CLOCK_ISO_SIZE - length, ".%06dZ", us);
}

void clock_format_local(int64_t utc_us, char text[CLOCK_LOCAL_SIZE])
{
	int us;
	time_t seconds = seconds_of(utc_us, &us);
	struct tm tm;
	size_t length;

	localtime_r(&seconds, &tm);
	length = strftime(text, CLOCK_LOCAL_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
	length += (size_t)snprintf(text + length, CLOCK_LOCAL_SIZE - length, ".%06d ", us);
	if (!strftime(text + length, CLOCK_LOCAL_SIZE - length, "%Z", &tm))
		text[length] = '\0';
}

int64_t clock_zone_us(int64_t utc_us)
{
	int us;
	time_t seconds = seconds_of(utc_us, &us);
	struct tm tm;

	localtime_r(&seconds, &tm);
	return tm.tm_gmtoff * US_PER_SECOND;
}
