/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/feed.h"
#include "base/clock.h"
#include "report/value.h"

static int part_take(void *taker, const struct scan *part)
{
	struct feed *feed = taker;

	history_add_part(feed->history, part);
	return 0;
}

void feed_begin(struct feed *feed, struct source *source, struct history *history)
{
	*feed = (struct feed){.source = source, .history = history};
	source->take = part_take;
	source->taker = feed;
}

static void account_take(void *to, const struct sample *account)
{
	history_add_account(to, account);
}

int feed_next(struct feed *feed, struct error *e)
{
	struct source *source = feed->source;
	struct scan scan = {0};
	int more = source->next(source, &scan, e);

	if (more <= 0)
		return more;
	history_end_scan(feed->history, &scan);
	if (source->account && scan.time_us - feed->account_us >= HISTORY_ACCOUNT_US) {
		source->account(source, account_take, feed->history);
		feed->account_us = scan.time_us;
	}
	if (source->release)
		source->release(source);
	return more;
}

void feed_tell(struct feed *feed, struct shown_source *told)
{
	int64_t now_us = clock_monotonic_ns() / NS_PER_US, cpu_ns;

	feed->source->describe(feed->source, &told->facts);
	cpu_ns = told->facts.own_cpu_ns;
	told->own_cpu = ABSENT;
	if (cpu_ns != ABSENT && feed->told_us)
		told->own_cpu = ratio(cpu_ns - feed->told_cpu_ns, 10,
				      now_us - feed->told_us); /* ns a us is a tenth of a % */
	feed->told_us = now_us;
	feed->told_cpu_ns = cpu_ns == ABSENT ? 0 : cpu_ns;
}
