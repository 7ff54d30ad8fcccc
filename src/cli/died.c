/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/died.h"
#include "base/clock.h"
#include "base/text.h"
#include "recording/recording.h"
#include "report/event_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_US (60 * US_PER_SECOND)
#define AFTER_US US_PER_SECOND /* control groups count it a moment later */
#define OTHERS_MAX 5

/* What it did, for those who name no columns. */
#define COLUMNS "state,comm,syscall,filename,waits_on"

struct ended {
	int64_t pid, time_us;
	char comm[32];
};

struct exits {
	const char *who;
	struct ended last;		 /* pid 0: none */
	struct ended others[OTHERS_MAX]; /* of other names, the last ones */
	size_t other_count;
};

/* Outcomes of incidents of processes that ended (incident_event() of live/trace_table.c). */
static bool is_end(const struct event *event)
{
	static const char *const outcomes[] = {"killed", "core dumped", "oom killed"};
	const char *outcome = event->who.event.outcome;

	if (strcmp(event->trace, "incidents") || !outcome || event->who.thread.pid <= 0)
		return false;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		if (!strcmp(outcome, outcomes[i]))
			return true;
	return !strncmp(outcome, "exit ", strlen("exit "));
}

static void ended_take(void *to, const struct event *event)
{
	struct exits *exits = to;
	struct ended ended = {.pid = event->who.thread.pid, .time_us = event->who.scan.time_us};
	char pid[24];

	if (!is_end(event))
		return;
	snprintf(ended.comm, sizeof(ended.comm), "%s",
		 event->who.thread.comm ? event->who.thread.comm : "");
	snprintf(pid, sizeof(pid), "%lld", (long long)ended.pid);
	if (!strcmp(exits->who, ended.comm) || !strcmp(exits->who, pid))
		exits->last = ended;
	else
		exits->others[exits->other_count++ % OTHERS_MAX] = ended;
}

static int none_found(const struct exits *exits, struct error *e)
{
	size_t count = exits->other_count < OTHERS_MAX ? exits->other_count : OTHERS_MAX;
	struct text others = {0};
	int err;

	for (size_t i = 0; i < count; i++) {
		const struct ended *ended =
			&exits->others[(exits->other_count - 1 - i) % OTHERS_MAX];
		char local[CLOCK_LOCAL_SIZE];

		clock_format_local(ended->time_us, local);
		text_add_string(&others, i ? ", " : "; the last that did are ");
		text_add_printable(&others, ended->comm);
		text_add_format(&others, " (%lld) at %.*s", (long long)ended->pid, 19, local);
	}
	err = error_set(e, ENOENT, EXIT_USAGE,
			"--died %s: no process of that name or id died in the recording%s",
			exits->who, text_string(&others));
	text_done(&others);
	return err;
}

int died_find(struct config *config, struct error *e)
{
	static char pid[24];
	struct recording_part *part = &config->part;
	struct exits exits = {.who = config->died};
	const char **paths = config_replay_paths(config);
	int err = recording_events(paths, part, ended_take, &exits, e);

	free(paths);
	if (!err && !exits.last.pid)
		err = none_found(&exits, e);
	if (err)
		return err;
	snprintf(pid, sizeof(pid), "%lld", (long long)exits.last.pid);
	config->live.process = pid;
	if (!config->from)
		part->from_us = exits.last.time_us - BEFORE_US;
	if (!config->to)
		part->until_us = exits.last.time_us + AFTER_US;
	if (config->mode != MODE_REPORT || config->report.findings)
		return 0;
	config->named = true;
	if (!config->trace)
		config->trace = "incidents";
	if (!config->columns && !config->by && !config->more_columns)
		config->columns = COLUMNS;
	return 0;
}
