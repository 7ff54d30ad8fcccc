/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_goroutines.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "base/names.h"
#include "live/routine_parsers.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"
#include "sample/sample.h"
#include "unwind/runtime/goroutines.h"

#include <errno.h>

#define PROC_ROOT "/proc"

/* Adds a stack as folded stacks are: the outermost function first. */
static void stack_add(const struct goroutines *goroutines, const struct goroutine_group *group,
		      struct text *out)
{
	if (!group->frame_count)
		return;
	if (group->cut)
		text_add_string(out, "[lost];");
	for (uint32_t i = group->frame_count; i-- > 0;) {
		text_add_printable(out, goroutine_function(goroutines, group->frames[i]));
		if (i)
			text_add_char(out, ';');
	}
}

static const char *group_reason(const struct goroutines *goroutines,
				const struct goroutine_group *group)
{
	return goroutine_waits(group->state) && group->reason < GOROUTINE_REASONS_MAX
		       ? goroutines->reasons[group->reason]
		       : "";
}

static void group_add(const struct goroutines *goroutines, const struct goroutine_group *group,
		      bool labels, struct text *out)
{
	const char *reason = group_reason(goroutines, group);
	struct text words = {0};

	text_add_printable(&words, *reason ? reason : "-");
	text_add_format(out, "%7llu  %-9s  %-22s  ", (unsigned long long)group->count,
			goroutine_state_name(group->state), text_string(&words));
	text_done(&words);
	if (group->waited_ns >= 0)
		text_add_format(out, "%9.1f  ", (double)group->waited_ns / NS_PER_SECOND);
	else
		text_add_string(out, "        -  ");
	if (labels) {
		text_add_printable(out, group->labels ? group->labels : "-");
		text_add_string(out, "  ");
	}
	if (!group->frame_count)
		text_add_char(out, '-');
	stack_add(goroutines, group, out);
	text_add_char(out, '\n');
}

static void missed_add(const struct goroutines *goroutines, struct text *out)
{
	if (goroutines->counts.moved + goroutines->counts.unread + goroutines->counts.left)
		text_add_format(out,
				"Missed: %llu goroutines that moved on each time they were read; "
				"%llu that could not be read; %llu for which there was no time or "
				"room\n",
				(unsigned long long)goroutines->counts.moved,
				(unsigned long long)goroutines->counts.unread,
				(unsigned long long)goroutines->counts.left);
}

static void goroutines_describe(const struct goroutines *goroutines, int64_t pid, bool all,
				bool labels, struct text *out)
{
	bool waited = true;

	text_add_format(out, "%llu goroutines of process %lld, ",
			(unsigned long long)goroutines->counts.program, (long long)pid);
	text_add_printable(out, goroutines->version);
	text_add_format(out, "; %llu more are its runtime's own%s\n\n",
			(unsigned long long)goroutines->counts.system, all ? "" : " (-a)");
	text_add_format(out, "  COUNT  STATE      REASON                   WAITED_S  %sSTACK\n",
			labels ? "CONTEXT  " : "");
	for (size_t i = 0; i < goroutines->group_count; i++) {
		const struct goroutine_group *group = &goroutines->groups[i];

		if (group->system && !all)
			continue;
		waited &= group->waited_ns >= 0;
		group_add(goroutines, group, labels, out);
	}
	text_add_string(out, "\nWAITED_S: of the one that has waited longest, as Go's runtime "
			     "dates it, at garbage collections");
	text_add_string(out, waited ? "\n" : " (-: not yet)\n");
	missed_add(goroutines, out);
}

static const char *transient_or_none(const char *text)
{
	return *text ? name_transient_string(text) : NULL;
}

static void goroutines_give(const struct goroutines *goroutines, int64_t pid, bool all,
			    routine_callback *take, void *to)
{
	struct routine_row row = {.time_us = clock_utc_us(),
				  .pid = pid,
				  .version = transient_or_none(goroutines->version)};
	struct text stack = {0};

	for (size_t i = 0; i < goroutines->group_count; i++) {
		const struct goroutine_group *group = &goroutines->groups[i];

		if (group->system && !all)
			continue;
		text_clear(&stack);
		stack_add(goroutines, group, &stack);
		row.count = (int64_t)group->count;
		row.state = goroutine_state_name(group->state);
		row.reason = transient_or_none(group_reason(goroutines, group));
		row.waited_ns = group->waited_ns >= 0 ? group->waited_ns : ABSENT;
		row.runtime = group->system;
		row.stack = transient_or_none(text_string(&stack));
		row.context = group->labels ? name_transient_string(group->labels) : NULL;
		take(to, &row);
	}
	text_done(&stack);
}

struct parsers *routine_parsers_begin(const char *what, int64_t pid, parser_service *service,
				      bool free, int *err, struct error *e)
{
	struct parsers *parsers = parsers_begin(service, free, 1u << PARSER_NAMES);

	if (!free)
		sandbox_enter(SANDBOX_SAMPLES | sandbox_kernel_use(), NULL);
	*err = 0;
	if (avoids_process(pid))
		*err = error_set(e, ETIMEDOUT, EXIT_FAILED, "%s of process %lld: reading it hangs",
				 what, (long long)pid);
	else if (parsers_lacking(parsers))
		*err = error_set(e, -parsers_lacking(parsers), EXIT_FAILED,
				 "%s: the process that parses files can't be started: %s", what,
				 strerror(-parsers_lacking(parsers)));
	return parsers;
}

int live_goroutines(int64_t pid, bool all, bool labels, bool free, routine_callback *take, void *to,
		    struct text *out, struct error *e)
{
	struct goroutines goroutines = {.group_count = 0};
	struct parsers *parsers;
	int err;

	parsers = routine_parsers_begin("goroutines", pid, goroutine_service, free, &err, e);
	if (!err)
		err = goroutines_read(&goroutines, PROC_ROOT, pid, labels,
				      &parsers->parser[PARSER_NAMES], e);
	if (!err && take) {
		goroutines_give(&goroutines, pid, all, take, to);
		missed_add(&goroutines, out);
	} else if (!err) {
		goroutines_describe(&goroutines, pid, all, labels, out);
	}
	goroutines_done(&goroutines);
	parsers_end(parsers);
	return err;
}
