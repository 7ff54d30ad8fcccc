/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --critical-path: takes samples of all threads, and returns those of the process's paths. */
#include "cli/run_state.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Reports a process that does not exist, before anything is compiled. */
static int path_process_check(const char *who, struct error *e)
{
	if (who[strspn(who, "0123456789")] || !kill((pid_t)strtol(who, NULL, 10), 0) ||
	    errno != ESRCH)
		return 0;
	return error_set(e, ESRCH, EXIT_FAILED,
			 "--critical-path %s: there is no process %s; ps -e lists all processes",
			 who, who);
}

int run_path_begin(struct run *run, struct error *e)
{
	const char *who = run->config->critical_path;
	int err;

	if (!who) {
		if (!run->config->replay && column_list_needs(&run->list) & NEED_PATH)
			return error_set(e, EINVAL, EXIT_USAGE,
					 "the columns path_end to path_of_tid need --critical-path "
					 "PID|NAME, or a recording that has them");
		return 0;
	}
	run->path_filter.all_states = true;
	err = filter_set_process(&run->path_filter, who, e);
	if (err) {
		error_done(e);
		*e = (struct error){0};
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--critical-path %s: give ids (positive numbers) or patterns of "
				 "names, separated by commas",
				 who);
	}
	err = path_process_check(who, e);
	if (err)
		return err;
	run->path.wanted = true;
	run->path.ordered = !run_grouped(run);
	run->interval.path_of = who;
	return 0;
}

uint64_t run_path_needs(const struct run *run)
{
	return run->path.wanted ? sample_needs_close(NEED_PATH | NEED_WAITS |
						     filter_needs(&run->path_filter))
				: 0;
}

static void path_take(void *to, const struct sample *sample)
{
	struct run *run = to;

	run->tally.samples++;
	if (run_grouped(run))
		run_add_sample(run, sample, EXACT_NOTE_NONE);
	else
		run_add_row(run, sample);
}

void run_path_take(struct run *run, const struct scan *batch)
{
	run->tally.samples -= (int64_t)batch->count; /* samples of paths count instead */
	for (size_t i = 0; i < batch->count; i++) {
		const struct sample *sample = &batch->samples[i];
		bool own = filter_accepts(&run->path_filter, sample);

		if (own)
			run->source->follow(run->source, sample->thread.tid);
		path_notes_add(&run->path.notes, batch, sample, own);
	}
}

static void wakeup_take(void *to, const struct wakeup *wakeup)
{
	path_notes_wakeup(to, wakeup);
}

void run_path_end_scan(struct run *run)
{
	struct source *source = run->source;
	int64_t until_ns;

	if (!run->path.wanted)
		return;
	until_ns = source->wakeups(source, wakeup_take, &run->path.notes);
	critical_path_end_scan(&run->path, until_ns, path_take, run);
	for (size_t i = 0; i < run->path.led_to_count; i++)
		source->follow(source, run->path.led_to[i]);
	run->path.led_to_count = 0;
	if (source->crowded && source->crowded(source))
		run_path_settle(run);
}

void run_path_settle(struct run *run)
{
	if (run->path.wanted)
		critical_path_settle(&run->path, path_take, run);
}
