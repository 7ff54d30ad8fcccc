/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time: every duration and monotonic time is in nanoseconds; UTC times are in microseconds since
 * 1970. */
#ifndef TSNAP_BASE_CLOCK_H
#define TSNAP_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NS_PER_SECOND 1000000000ll
#define NS_PER_MS 1000000ll
#define NS_PER_US 1000ll
#define US_PER_MS 1000ll
#define US_PER_SECOND 1000000ll

int64_t clock_monotonic_ns(void); /* the clock of bpf_ktime_get_ns() */
int64_t clock_boot_ns(void);	  /* monotonic and suspended time, as a task's start_boottime */
int64_t clock_utc_us(void);

/* Converts a monotonic time to UTC, correctly even if the calling thread loses its CPU between the
 * reads of the two clocks. */
int64_t clock_utc_of_us(int64_t monotonic_ns);

int64_t clock_children_cpu_ns(void); /* CPU time of all children that were waited for */
int64_t clock_thread_cpu_ns(void);   /* CPU time of this thread, user and kernel */
int64_t clock_cpu_ns(void);	     /* CPU time of this process, all threads, user and kernel */
int64_t clock_cpu_of_ns(pid_t pid);  /* CPU time of another process; 0: no such process */

/* Least difference between the clock's time and the time that passed that counts as a step. NTP
 * steps from 128 ms on, and slews by 0.5 ms a second at most. */
#define CLOCK_STEP_US (100 * 1000ll)

/* Sleeps until the monotonic deadline. 0, or -EINTR if a signal came first. */
int clock_sleep_until(int64_t monotonic_ns);

#define CLOCK_ISO_SIZE 32
/* Formats a time as 2026-11-20T20:42:53.123456Z; one outside the years 1000 to 9999, which a
 * damaged recording may have, as their first or last second. */
void clock_format_iso(int64_t utc_us, char text[CLOCK_ISO_SIZE]);

#define CLOCK_LOCAL_SIZE 64
#define CLOCK_LOCAL_TIME 11 /* where the time of day begins */
#define CLOCK_LOCAL_ZONE 27 /* where the zone begins */
/* Formats a time as 2026-11-20 21:42:53.123456 CET, in the local zone, as people read it. */
void clock_format_local(int64_t utc_us, char text[CLOCK_LOCAL_SIZE]);
/* What the local zone's time is ahead of UTC then. */
int64_t clock_zone_us(int64_t utc_us);

#endif
