/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/feed.h"
#include "base/clock.h"
#include "report/value.h"

#include <errno.h>

static int batch_take(void *take_to, const struct scan *batch)
{
	struct feed *feed = take_to;

	history_add_batch(feed->history, batch);
	return 0;
}

static void feed_take(struct feed *feed, struct source *source)
{
	feed->source = source;
	source->take = batch_take;
	source->take_to = feed;
}

void feed_begin(struct feed *feed, struct source *source, struct history *history)
{
	*feed = (struct feed){.history = history};
	feed_take(feed, source);
}

int feed_finish(struct feed *feed, int64_t until_ns, struct error *e)
{
	int more = 1;

	while (more > 0 && feed->last_ns + feed->period_us * NS_PER_US < until_ns)
		more = feed_next(feed, e);
	return more;
}

void feed_change(struct feed *feed, struct source *source)
{
	struct source_status status;

	feed->source->describe(feed->source, &status);
	for (size_t i = 0; i < status.missed_count; i++)
		if (status.missed[i].count && !status.missed[i].standing &&
		    !status.missed[i].natural)
			source_status_add(&feed->before, &status.missed[i]);
	feed->account_ns = feed->reported_us = 0;
	feed->changed = feed->last_ns;
	feed_take(feed, source);
}

/* Counts the scans that were due between the previous source's last one and that time. */
static void lost_count(struct feed *feed, int64_t scan_ns)
{
	int64_t since_us = (scan_ns - feed->last_ns) / NS_PER_US,
		periods = feed->period_us ? (since_us + feed->period_us / 2) / feed->period_us : 0;

	if (feed->changed && periods > 1)
		feed->lost_count += (uint64_t)periods - 1;
	feed->changed = false;
}

static void account_take(void *to, const struct sample *account)
{
	history_add_account(to, account);
}

static void trace_take(void *to, const struct trace_kind *kind, const struct sample *who,
		       const struct histogram *histogram)
{
	history_add_trace(to, kind, who, histogram);
}

int feed_next(struct feed *feed, struct error *e)
{
	struct source *source = feed->source;
	struct scan scan = {0};
	int more = source->next(source, &scan, e);

	if (more <= 0)
		return more;
	history_end_scan(feed->history, &scan);
	lost_count(feed, scan.scan_time_ns);
	feed->last_ns = scan.scan_time_ns;
	if (source->host &&
	    scan.scan_time_ns - feed->account_ns >= HISTORY_ACCOUNT_US * NS_PER_US) {
		source->host->account(source, account_take, feed->history);
		feed->account_ns = scan.scan_time_ns;
	}
	if (feed->traces && source->host &&
	    source->host->traced(source, false, FEED_TRACE_NEEDS, trace_take, feed->history, e))
		return -EIO;
	if (source->host)
		source->host->release(source);
	return more;
}

/* Describes the source; with what is counted of the host where the log is due. */
static void host_describe(struct source *source, struct shown_source *reported)
{
	int64_t now_us = clock_utc_us();
	bool due = reported->host_log && host_log_is_due(reported->host_log, now_us);

	source->describes_host = due;
	source->describe(source, &reported->status);
	if (due)
		host_log_add(reported->host_log, now_us, &reported->status);
	source->describes_host = reported->host_log;
}

void feed_describe(struct feed *feed, struct shown_source *reported)
{
	int64_t now_us = clock_monotonic_ns() / NS_PER_US, cpu_ns;

	host_describe(feed->source, reported);
	if (reported->status.rate_hz > 0)
		feed->period_us = US_PER_SECOND / reported->status.rate_hz;
	for (size_t i = 0; i < feed->before.missed_count; i++)
		source_status_miss(&reported->status, feed->before.missed[i].what,
				   feed->before.missed[i].count);
	source_status_miss_any(&reported->status, "scans while probes were loaded",
			       feed->lost_count);
	cpu_ns = reported->status.own_cpu_ns;
	reported->own_cpu = ABSENT;
	if (cpu_ns != ABSENT && feed->reported_us)
		reported->own_cpu = ratio(cpu_ns - feed->reported_cpu_ns, 10,
					  now_us - feed->reported_us); /* 1 ns per us is 0.1 % */
	feed->reported_us = now_us;
	feed->reported_cpu_ns = cpu_ns == ABSENT ? 0 : cpu_ns;
}
